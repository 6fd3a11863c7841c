"""From an edge list to a graph: ids, buckets, rows, and the memory for it."""
