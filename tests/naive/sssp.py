"""Dijkstra with a heap, as plain as it can be. Graphs are lists of (u, v, weight)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)
Edge = tuple[int, int, Number]


def arcs_from(edges: Iterable[Edge[Number]], directed: bool) -> dict[int, list[tuple[int, Number]]]:
    """Out-edges by vertex."""
    arcs: dict[int, list[tuple[int, Number]]] = {}
    for u, v, weight in edges:
        arcs.setdefault(u, []).append((v, weight))
        if not directed:
            arcs.setdefault(v, []).append((u, weight))
    return arcs


def distances(edges: Iterable[Edge[Number]], directed: bool, root: int, zero: Number) -> dict[int, Number]:
    """Distance from ``root``, for the vertices that it reaches; ``zero`` is 0 or 0.0, as the weights are."""
    arcs = arcs_from(edges, directed)
    found: dict[int, Number] = {}
    heap = [(zero, root)]
    while heap:
        distance, u = heapq.heappop(heap)
        if u not in found:
            found[u] = distance
            for v, weight in arcs.get(u, ()):
                if v not in found:
                    heapq.heappush(heap, (distance + weight, v))
    return found


def is_tree(
    edges: Iterable[Edge[Number]], directed: bool, root: int, distance: dict[int, Number], parent: dict[int, int]
) -> bool:
    """Whether every parent is over an edge of the right length, and all lead to the root."""
    arcs = arcs_from(edges, directed)
    if parent.get(root) != root or set(parent) != set(distance):
        return False
    if not set(parent.values()) <= set(distance):
        return False
    for v, p in parent.items():
        tight = any(end == v and distance[p] + weight == distance[v] for end, weight in arcs.get(p, ()))
        if v != root and not tight:
            return False
        for _ in range(len(parent)):
            v = parent[v]
        if v != root:
            return False
    return True
