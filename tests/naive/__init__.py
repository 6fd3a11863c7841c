"""Reference implementations, as plain as they can be; they share nothing with the product but the numbers.

Graphs here are (vertex count or vertex list, list of (u, v) pairs, directed).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


def adjacency(edges: Iterable[tuple[int, int]], directed: bool) -> dict[int, list[int]]:
    """Out-neighbours by vertex."""
    neighbours: dict[int, list[int]] = {}
    for u, v in edges:
        neighbours.setdefault(u, []).append(v)
        if not directed:
            neighbours.setdefault(v, []).append(u)
    return neighbours


def bfs_levels(edges: Iterable[tuple[int, int]], directed: bool, root: int) -> dict[int, int]:
    """Distance in edges from ``root``, for the vertices that it reaches."""
    neighbours = adjacency(edges, directed)
    level = {root: 0}
    queue = deque([root])
    while queue:
        u = queue.popleft()
        for v in neighbours.get(u, ()):
            if v not in level:
                level[v] = level[u] + 1
                queue.append(v)
    return level


def close_core(edges: Iterable[tuple[int, int]], values: dict[int, int]) -> dict[int, int]:
    """Core values after iterating over the core's directed edges until nothing changes (unit weights)."""
    closed = dict(values)
    edges = list(edges)
    changed = True
    while changed:
        changed = False
        for u, v in edges:
            if u in closed and closed[u] + 1 < closed.get(v, closed[u] + 2):
                closed[v] = closed[u] + 1
                changed = True
    return closed


def is_bfs_tree(
    edges: Iterable[tuple[int, int]], directed: bool, root: int, level: dict[int, int], parent: dict[int, int]
) -> bool:
    """Whether ``parent`` is a valid BFS tree for ``level``: any parent one step nearer over a real edge will do."""
    arcs = set(edges)
    if not directed:
        arcs |= {(v, u) for u, v in arcs}
    if parent.get(root) != root or level.get(root) != 0 or set(parent) != set(level):
        return False
    return all(v == root or ((p, v) in arcs and level.get(p) == level[v] - 1) for v, p in parent.items())
