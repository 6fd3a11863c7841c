"""What the machine has: its cores and caches, and the NPUs by their published figures and a model of their time."""
