"""References for the algorithms on ranks, over arcs (u, v) or (u, v, weight) of the vertices 0..n-1."""

from __future__ import annotations

from collections import Counter

Arcs = list[tuple[int, int]]


def shortest_paths(n: int, arcs: list[tuple[int, int, float]], root: int) -> list[float | None]:
    """By relaxing every arc until nothing changes; None = not reached."""
    distance: list[float | None] = [None] * n
    distance[root] = 0
    changed = True
    while changed:
        changed = False
        for u, v, weight in arcs:
            mine, other = distance[u], distance[v]
            if mine is not None and (other is None or mine + weight < other):
                distance[v] = mine + weight
                changed = True
    return distance


def is_shortest_path_tree(
    arcs: list[tuple[int, int, float]], root: int, distance: list[float | None], parent: list[int]
) -> bool:
    """Whether every parent is the one before on a shortest path, and all parents lead to the root."""
    weights: dict[tuple[int, int], set[float]] = {}
    for u, v, weight in arcs:
        weights.setdefault((u, v), set()).add(weight)
    for v, reached in enumerate(distance):
        if reached is None or v == root:
            if parent[v] != (root if v == root else -1):
                return False
            continue
        before = parent[v]
        if all(distance[before] + weight != reached for weight in weights.get((before, v), ())):  # type: ignore[operator]
            return False
        at, steps = v, 0
        while at != root:
            at, steps = parent[at], steps + 1
            if steps > len(distance):
                return False
    return True


def components(n: int, arcs: Arcs) -> list[int]:
    """The smallest vertex of each one's component, by passing labels along until nothing changes."""
    label = list(range(n))
    changed = True
    while changed:
        changed = False
        for u, v in arcs:
            low = min(label[u], label[v])
            if label[u] != low or label[v] != low:
                label[u] = label[v] = low
                changed = True
    return label


def core_numbers(n: int, arcs: Arcs) -> list[int]:
    """By removing, level after level, who has too few neighbours left."""
    near: list[set[int]] = [set() for _ in range(n)]
    for u, v in arcs:
        if u != v:
            near[u].add(v)
            near[v].add(u)
    core, left, k = [0] * n, set(range(n)), 0
    while left:
        low = [v for v in left if len(near[v] & left) <= k]
        k += not low
        for v in low:
            core[v] = k
            left.discard(v)
    return core


def labels(own: list[int], arcs: Arcs, both_ways: bool, rounds: int) -> list[int]:
    """Label propagation from ``own``; arcs count at their sources, and at their targets too if ``both_ways``."""
    near: list[list[int]] = [[] for _ in own]
    for u, v in arcs:
        near[u].append(v)
        if both_ways:
            near[v].append(u)
    label = list(own)
    for _ in range(rounds):
        counts = [Counter(label[u] for u in around) for around in near]
        label = [_leading(count) if count else old for count, old in zip(counts, label, strict=True)]
    return label


def _leading(count: Counter[int]) -> int:
    return min(count, key=lambda one: (-count[one], one))


def pagerank(n: int, isolated: int, arcs: Arcs, rounds: int, spread: bool, damping: float = 0.85) -> list[float]:
    """``rounds`` times from 1 / N, of n vertices with edges and others without."""
    total = n + isolated
    degree = [0] * n
    for u, _ in arcs:
        degree[u] += 1
    rank, alone = [1 / total] * n, 1 / total
    for _ in range(rounds):
        received = [0.0] * n
        for u, v in arcs:
            received[v] += rank[u] / degree[u]
        lost = sum(rank[v] for v in range(n) if not degree[v]) + isolated * alone if spread else 0.0
        alone = (1 - damping + damping * lost) / total
        rank = [alone + damping * one for one in received]
    return rank
