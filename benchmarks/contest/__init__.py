"""Contests: contestants in processes of their own, in turns, every result checked."""
