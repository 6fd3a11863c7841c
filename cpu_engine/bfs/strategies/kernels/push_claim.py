"""Top-down level, one vertex at a time: the frontier's vertices claim their neighbours by compare-and-swap.

The next frontier is one shared list; a counter says where its next free place is (Hwu, Kirk, El Hajj, ch. 15.5).
Encoding invariant: ``level[v]`` is -1 iff v is unvisited.
"""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add, atomic_claim


@njit(cache=True, parallel=True)
def push_claim_step(rows, frontier, level, parent, depth, found, tail):
    """Give ``depth + 1`` to each unvisited out-neighbour of the frontier; return the edges looked at.

    Invariant  ``found[:tail[0]]`` lists each vertex once, before and after; what is new lies behind the old tail.
    Races      a vertex belongs to the thread that claims its level, and only the claimer writes its parent and its
               entry in ``found``; every find of every thread goes through ``tail``, which is what limits this kernel.
    Work       the frontier's edges, shared out by vertex: a hub's list is walked by one thread.
    """
    row_begin, row_end, targets = rows.begin, rows.end, rows.targets
    looked = 0
    for i in prange(frontier.size):
        u = frontier[i]
        looked += row_end[u] - row_begin[u]
        for e in range(row_begin[u], row_end[u]):
            v = targets[e]
            if level[v] == -1 and atomic_claim(level, v, -1, depth + 1):
                parent[v] = u
                found[atomic_add(tail, 0, 1)] = v
    return looked
