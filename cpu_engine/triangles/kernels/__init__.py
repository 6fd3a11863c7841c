"""Compiled loops of triangles and clustering."""
