"""Modularity by its definition over all pairs, and plain Louvain by sweeps over dictionaries."""

from __future__ import annotations

import random
from collections.abc import Iterable

Weighted = Iterable[tuple[int, int, float]]
Matrix = dict[int, dict[int, float]]


def matrix(edges: Weighted) -> Matrix:
    """Symmetric; an edge from a vertex to itself counts twice."""
    found: Matrix = {}
    for u, v, w in edges:
        row = found.setdefault(u, {})
        row[v] = row.get(v, 0) + w
        row = found.setdefault(v, {})
        row[u] = row.get(u, 0) + w
    return found


def modularity(edges: Weighted, label: dict[int, int], resolution: float = 1.0) -> float:
    """The sum over all pairs in one community of what there is less what chance would give."""
    found = matrix(edges)
    strength = {v: sum(row.values()) for v, row in found.items()}
    whole = sum(strength.values())
    if not whole:
        return 0.0
    return sum(
        found[u].get(v, 0) / whole - resolution * (strength[u] / whole) * (strength[v] / whole)
        for u in found
        for v in found
        if label[u] == label[v]
    )


def louvain(edges: Weighted, seed: int = 0) -> dict[int, int]:
    """A label for each vertex with an edge: sweeps in a random order until nobody moves, then merging, and again."""
    found = matrix(edges)
    whole = sum(sum(row.values()) for row in found.values())
    where = {v: v for v in found}
    order = random.Random(seed)
    while True:
        label, moved = _sweeps(found, whole, order)
        where = {v: label[c] for v, c in where.items()}
        if not moved:
            return where
        merged: Matrix = {}
        for u, row in found.items():
            into = merged.setdefault(label[u], {})
            for v, w in row.items():
                into[label[v]] = into.get(label[v], 0) + w
        found = merged


def _sweeps(found: Matrix, whole: float, order: random.Random) -> tuple[dict[int, int], bool]:
    strength = {v: sum(row.values()) for v, row in found.items()}
    label, inside = {v: v for v in found}, dict(strength)
    ever, moved = False, True
    while moved:
        moved = False
        vertices = sorted(found)
        order.shuffle(vertices)
        for v in vertices:
            near = {label[v]: 0.0}
            for u, w in found[v].items():
                if u != v:
                    near[label[u]] = near.get(label[u], 0) + w
            inside[label[v]] -= strength[v]
            gain = {c: w - strength[v] * inside[c] / whole for c, w in near.items()}
            best = max(gain, key=gain.__getitem__)
            if gain[best] > gain[label[v]] + 1e-9:
                label[v], moved, ever = best, True, True
            inside[label[v]] += strength[v]
    return label, ever
