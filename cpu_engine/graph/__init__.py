"""Graphs: edge lists as read or generated, the formats they come in, and what is built from them."""
