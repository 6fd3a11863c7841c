"""Breadth-first search: the engines, and the proof of their results."""
