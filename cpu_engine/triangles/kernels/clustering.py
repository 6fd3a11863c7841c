"""Arcs among the neighbours of each vertex, in a directed graph: a triangle counts at a corner as often as the opposite
edge has arcs, once or twice.

The same plan as counting.py, whose encodings hold here, with a second bitmap and a second matrix for the edges that
have arcs both ways: a corner's opposite edge has 1 + (bit in the second) arcs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy import int64, uint64

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.bisect import first_not_below
from cpu_engine.triangles.kernels.counting import BLOCK, LOW, ONE, SIX, add_to, count_shared_words


class DirectedView(NamedTuple):
    """Lower neighbours rows[first[v]:end[v]] of each vertex v, and the bit matrices among the first vertices."""

    first: np.ndarray
    end: np.ndarray
    rows: np.ndarray
    both: np.ndarray  # beside ``rows``: whether the edge has arcs both ways
    matrix: np.ndarray
    pairs: np.ndarray  # the matrix of the edges that have arcs both ways


@njit(cache=True)
def count_arcs_in_core(lower, hubs, matrix, pairs, marks, pair_marks, mine):
    """Arcs between the first ``hubs`` lower neighbours of a vertex; the hubs' own shares are added to ``mine``."""
    twice = int64(0)
    if hubs < 2:
        return twice
    words = int64(lower[hubs - 1] >> 6) + 1
    for i in range(hubs):
        w = uint64(lower[i])
        shared = count_shared_words(matrix[w], marks, words)
        if shared > 0:
            mine[w] += shared + count_shared_words(matrix[w], pair_marks, words)
            twice += shared + count_shared_words(pairs[w], marks, words)
    return twice // 2


@njit(cache=True)
def count_arcs_of_vertex(v, view, marks, pair_marks, mine, total):
    """Count the arcs opposite to the corners of all triangles whose largest corner is v."""
    first, end, rows, both, matrix, pairs = view
    begin = first[v]
    lower = rows[begin : end[v]]
    if lower.size < 2:
        return
    hubs = first_not_below(lower, matrix.shape[0])
    for i in range(lower.size):
        u = uint64(lower[i])
        marks[u >> SIX] |= ONE << (u & LOW)
        pair_marks[u >> SIX] |= uint64(both[begin + i]) << (u & LOW)
    found = count_arcs_in_core(lower, hubs, matrix, pairs, marks, pair_marks, mine)
    for i in range(hubs, lower.size):
        u, arcs = lower[i], int64(1) + int64(both[begin + i])
        closed = int64(0)
        for e in range(first[u], end[u]):
            w = uint64(rows[e])
            if (marks[w >> SIX] >> (w & LOW)) & ONE != 0:
                found += 1 + int64(both[e])
                closed += int64(1) + int64((pair_marks[w >> SIX] >> (w & LOW)) & ONE)
                add_to(mine, total, rows[e], arcs)
        if closed > 0:
            add_to(mine, total, u, closed)
    for i in range(lower.size):
        marks[uint64(lower[i]) >> SIX] = uint64(0)
        pair_marks[uint64(lower[i]) >> SIX] = uint64(0)
    if found > 0:
        add_to(mine, total, v, found)


@njit(cache=True, parallel=True)
def count_arcs_step(view, marks, pair_marks, private, total, next_block):
    """Add to each vertex's count the arcs among its neighbours.

    Invariant  marks are zero before and after each vertex; ``private`` summed over threads plus ``total`` is the count.
    Races      as in count_triangles_step: what is written belongs to the thread, or is added to atomically.
    Work       as count_triangles_step, with three counts of bits where that has one.
    """
    n = view.first.size
    for t in prange(private.shape[0]):
        block = atomic_add(next_block, 0, 1)
        while block * BLOCK < n:
            for v in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
                count_arcs_of_vertex(v, view, marks[t], pair_marks[t], private[t], total)
            block = atomic_add(next_block, 0, 1)
