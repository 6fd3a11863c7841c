"""Core numbers, and their check."""
