"""Compiled loops on the dense core."""
