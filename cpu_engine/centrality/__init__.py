"""Betweenness and closeness, and their checks."""
