"""Triangles and clustering coefficients, and their checks."""
