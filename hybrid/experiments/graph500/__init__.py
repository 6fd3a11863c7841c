"""The Graph500 benchmark and its rules."""
