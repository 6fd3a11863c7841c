"""Compiled loops of connected components."""
