"""Bottom-up BFS level: unvisited vertices look for an in-neighbour in the frontier, and stop at the first."""

from __future__ import annotations

from numba import njit, prange

BLOCK = 512  # vertices per turn: low ids are hubs, so blocks are dealt round robin to even out the threads


@njit(cache=True, parallel=True)
def pull_step(row_begin, row_end, sources, level, parent, depth, tally):
    """Give ``depth + 1`` to each unvisited vertex with an in-neighbour at ``depth``.

    Invariant  before: exactly the vertices within ``depth`` hops carry a level; after: those within ``depth + 1``.
    Races      iteration v writes only level[v] and parent[v]; a reader sees -1 or depth + 1, never ``depth``.
    Work       O(m) worst case, early exit per vertex; in-neighbours come hubs first (ids fall with degree).

    ``tally[t]`` = (edges looked at, vertices found) of thread t.
    """
    n = level.size
    threads = tally.shape[0]
    for t in prange(threads):
        edges = 0
        new = 0
        for first in range(t * BLOCK, n, threads * BLOCK):
            for v in range(first, min(first + BLOCK, n)):
                if level[v] == -1:
                    for e in range(row_begin[v], row_end[v]):
                        edges += 1
                        if level[sources[e]] == depth:
                            level[v] = depth + 1
                            parent[v] = sources[e]
                            new += 1
                            break
        tally[t, 0] = edges
        tally[t, 1] = new


@njit(cache=True)
def collect_level_step(level, depth, frontier):
    """List the vertices at ``depth``; return how many.

    Invariant  frontier = the level, ascending.   Races  none, serial.   Work  O(n).
    """
    count = 0
    for v in range(level.size):
        if level[v] == depth:
            frontier[count] = v
            count += 1
    return count


@njit(cache=True)
def count_edges_step(offsets, frontier, count):
    """Sum of the frontier's degrees: what a push would look at.

    Invariant  none changed.   Races  none, serial.   Work  O(count).
    """
    total = 0
    for i in range(count):
        total += offsets[frontier[i] + 1] - offsets[frontier[i]]
    return total
