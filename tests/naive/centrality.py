"""Betweenness by listing every shortest path, closeness by plain searches; edges as simple (u, v) pairs."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tests.naive import adjacency, bfs_levels

Pairs = Iterable[tuple[int, int]]


def shortest_paths(edges: list[tuple[int, int]], directed: bool, root: int) -> dict[int, list[list[int]]]:
    """All shortest paths from root, by their end."""
    level, near = bfs_levels(edges, directed, root), adjacency(edges, directed)
    paths = {root: [[root]]}
    for u in sorted(level, key=lambda one: level[one]):
        for v in set(near.get(u, ())):
            if level[v] == level[u] + 1:
                paths.setdefault(v, []).extend([*path, v] for path in paths[u])
    return paths


def betweenness(edges: Pairs, directed: bool, roots: Iterable[int]) -> dict[int, Fraction]:
    """The sum over roots and ends of the part of the shortest paths that have a vertex inside; 0 where it is absent."""
    edges = list(edges)
    score: dict[int, Fraction] = {}
    for root in roots:
        for paths in shortest_paths(edges, directed, root).values():
            for path in paths:
                for v in path[1:-1]:
                    score[v] = score.get(v, Fraction(0)) + Fraction(1, len(paths))
    return score


def distances_to(edges: Pairs, directed: bool, end: int) -> list[int]:
    """The distances of all others that reach ``end``."""
    backwards = [(v, u) for u, v in edges]
    return sorted(bfs_levels(backwards, directed, end).values())[1:]


def closeness(edges: Pairs, directed: bool, end: int, count: int, improved: bool) -> Fraction:
    """(r - 1) / farness, times (r - 1) / (count - 1) if improved."""
    found = distances_to(edges, directed, end)
    if not found:
        return Fraction(0)
    return Fraction(len(found), sum(found)) * (Fraction(len(found), count - 1) if improved else 1)


def harmonic(edges: Pairs, directed: bool, end: int) -> Fraction:
    """The sum of 1 / distance."""
    return sum((Fraction(1, one) for one in distances_to(edges, directed, end)), Fraction(0))
