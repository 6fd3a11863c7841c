"""Top-down level with private frontiers: each thread collects its finds and publishes them by the bufferful.

The shared counter is touched once per bufferful instead of once per vertex (Hwu, Kirk, El Hajj, ch. 15.6).
Encoding invariant: ``level[v]`` is -1 iff v is unvisited.
"""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add, atomic_claim


@njit(cache=True)
def publish_finds(mine, held, finds):
    """Move the ``held`` vertices in ``mine`` to a stretch of ``finds`` of their own; return 0, the number now held."""
    at, found = atomic_add(finds.tail, 0, held), finds.vertices
    for i in range(held):
        found[at + i] = mine[i]
    return 0


@njit(cache=True)
def claim_targets(u, first, last, targets, level, parent, depth, mine, held, finds):
    """Claim the unvisited vertices in targets[first:last] as children of u; return how many ``mine`` now holds."""
    for e in range(first, last):
        v = targets[e]
        if level[v] == -1 and atomic_claim(level, v, -1, depth + 1):
            parent[v] = u
            if held == mine.size:
                held = publish_finds(mine, held, finds)
            mine[held] = v
            held += 1
    return held


@njit(cache=True)
def push_private_share_step(t, threads, rows, frontier, tree, depth, mine, finds):
    """Expand frontier[t::threads]; return the edges looked at.

    Invariant, races, work: see push_private_step.
    """
    row_begin, row_end, targets = rows.begin, rows.end, rows.targets
    level, parent = tree.level, tree.parent
    looked, held = 0, 0
    for i in range(t, frontier.size, threads):
        u = frontier[i]
        looked += row_end[u] - row_begin[u]
        held = claim_targets(u, row_begin[u], row_end[u], targets, level, parent, depth, mine, held, finds)
    publish_finds(mine, held, finds)
    return looked


@njit(cache=True, parallel=True)
def push_private_step(rows, frontier, tree, depth, private, finds, looked):
    """Give ``depth + 1`` to each unvisited out-neighbour of the frontier.

    Invariant  ``finds`` lists each vertex once, before and after; what is new lies behind the old tail.
    Races      a vertex belongs to the thread that claims its level; thread t alone uses private[t] and looked[t], and a
               stretch of ``finds`` belongs to the thread that moved the tail over it.
    Work       the frontier's edges, shared out by vertex; one counter update per private.shape[1] finds.
    """
    threads = private.shape[0]
    for t in prange(threads):
        looked[t] = push_private_share_step(t, threads, rows, frontier, tree, depth, private[t], finds)
