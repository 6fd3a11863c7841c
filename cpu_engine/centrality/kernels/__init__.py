"""Compiled loops of betweenness and closeness."""
