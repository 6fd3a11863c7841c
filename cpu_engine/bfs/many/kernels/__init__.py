"""Compiled loops of the search from many sources."""
