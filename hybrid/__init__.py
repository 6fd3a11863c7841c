"""The coordinator: plans the split, runs the job, merges, certifies, reports. Owns the command line."""

__version__ = "0.1.0"
