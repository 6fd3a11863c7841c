"""Triangles at each vertex, found once each at the corner of largest id.

Of every vertex v the neighbours below it are marked in a bitmap. Where two of them are hubs, that is a row of the hubs'
bit matrix and the marks, word by word: one count of bits gives the triangles of v and hub w with any other hub, which
are w's share as well, so nothing has to be written per triangle. What has its middle corner outside the hubs is found
by looking up the short lower list of that corner in the marks.

Encoding: ``rows[first[v] : end[v]]`` are v's distinct neighbours below v, ascending (triangles_view.py).
Bit x of row w of ``matrix`` is set iff hubs w and x are neighbours.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy import int64, uint64

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.bisect import first_not_below
from cpu_engine.intrinsics.words import count_bits

BLOCK = 64  # vertices that a thread takes at a time
FEW = 8  # this few marks are compared pair by pair, not word by word
ONE = np.uint64(1)
SIX = np.uint64(6)
LOW = np.uint64(63)


@njit(cache=True, parallel=True)
def fill_core_step(first, end, rows, both, wanted, matrix):
    """Write the bit matrix of the first ``matrix.shape[0]`` vertices: of all edges, or those with ``both`` == wanted.

    Invariant  matrix is zero before, symmetric after; ``both`` may be empty (all edges).
    Races      iteration t writes, for the 64 hubs w of word t, row w up to w and word t of the rows above w: no other
               iteration writes there.
    Work       the hubs' lists.
    """
    hubs = matrix.shape[0]
    for t in prange(matrix.shape[1]):
        for w in range(t * 64, min(t * 64 + 64, hubs)):
            for e in range(first[w], end[w]):
                if both.size == 0 or both[e] == wanted:
                    x = uint64(rows[e])
                    matrix[w, x >> SIX] |= ONE << (x & LOW)
                    matrix[x, t] |= ONE << uint64(w - t * 64)


@njit(cache=True)
def count_shared_words(row, marks, words):
    """How many bits the first ``words`` words have in common."""
    shared = int64(0)
    for i in range(words):
        shared += int64(count_bits(row[i] & marks[i]))
    return shared


@njit(cache=True)
def add_to(mine, total, v, value):
    """Add to a vertex's count: the thread's own for hubs, the shared one for others."""
    if v < mine.size:
        mine[v] += value
    else:
        atomic_add(total, v, value)


@njit(cache=True)
def count_in_core(lower, hubs, matrix, marks, mine):
    """Triangles of a vertex with two of its first ``hubs`` lower neighbours; the hubs' shares are noted in ``mine``."""
    twice = int64(0)
    if hubs <= FEW:
        for i in range(hubs):
            w = uint64(lower[i])
            word, bit = w >> SIX, w & LOW
            for j in range(i):
                x = uint64(lower[j])
                if (matrix[x, word] >> bit) & ONE != 0:
                    twice += 2
                    mine[w] += 1
                    mine[x] += 1
        return twice // 2
    words = int64(lower[hubs - 1] >> 6) + 1
    for i in range(hubs):
        w = uint64(lower[i])
        shared = count_shared_words(matrix[w], marks, words)
        mine[w] += shared
        twice += shared
    return twice // 2


@njit(cache=True)
def count_vertex(v, first, end, rows, matrix, marks, mine, total):
    """Count all triangles whose largest corner is v."""
    lower = rows[first[v] : end[v]]
    if lower.size < 2:
        return
    hubs = first_not_below(lower, matrix.shape[0])
    for u in lower:
        marks[uint64(u) >> SIX] |= ONE << (uint64(u) & LOW)
    found = count_in_core(lower, hubs, matrix, marks, mine)
    for i in range(hubs, lower.size):
        u = lower[i]
        closed = int64(0)
        for e in range(first[u], end[u]):
            w = rows[uint64(e)]
            if (marks[uint64(w) >> SIX] >> (uint64(w) & LOW)) & ONE != 0:
                closed += 1
                add_to(mine, total, w, int64(1))
        if closed > 0:
            add_to(mine, total, u, closed)
            found += closed
    for i in range(lower.size):
        marks[uint64(lower[i]) >> SIX] = uint64(0)
    if found > 0:
        add_to(mine, total, v, found)


@njit(cache=True, parallel=True)
def count_triangles_step(first, end, rows, matrix, marks, private, total, next_block):
    """Add to each vertex's count the triangles it is a corner of.

    Invariant  marks are zero before and after each vertex; ``private`` summed over threads plus ``total`` is the count.
    Races      thread t alone uses marks[t] and private[t], which holds the first vertices, hubs among them; the others'
               counts are added to atomically. Blocks of vertices are claimed at ``next_block``.
    Work       hubs: words up to the largest common hub per edge; others: the lower list of each lower neighbour.
    """
    n = first.size
    for t in prange(private.shape[0]):
        block = atomic_add(next_block, 0, 1)
        while block * BLOCK < n:
            for v in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
                count_vertex(v, first, end, rows, matrix, marks[t], private[t], total)
            block = atomic_add(next_block, 0, 1)
