"""A level of the search from up to 64 roots on a part: bits of a word per vertex, pushed from a list or pulled by all.

Encoding invariant, between levels: bit s of ``seen[v]`` is set if root s is known to reach v, and bit s of ``front[v]``
iff v is on root s's last level and may have out-arcs here; ``fresh`` is all zero.
Rows are sorted by internal ids, not by local ones: threads cannot share a push by ranges of targets.
"""

from __future__ import annotations

from numba import njit, prange
from numpy import int64, uint64

from cpu_engine.bfs.many.kernels.levels import NONE, pull_block_step

BLOCK = 512  # vertices per turn: low ids are hubs, so blocks go round robin to even out the threads


@njit(cache=True)
def push_words_step(rows, frontier, seen, front, fresh, found):
    """Push the bits of the listed vertices; list those that got new ones; return how many, and the edges looked at.

    Invariant  after: fresh[v] has the bits that are new to v, and ``found`` lists each v that has any once.
    Races      none, serial.   Work  the frontier's edges.
    """
    begins, ends, targets = rows.begin, rows.end, rows.targets
    size, looked = 0, 0
    for i in range(frontier.size):
        u = frontier[i]
        word = front[u]
        looked += ends[u] - begins[u]
        for e in range(uint64(begins[u]), uint64(ends[u])):
            v = targets[e]
            new = word & ~seen[v]
            if new != NONE:
                if fresh[v] == NONE:
                    found[size] = v
                    size += 1
                fresh[v] |= new
    return size, looked


@njit(cache=True)
def pull_words_share_step(t, threads, rows, seen, front, fresh, mask):
    """Thread t's blocks of pull_words_step; return the edges looked at.

    Invariant, races, work: see pull_words_step.
    """
    best, begins, ends, sources = rows.best, rows.begin, rows.end, rows.sources
    looked = 0
    for first in range(t * BLOCK, best.size, threads * BLOCK):
        last = min(first + BLOCK, best.size)
        looked += pull_block_step(
            best[first:last], begins[first:last], ends[first:last], sources, seen[first:last], front,
            fresh[first:last], mask, False,
        )  # fmt: skip
    return looked


@njit(cache=True, parallel=True)
def pull_words_step(rows, seen, front, fresh, mask, looked):
    """Each vertex takes the bits in ``mask`` that it misses from its in-neighbours; thread t looked at looked[t] edges.

    Invariant  after: fresh[v] has the bits that are new to v.
    Races      a block's thread writes fresh of the block only; seen and front are only read.
    Work       the in-edges of vertices that miss bits, up to the last one found.
    """
    for t in prange(looked.size):
        looked[t] = pull_words_share_step(int64(t), looked.size, rows, seen, front, fresh, mask)
