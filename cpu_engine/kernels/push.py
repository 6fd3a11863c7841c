"""Top-down BFS level: frontier vertices claim their unvisited out-neighbours.

Encoding invariant: ``level[v] == -1`` iff v is unvisited.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.kernels.atomics import atomic_claim


@njit(cache=True)
def push_share_step(t, row_begin, row_end, targets, frontier, count, level, parent, depth, found, found_sizes):
    """Expand frontier[t::threads]; thread t's part of push_step, and with one row in ``found`` the whole of it.

    Invariant, races, work: see push_step.
    """
    threads = found.shape[0]
    mine = found[t]
    size = 0
    for i in range(t, count, threads):
        u = frontier[i]
        for e in range(row_begin[u], row_end[u]):
            v = targets[e]
            if level[v] == -1 and atomic_claim(level, v, np.int32(-1), np.int32(depth + 1)):
                parent[v] = u
                mine[size] = v
                size += 1
    found_sizes[t] = size


@njit(cache=True, parallel=True)
def push_step(row_begin, row_end, targets, frontier, count, level, parent, depth, found, found_sizes):
    """Give ``depth + 1`` to each unvisited out-neighbour of the frontier.

    Invariant  before: exactly the vertices within ``depth`` hops carry a level; after: those within ``depth + 1``
               over the edges handed in. Each new vertex is in exactly one thread's ``found`` list.
    Races      a vertex is claimed by compare-and-swap on its level; only the winner writes its parent and lists it.
    Work       O(edges of the frontier), each looked at once.
    """
    for t in prange(found.shape[0]):
        push_share_step(t, row_begin, row_end, targets, frontier, count, level, parent, depth, found, found_sizes)


@njit(cache=True)
def gather_found_step(found, found_sizes, frontier, total):
    """Append the threads' lists to ``frontier``, which holds ``total`` vertices; return its new length.

    Invariant  each new vertex once.   Races  none, serial.   Work  O(new vertices).
    """
    for t in range(found.shape[0]):
        for i in range(found_sizes[t]):
            frontier[total] = found[t, i]
            total += 1
    return total
