"""Compiled loops of reading, building, storing and partitioning graphs."""
