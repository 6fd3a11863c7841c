"""Ways to find the next level from this one: push, pull, by edges, by whole runs of small levels."""
