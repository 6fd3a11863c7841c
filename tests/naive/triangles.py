"""Triangles and clustering coefficients by trying all pairs; edges as (u, v) pairs, loops and repetitions allowed."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, permutations

Pairs = Iterable[tuple[int, int]]


def neighbourhoods(edges: Pairs) -> dict[int, set[int]]:
    """Who each vertex has an edge with, in either direction, itself not counted."""
    near: dict[int, set[int]] = {}
    for u, v in edges:
        near.setdefault(u, set())
        near.setdefault(v, set())
        if u != v:
            near[u].add(v)
            near[v].add(u)
    return near


def triangles_at(edges: Pairs) -> dict[int, int]:
    """The triangles that each vertex with an edge is a corner of."""
    near = neighbourhoods(edges)
    return {v: sum(b in near[a] for a, b in combinations(near[v], 2)) for v in near}


def clustering(edges: Pairs, directed: bool) -> dict[int, Fraction]:
    """LDBC's local clustering coefficient of each vertex with an edge."""
    edges = list(edges)
    near, arcs = neighbourhoods(edges), set(edges)
    if not directed:
        arcs |= {(v, u) for u, v in arcs}
    found = {}
    for v, around in near.items():
        possible = len(around) * (len(around) - 1)
        found[v] = Fraction(sum(pair in arcs for pair in permutations(around, 2)), max(possible, 1))
    return found
