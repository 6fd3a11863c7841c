"""The core program in plain numpy: edge by edge, no matrix, no padding, no device. Slow and obvious."""

from __future__ import annotations

import numpy as np


def min_plus(edges: np.ndarray, pairs: np.ndarray) -> dict[int, int]:
    """The fixed point of ``value[dst] = min(value[dst], value[src] + weight)`` from the given values."""
    value: dict[int, int] = {}
    for vertex, start in pairs.tolist():
        value[vertex] = min(start, value.get(vertex, start))
    lines = [(line[0], line[1], line[2] if len(line) == 3 else 1) for line in edges.tolist()]
    changed = True
    while changed:
        changed = False
        for src, dst, weight in lines:
            if src in value and value[src] + weight < value.get(dst, 2**62):
                value[dst] = value[src] + weight
                changed = True
    return value


def as_pairs(values: dict[int, int]) -> np.ndarray:
    """Vertex and value, ascending by vertex: the shape of an answer."""
    return np.array(sorted(values.items()), np.int64).reshape(-1, 2)
