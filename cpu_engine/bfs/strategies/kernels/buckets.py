"""Top-down level by length of list: threads share short lists by vertex, medium ones by chunk, huge ones all together.

What a warp and a thread block are to a GPU (Merrill and Garland 2012), a chunk and the whole team are here.
Encoding invariant: ``level[v]`` is -1 iff v is unvisited.
"""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.bfs.strategies.kernels.push_private import claim_targets, publish_finds

CHUNK = 256  # edges that one thread takes at a time from a medium list


@njit(cache=True)
def bucket_frontier_step(row_begin, row_end, frontier, medium_from, huge_from, ordered):
    """Order the frontier as short, medium, huge lists; return where the medium and the huge ones begin.

    Invariant  ``ordered`` is a permutation of the frontier, stable within a bucket.
    Races      none, serial.
    Work       O(frontier), twice.
    """
    short, medium = 0, 0
    for u in frontier:
        length = row_end[u] - row_begin[u]
        short += length < medium_from
        medium += medium_from <= length < huge_from
    at_short, at_medium, at_huge = 0, short, short + medium
    for u in frontier:
        length = row_end[u] - row_begin[u]
        if length < medium_from:
            ordered[at_short] = u
            at_short += 1
        elif length < huge_from:
            ordered[at_medium] = u
            at_medium += 1
        else:
            ordered[at_huge] = u
            at_huge += 1
    return short, short + medium


@njit(cache=True)
def push_buckets_share_step(t, threads, rows, ordered, medium, huge, tree, depth, mine, finds):
    """Thread t's part of each bucket; return the edges looked at.

    Invariant, races, work: see push_buckets_step.
    """
    row_begin, row_end, targets = rows.begin, rows.end, rows.targets
    level, parent = tree.level, tree.parent
    looked, held = 0, 0
    for i in range(t, medium, threads):
        u = ordered[i]
        looked += row_end[u] - row_begin[u]
        held = claim_targets(u, row_begin[u], row_end[u], targets, level, parent, depth, mine, held, finds)
    for i in range(medium, huge):
        u = ordered[i]
        turn = (t - i) % threads  # chunk c of list i goes to thread (i + c) mod threads
        for first in range(row_begin[u] + turn * CHUNK, row_end[u], threads * CHUNK):
            last = min(first + CHUNK, row_end[u])
            looked += last - first
            held = claim_targets(u, first, last, targets, level, parent, depth, mine, held, finds)
    for i in range(huge, ordered.size):
        u = ordered[i]
        length = row_end[u] - row_begin[u]
        first = row_begin[u] + length * t // threads
        last = row_begin[u] + length * (t + 1) // threads
        looked += last - first
        held = claim_targets(u, first, last, targets, level, parent, depth, mine, held, finds)
    publish_finds(mine, held, finds)
    return looked


@njit(cache=True, parallel=True)
def push_buckets_step(rows, ordered, medium, huge, tree, depth, private, finds, looked):
    """Give ``depth + 1`` to each unvisited out-neighbour of the frontier, bucket by bucket, in one launch.

    Invariant  ``finds`` lists each vertex once, before and after; what is new lies behind the old tail.
    Races      a vertex belongs to the thread that claims its level; thread t alone uses private[t] and looked[t]. No
               barrier between the buckets: they differ in which thread looks at an edge, not in what is done with it.
    Work       the frontier's edges; threads differ by at most one huge list's share, a chunk and what chance leaves of
               the short lists.
    """
    threads = private.shape[0]
    for t in prange(threads):
        looked[t] = push_buckets_share_step(t, threads, rows, ordered, medium, huge, tree, depth, private[t], finds)
