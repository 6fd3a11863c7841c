"""Breadth-first search from up to 64 sources in one pass: one bit per source."""
