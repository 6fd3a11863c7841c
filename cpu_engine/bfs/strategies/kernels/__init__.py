"""Compiled loops of the strategies, one file each."""
