"""What the example programs compute, by hand: plain Python over lists of arcs."""

from __future__ import annotations

from collections.abc import Iterable

Arc = tuple[int, int, int]  # source, target, weight


def shortest(n: int, arcs: Iterable[Arc], roots: Iterable[int]) -> list[int | None]:
    """Bellman and Ford."""
    arcs = list(arcs)
    distance: list[int | None] = [None] * n
    for root in roots:
        distance[root] = 0
    for _ in range(n):
        for source, target, weight in arcs:
            here, there = distance[source], distance[target]
            if here is not None and (there is None or here + weight < there):
                distance[target] = here + weight
    return distance


def smallest_labels(n: int, arcs: Iterable[Arc]) -> list[int]:
    """The smallest id in each vertex's weakly connected component."""
    label = list(range(n))
    arcs = list(arcs)
    for _ in range(n):
        for source, target, _weight in arcs:
            label[source] = label[target] = min(label[source], label[target])
    return label


def labels_within(n: int, arcs: Iterable[Arc], marks: list[int], hops: int) -> list[int]:
    """The union of the marks of all vertices from which a vertex is reached in at most so many hops."""
    arcs = list(arcs)
    for _ in range(hops):
        new = list(marks)
        for source, target, _weight in arcs:
            new[target] |= marks[source]
        marks = new
    return marks


def ldbc_ranks(n: int, isolated: int, arcs: Iterable[Arc], rounds: int) -> list[float]:
    """PageRank with damping 0.85 of the vertices with arcs, beside so many without."""
    arcs, count = list(arcs), n + isolated
    degree = [0] * n
    for source, _target, _weight in arcs:
        degree[source] += 1
    rank, lone = [1 / count] * n, 1 / count
    for _ in range(rounds):
        lost = sum(r for r, d in zip(rank, degree, strict=True) if d == 0) + isolated * lone
        base = (0.15 + 0.85 * lost) / count
        new = [base] * n
        for source, target, _weight in arcs:
            new[target] += 0.85 * rank[source] / degree[source]
        rank, lone = new, base
    return rank
