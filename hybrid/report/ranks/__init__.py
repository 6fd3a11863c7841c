"""A job on several ranks in the report: each rank's time, and what the ranks sent each other."""
