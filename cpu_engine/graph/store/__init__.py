"""Graphs on disk: folders of arrays, checked once, and the cache of built graphs."""
