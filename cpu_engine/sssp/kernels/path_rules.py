"""Graph500's rules for shortest paths, judged from the input edge list and the result alone - no graph, no engine.

Vertices are the input's: 0 to n - 1. ``parent[v]`` is -1 and ``distance[v]`` infinite where v is not in the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy import int64, uint64

SPLIT, TOO_FAR = range(2)  # rows of what check_lengths_step finds wrong with an edge


class InputEdges(NamedTuple):
    """The input: edge e leads from src[e] to dst[e]."""

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray


@njit(cache=True)
def check_lengths_share_step(t, threads, edges, parent, distance, slack, confirmed, wrong, example):
    """Thread t's part of check_lengths_step; returns the edges within the tree's vertices.

    Invariant, races, work: see check_lengths_step.
    """
    src, dst, weight = edges
    inside = 0
    for e in range(t * src.size // threads, (t + 1) * src.size // threads):
        u, v = uint64(src[e]), uint64(dst[e])  # unsigned: numba need not provide for negative indices
        in_tree, other_in_tree = parent[u] != -1, parent[v] != -1
        if in_tree != other_in_tree:
            wrong[t, SPLIT] += 1
            example[t, SPLIT] = e
        if not (in_tree and other_in_tree):
            continue
        inside += 1
        onward, length = distance[v] - distance[u], weight[e]
        if abs(onward) > length + slack:
            wrong[t, TOO_FAR] += 1
            example[t, TOO_FAR] = e
        if parent[v] == src[e] and abs(onward - length) <= slack:
            confirmed[v] = 1
        if parent[u] == dst[e] and abs(onward + length) <= slack:
            confirmed[u] = 1
    return inside


@njit(cache=True, parallel=True)
def check_lengths_step(edges, parent, distance, slack, confirmed, inside, wrong, example):
    """Judge every edge of the input list: ends no farther apart than it is long, both in the tree or both not.

    Invariant  after: confirmed[v] = 1 iff the list has an edge between v and its parent that is as long as their
               distances differ, to within ``slack``.
    Races, work, ``inside``, ``wrong`` and ``example``: as tree_rules.check_edges_step.
    """
    threads = inside.size
    for t in prange(threads):
        inside[t] = check_lengths_share_step(
            int64(t), threads, edges, parent, distance, slack, confirmed, wrong, example
        )
