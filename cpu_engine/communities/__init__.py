"""Communities: label propagation, Louvain's method, and their checks."""
