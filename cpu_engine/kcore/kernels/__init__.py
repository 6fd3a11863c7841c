"""Compiled loops of peeling."""
