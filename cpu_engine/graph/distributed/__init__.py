"""A graph that no rank holds whole: each rank reads or makes its share of the edges, and builds its part."""
