"""Compiled loops of shortest paths."""
