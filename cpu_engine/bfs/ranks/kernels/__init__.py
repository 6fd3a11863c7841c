"""Compiled loops of the search on a part."""
