"""Starting ranks, watching them, ending them, and what they print."""
