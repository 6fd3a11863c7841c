"""The programs in plain Python and numpy: edge by edge, no matrix, no padding, no device. Slow and obvious."""

from __future__ import annotations

from collections.abc import Callable

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


def close_row(ends: np.ndarray, weight: np.ndarray, row: np.ndarray) -> np.ndarray:
    """``min_plus`` on a row of values, one per vertex, -1 = none."""
    pairs = np.column_stack((np.flatnonzero(row >= 0), row[row >= 0]))
    closed = np.full(len(row), -1, np.int64)
    for vertex, value in min_plus(np.column_stack((ends, weight)), pairs).items():
        closed[vertex] = value
    return closed


def count_hops(ends: np.ndarray, weight: np.ndarray, row: np.ndarray) -> np.ndarray:
    return close_row(ends, np.ones(len(ends), np.int64), row)


def smallest_label(ends: np.ndarray, weight: np.ndarray, row: np.ndarray) -> np.ndarray:
    label = row.tolist()
    changed = True
    while changed:
        changed = False
        for u, v in ends.tolist():
            if label[u] < label[v]:
                label[v] = label[u]
                changed = True
    return np.array(label, np.int64)


def weighted_sum(ends: np.ndarray, weight: np.ndarray, row: np.ndarray) -> np.ndarray:
    out = [0.0] * len(row)
    for (u, v), factor in zip(ends.tolist(), weight.tolist(), strict=True):
        out[v] += float(row[u]) * factor
    return np.array(out)


def any_marked(ends: np.ndarray, weight: np.ndarray, row: np.ndarray) -> np.ndarray:
    out = np.zeros(len(row), bool)
    for u, v in ends.tolist():
        out[v] |= row[u]
    return out


TWINS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "min-plus unit": count_hops,
    "min-plus weighted": close_row,
    "min-select": smallest_label,
    "plus-times": weighted_sum,
    "or-and": any_marked,
}


def hops_between_all(vertices: list[int], edges: np.ndarray) -> np.ndarray:
    """distance[u, v] inside the core, 255 where there is no path; one breadth-first search per vertex."""
    after: dict[int, set[int]] = {vertex: set() for vertex in vertices}
    for u, v in edges.tolist():
        after[u].add(v)
    place = {vertex: number for number, vertex in enumerate(vertices)}
    distance = np.full((len(vertices), len(vertices)), 255, np.int64)
    for source in vertices:
        found, frontier, hops = {source}, {source}, 0
        while frontier:
            for vertex in frontier:
                distance[place[source], place[vertex]] = hops
            frontier = set().union(*(after[vertex] for vertex in frontier)) - found
            found |= frontier
            hops += 1
    return distance
