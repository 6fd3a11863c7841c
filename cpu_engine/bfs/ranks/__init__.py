"""Breadth-first search on a partitioned graph, one part's side."""
