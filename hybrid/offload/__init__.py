"""Rounds with a core solver: what an algorithm gives to the dense core, and how answers are merged."""
