"""Shortest paths on a part, near vertices first: those below a limit are relaxed until none is left, the others wait.

What waits is in two piles, so that opening the next bucket does not mean looking at everything: the middle one up to
some buckets away, the far one beyond. Encodings: ``distance`` is uint32, int64 or float64, its largest value (inf) for
what is not reached; ``mark`` has the bits NEAR (in the ring), MIDDLE, FAR (in that pile, perhaps no longer rightly) and
LISTED (ranks_listed.py). ``limits`` = (near below, middle below). ``waiting``, of the type of ``distance`` = (smallest
value in the middle pile or less, in the far one or less, what the first limit was before this bucket). ``state`` is
int64: see the indices below.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cpu_engine.comm.kernels.sparse_updates import LISTED
from cpu_engine.intrinsics.prefetch import prefetch

NEAR, MIDDLE, FAR = 1, 2, 8
HEAD, SIZE, IN_MIDDLE, IN_FAR, EDGES, TAKEN = 0, 1, 2, 3, 4, 5  # of ``state``; the first two are the ring's
STATE = 6
AHEAD = 8  # vertices in the ring whose rows are asked for before their turn
_LOWER, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_NOT_NEAR = np.uint8(0xFF ^ NEAR)
_NOT_MIDDLE = np.uint8(0xFF ^ MIDDLE)


@njit(cache=True, inline="always")
def admit_near(v, mark, ring, state, masters, listed, counts):
    """Put a vertex into the ring and onto the list of changes, unless it is there."""
    if mark[v] & NEAR == 0:
        mark[v] |= NEAR
        at = state[HEAD] + state[SIZE]
        ring[at if at < ring.size else at - ring.size] = v
        state[SIZE] += 1
    put_on_list(v, mark, masters, listed, counts)


@njit(cache=True, inline="always")
def put_on_list(v, mark, masters, listed, counts):
    """Put a vertex onto the list of changes, unless it is there."""
    if mark[v] & LISTED == 0:
        mark[v] |= LISTED
        if v < masters:
            listed[counts[0]] = v
            counts[0] += 1
        else:
            listed[masters + counts[1]] = v
            counts[1] += 1


@njit(cache=True, inline="always")
def put_aside(v, value, middle_below, mark, middle, far, state, waiting):
    """Put a vertex that is not near onto the pile where it belongs, unless it is there."""
    if value < middle_below:
        waiting[0] = min(waiting[0], value)
        if mark[v] & MIDDLE == 0:
            mark[v] |= MIDDLE
            middle[state[IN_MIDDLE]] = v
            state[IN_MIDDLE] += 1
    else:
        waiting[1] = min(waiting[1], value)
        if mark[v] & FAR == 0:
            mark[v] |= FAR
            far[state[IN_FAR]] = v
            state[IN_FAR] += 1


@njit(cache=True)
def relax_near_step(
    offsets, arcs, weight, distance, parent, mark, queues, state, waiting, limits, quantum, listing, offers
):  # fmt: skip
    """Relax the out-arcs of near vertices, and of those that become near, until none is left or a quantum is used up.

    ``arcs`` and ``weight``: targets as uint32 and their weights, or both in one uint64 (weight in the upper half) and
    None. ``queues`` is (ring, middle, far), ``listing`` (masters, listed, counts), ``offers`` (first, value, parent):
    a vertex from ``first`` on is not lowered here; its master is offered the value, and answers if it takes one.
    Invariant  every vertex whose value has fallen since its arcs were last relaxed is in the ring, or in the pile of
               its value; in each at most once. parent[v] gave v its value.
    Races      none, serial.
    Work       O(out-arcs of the vertices taken), random access to ``distance``.
    """
    ring, middle, far = queues
    masters, listed, counts = listing
    near_below, middle_below = limits
    first_offered, offered, offered_parent = offers
    edges = np.int64(0)
    while state[SIZE] > 0 and edges < quantum:
        head = state[HEAD]
        u = ring[head]
        if state[SIZE] > AHEAD and head + AHEAD < ring.size:
            prefetch(offsets, ring[head + AHEAD])
            prefetch(distance, ring[head + AHEAD])
            soon = offsets[ring[head + AHEAD // 2]]
            prefetch(arcs, soon)
            prefetch(arcs, soon + 64 // arcs.itemsize)
        state[HEAD] = head + 1 if head + 1 < ring.size else 0
        state[SIZE] -= 1
        state[TAKEN] += 1
        mark[u] &= _NOT_NEAR
        mine = distance[u]
        begin, end = offsets[u], offsets[u + 1]
        edges += end - begin
        for e in range(np.uint64(begin), np.uint64(end)):
            if weight is None:
                v, reached = arcs[e] & _LOWER, mine + (arcs[e] >> _HALF)
            else:
                v, reached = arcs[e], mine + weight[e]
            if reached < distance[v]:
                if v >= first_offered:
                    if reached < offered[v]:
                        offered[v] = reached
                        offered_parent[v] = u
                        put_on_list(v, mark, masters, listed, counts)
                    continue
                distance[v] = reached
                parent[v] = u
                if reached < near_below:
                    admit_near(v, mark, ring, state, masters, listed, counts)
                else:
                    put_aside(v, reached, middle_below, mark, middle, far, state, waiting)
    state[EDGES] += edges


@njit(cache=True)
def open_bucket_step(distance, mark, queues, state, waiting, limits, most, listing):
    """Move what is below the new limits to where it belongs: from the far pile to the middle one, then into the ring.

    Invariant  as relax_near_step, for the new limits; after: ``waiting`` is exact. near_below <= middle_below, and the
               far pile is looked at only if middle_below has grown beyond the smallest value in it.
    Races      none, serial.   Work  O(middle pile), and O(far pile) if that is looked at.
    """
    ring, middle, far = queues
    masters, listed, counts = listing
    near_below, middle_below = limits
    if waiting[1] < middle_below:
        kept = 0
        waiting[1] = most
        for i in range(state[IN_FAR]):
            v = far[i]
            value = distance[v]
            if value >= middle_below:
                far[kept] = v
                kept += 1
                waiting[1] = min(waiting[1], value)
            elif value >= waiting[2] and mark[v] & MIDDLE == 0:
                mark[v] |= MIDDLE
                middle[state[IN_MIDDLE]] = v
                state[IN_MIDDLE] += 1
        state[IN_FAR] = kept
    kept = 0
    waiting[0] = most
    for i in range(state[IN_MIDDLE]):
        v = middle[i]
        value = distance[v]
        if value >= near_below:
            middle[kept] = v
            kept += 1
            waiting[0] = min(waiting[0], value)
        else:
            mark[v] &= _NOT_MIDDLE
            if value >= waiting[2]:  # else it was near already
                admit_near(v, mark, ring, state, masters, listed, counts)
    state[IN_MIDDLE] = kept
    waiting[2] = near_below


@njit(cache=True)
def notice_step(vertices, origin, distance, parent, mark, queues, state, waiting, limits, listing):
    """The values of these vertices were lowered by a message from ``origin``.

    Invariant  as relax_near_step; parent[v] is -2 - origin.   Races  none, serial.   Work  O(vertices).
    """
    ring, middle, far = queues
    masters, listed, counts = listing
    near_below, middle_below = limits
    for v in vertices:
        parent[v] = -2 - origin
        if distance[v] < near_below:
            admit_near(v, mark, ring, state, masters, listed, counts)
        else:
            put_aside(v, distance[v], middle_below, mark, middle, far, state, waiting)
