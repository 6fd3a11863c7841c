"""PageRank as its definitions read, on dictionaries."""

from __future__ import annotations

Pairs = list[tuple[int, int]]


def arcs_of(edges: Pairs, directed: bool) -> Pairs:
    """Each arc as often as it is stored: an undirected edge both ways, a self-loop once."""
    if directed:
        return list(edges)
    return [arc for u, v in edges for arc in ([(u, v), (v, u)] if u != v else [(u, u)])]


def _received(arcs: Pairs, rank: dict[int, float]) -> tuple[dict[int, float], float]:
    """What each vertex gets, and what the vertices without out-arcs have."""
    degree = dict.fromkeys(rank, 0)
    for u, _ in arcs:
        degree[u] += 1
    received = dict.fromkeys(rank, 0.0)
    for u, v in arcs:
        received[v] += rank[u] / degree[u]
    return received, sum(rank[v] for v in rank if degree[v] == 0)


def pagerank(
    vertices: list[int], edges: Pairs, directed: bool, iterations: int, *, spread: bool, damping: float = 0.85
) -> dict[int, float]:
    """``iterations`` times from 1 / N; ``spread``: lost rank goes to everybody (LDBC) instead of nowhere (GAP)."""
    arcs, count = arcs_of(edges, directed), len(vertices)
    rank = dict.fromkeys(vertices, 1 / count)
    for _ in range(iterations):
        received, lost = _received(arcs, rank)
        extra = damping * lost / count if spread else 0.0
        rank = {v: (1 - damping) / count + damping * received[v] + extra for v in vertices}
    return rank


def personalised(
    vertices: list[int], edges: Pairs, directed: bool, source: int, iterations: int, *, damping: float = 0.85
) -> dict[int, float]:
    """``iterations`` times from the source alone; restarts and lost rank go to the source."""
    arcs = arcs_of(edges, directed)
    rank = {v: float(v == source) for v in vertices}
    for _ in range(iterations):
        received, lost = _received(arcs, rank)
        rank = {v: damping * received[v] for v in vertices}
        rank[source] += 1 - damping + damping * lost
    return rank
