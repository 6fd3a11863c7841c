"""Connected components, weak and strong, and their check."""
