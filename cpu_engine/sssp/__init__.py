"""Shortest paths over non-negative weights: strategies, skeleton, ranks, check."""
