"""Core numbers by peeling: level k takes vertices with at most k neighbours left, until all that are left have more.

Ids fall with degree, so the vertices that can be left at level k are a prefix of the ids.
"""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add

BLOCK = 1024  # vertices per turn: low ids are hubs, so blocks are dealt round robin to even out the threads


@njit(cache=True, parallel=True)
def count_repeated_step(offsets, targets):
    """How many stored neighbours are the vertex itself or come twice in a row of ``targets``.

    Invariant  rows are ascending.   Races  none: a sum.   Work  O(m), sequential.
    """
    count = 0
    for u in prange(offsets.size - 1):
        before = -1
        for e in range(offsets[u], offsets[u + 1]):
            count += (targets[e] == u) | (targets[e] == before)
            before = targets[e]
    return count


@njit(cache=True, parallel=True)
def find_peelable_step(left, core, level, until, queue, tally):
    """List the vertices that ``level`` takes at once; tally[lane] = (listed, the fewest neighbours left of the others).

    Invariant  core[v] is -1 for all vertices that are left, all of them below ``until``, with left[v] >= level; those
               listed have left[v] == level and get it as their core number.
    Races      lane t owns its blocks' vertices, queue[t] and tally[t].
    Work       O(until).
    """
    lanes = queue.shape[0]
    for lane in prange(lanes):
        count, fewest = 0, left.size
        for first in range(lane * BLOCK, until, lanes * BLOCK):
            for v in range(first, min(first + BLOCK, until)):
                if core[v] < 0:
                    if left[v] <= level:
                        core[v] = level
                        queue[lane, count] = v
                        count += 1
                    else:
                        fewest = min(fewest, left[v])
        tally[lane, 0], tally[lane, 1] = count, fewest


@njit(cache=True, parallel=True)
def peel_step(offsets, targets, left, core, level, queue, tally):
    """Take the listed vertices and those that have only ``level`` neighbours left then; tally[lane, 0] grows with them.

    Invariant  after: each vertex that is left has more than ``level`` neighbours among those that are left.
    Races      left[w] is lowered atomically, and the thread that lowers it to ``level`` lists w: w is listed once.
               A thread that has lowered it further takes that back: left never stays below ``level``.
    Work       the arcs of the vertices taken.
    """
    for lane in prange(queue.shape[0]):
        count, at = tally[lane, 0], 0
        while at < count:
            v = queue[lane, at]
            at += 1
            for e in range(offsets[v], offsets[v + 1]):
                w = targets[e]
                if left[w] > level:
                    before = atomic_add(left, w, -1)
                    if before == level + 1:
                        core[w] = level
                        queue[lane, count] = w
                        count += 1
                    elif before <= level:
                        atomic_add(left, w, 1)
        tally[lane, 0] = count
