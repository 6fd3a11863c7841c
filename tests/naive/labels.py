"""Label propagation by counting; edges as (u, v) pairs as the graph keeps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def propagate(edges: Iterable[tuple[int, int]], directed: bool, iterations: int) -> dict[int, int]:
    """The label of each vertex with an edge, after that many rounds."""
    near: dict[int, list[int]] = {}
    for u, v in edges:
        near.setdefault(u, []).append(v)
        if directed or u != v:  # an undirected loop is one neighbour
            near.setdefault(v, []).append(u)
    label = {v: v for v in near}
    for _ in range(iterations):
        counts = {v: Counter(label[u] for u in around) for v, around in near.items()}
        label = {v: min(count, key=lambda one: (-count[one], one)) for v, count in counts.items()}
    return label
