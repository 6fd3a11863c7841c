"""How many vertices are at each distance from each root, from a table of levels; and one search by itself, to check."""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True)
def count_share(first, last, level, width, counts):
    """Rows first..last of count_levels_step."""
    for v in range(first, last):
        row = level[v * width : (v + 1) * width]
        for s in range(width):
            counts[s, row[s] + 1] += 1


@njit(cache=True, parallel=True)
def count_levels_step(level, width, counts):
    """Add to counts[t, s, d + 1] the vertices at distance d from root s (d = -1: not reached).

    Invariant  level is flat, ``width`` numbers a row, none above counts.shape[2] - 2.
    Races      thread t reads a stretch of rows and writes counts[t].
    Work       one count per number.
    """
    threads, n = counts.shape[0], level.size // width
    for t in prange(threads):
        count_share(t * n // threads, (t + 1) * n // threads, level, width, counts[t])


@njit(cache=True)
def search_alone_step(offsets, ids, root, level, queue):
    """Distances from one root by a plain queue; returns how many vertices it reaches.

    Invariant  level is -1 where v is not reached.   Races  none, serial.   Work  O(n + m).
    """
    level[:] = -1
    level[root], queue[0] = 0, root
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(offsets[u], offsets[u + 1]):
            if level[ids[e]] < 0:
                level[ids[e]] = level[u] + 1
                queue[tail] = ids[e]
                tail += 1
    return tail
