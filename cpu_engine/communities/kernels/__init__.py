"""Compiled loops of label propagation and Louvain's method."""
