"""Shortest paths on a part, near vertices first: those below a limit are relaxed until none is left, the others wait.

What waits is in two piles, so that opening the next bucket does not mean looking at everything: the middle one up to
some buckets away, the far one beyond. Encodings: ``distance`` is uint32, int64 or float64, its largest value (inf) for
what is not reached; ``mark`` has the bits NEAR (in the ring), MIDDLE, FAR (in that pile, perhaps no longer rightly) and
LISTED (comm/kernels/sparse_updates.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from cpu_engine.comm.kernels.sparse_updates import LISTED
from cpu_engine.intrinsics.lists import append
from cpu_engine.intrinsics.prefetch import prefetch

NEAR, MIDDLE, FAR = 1, 2, 8
HEAD, SIZE, IN_MIDDLE, IN_FAR, EDGES, TAKEN = 0, 1, 2, 3, 4, 5  # of ``state``; the first two are the ring's
STATE = 6
AHEAD = 8  # vertices in the ring whose rows are asked for before their turn
_LOWER, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_NOT_NEAR = np.uint8(0xFF ^ NEAR)
_NOT_MIDDLE = np.uint8(0xFF ^ MIDDLE)


class Arcs(NamedTuple):
    """A part's out-arcs: targets as uint32 and their weights, or both in one uint64 (weight in the upper half)."""

    begin: np.ndarray
    end: np.ndarray
    arcs: np.ndarray
    weight: np.ndarray | None  # None: in the arcs


class Near(NamedTuple):
    """Distances, and the vertices that are still to be relaxed."""

    distance: np.ndarray
    parent: np.ndarray
    mark: np.ndarray
    ring: np.ndarray  # of near vertices
    middle: np.ndarray  # the two piles
    far: np.ndarray
    state: np.ndarray  # int64: see the indices above
    waiting: np.ndarray  # smallest value in the middle pile or less, in the far one or less, the limit before this one


class Limits(NamedTuple):
    """What is near, and what belongs into the middle pile: all values below."""

    near: Any
    middle: Any


class Changes(NamedTuple):
    """The list of vertices whose values are to be sent: masters from the front, mirrors from ``masters`` on."""

    masters: int
    vertices: np.ndarray
    counts: np.ndarray


class Offers(NamedTuple):
    """Values that masters are offered: a vertex from ``first`` on is not lowered here, but by its master."""

    first: Any
    value: np.ndarray
    parent: np.ndarray


@njit(cache=True, inline="always")
def admit_near(v, near, changes):
    """Put a vertex into the ring and onto the list of changes, unless it is there."""
    mark, ring, state = near.mark, near.ring, near.state
    if mark[v] & NEAR == 0:
        mark[v] |= NEAR
        at = state[HEAD] + state[SIZE]
        ring[at if at < ring.size else at - ring.size] = v
        state[SIZE] += 1
    put_on_list(v, mark, changes)


@njit(cache=True, inline="always")
def put_on_list(v, mark, changes):
    """Put a vertex onto the list of changes, unless it is there."""
    masters, listed, counts = changes
    if mark[v] & LISTED == 0:
        mark[v] |= LISTED
        if v < masters:
            listed[counts[0]] = v
            counts[0] += 1
        else:
            listed[masters + counts[1]] = v
            counts[1] += 1


@njit(cache=True, inline="always")
def put_aside(v, value, middle_below, near):
    """Put a vertex that is not near onto the pile where it belongs, unless it is there."""
    _, _, mark, _, middle, far, state, waiting = near
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
def follow_arc(arcs, weight, e, mine):
    """The target, and the value that the arc gives it. ``weight`` is an argument: so numba leaves one branch out."""
    if weight is None:
        return arcs[e] & _LOWER, mine + (arcs[e] >> _HALF)
    return arcs[e], mine + weight[e]


@njit(cache=True)
def relax_near_step(rows, near, limits, quantum, changes, offers):
    """Relax the out-arcs of near vertices, and of those that become near, until none is left or a quantum is used up.

    A vertex from ``offers.first`` on is not lowered here; its master is offered the value, and answers if it takes one.

    Invariant  every vertex whose value has fallen since its arcs were last relaxed is in the ring, or in the pile of
               its value; in each at most once. parent[v] gave v its value.
    Races      none, serial.
    Work       O(out-arcs of the vertices taken), random access to ``distance``.
    """
    row_begin, row_end, arcs, weight = rows
    distance, parent, mark, ring, _, _, state, _ = near
    near_below, middle_below = limits
    first_offered, offered, offered_parent = offers
    edges = np.int64(0)
    while state[SIZE] > 0 and edges < quantum:
        head = state[HEAD]
        u = ring[head]
        if state[SIZE] > AHEAD and head + AHEAD < ring.size:
            prefetch(row_begin, ring[head + AHEAD])
            prefetch(row_end, ring[head + AHEAD])
            prefetch(distance, ring[head + AHEAD])
            soon = row_begin[ring[head + AHEAD // 2]]
            prefetch(arcs, soon)
            prefetch(arcs, soon + 64 // arcs.itemsize)
        state[HEAD] = head + 1 if head + 1 < ring.size else 0
        state[SIZE] -= 1
        state[TAKEN] += 1
        mark[u] &= _NOT_NEAR
        mine = distance[u]
        begin, end = row_begin[u], row_end[u]
        edges += end - begin
        for e in range(np.uint64(begin), np.uint64(end)):
            v, reached = follow_arc(arcs, weight, e, mine)
            if reached < distance[v]:
                if v >= first_offered:
                    if reached < offered[v]:
                        offered[v] = reached
                        offered_parent[v] = u
                        put_on_list(v, mark, changes)
                    continue
                distance[v] = reached
                parent[v] = u
                if reached < near_below:
                    admit_near(v, near, changes)
                else:
                    put_aside(v, reached, middle_below, near)
    state[EDGES] += edges


@njit(cache=True)
def sift_pile(pile, held, limit, most, near, changes):
    """Move what is below ``limit`` from a pile to the next nearer place; ``state[held]`` is the pile's size."""
    distance, _, mark, _, middle, _, state, waiting = near
    nth = 0 if held == IN_MIDDLE else 1
    kept = 0
    waiting[nth] = most
    for i in range(state[held]):
        v = pile[i]
        value = distance[v]
        if value >= limit:
            kept = append(pile, kept, v)
            waiting[nth] = min(waiting[nth], value)
            continue
        if held == IN_MIDDLE:
            mark[v] &= _NOT_MIDDLE
            if value >= waiting[2]:  # else it was near already
                admit_near(v, near, changes)
        elif value >= waiting[2] and mark[v] & MIDDLE == 0:
            mark[v] |= MIDDLE
            state[IN_MIDDLE] = append(middle, state[IN_MIDDLE], v)
    state[held] = kept


@njit(cache=True)
def open_bucket_step(near, limits, most, changes):
    """Move what is below the new limits to where it belongs: from the far pile to the middle one, then into the ring.

    Invariant  as relax_near_step, for the new limits; after: ``waiting`` is exact. limits.near <= limits.middle, and
               the far pile is looked at only if limits.middle has grown beyond the smallest value in it.
    Races      none, serial.   Work  O(middle pile), and O(far pile) if that is looked at.
    """
    if near.waiting[1] < limits.middle:
        sift_pile(near.far, IN_FAR, limits.middle, most, near, changes)
    sift_pile(near.middle, IN_MIDDLE, limits.near, most, near, changes)
    near.waiting[2] = limits.near


@njit(cache=True)
def notice_step(vertices, origin, near, limits, changes):
    """Take note that a message from ``origin`` has lowered the values of these vertices.

    Invariant  as relax_near_step; parent[v] is -2 - origin.   Races  none, serial.   Work  O(vertices).
    """
    distance = near.distance
    for v in vertices:
        near.parent[v] = -2 - origin
        if distance[v] < limits.near:
            admit_near(v, near, changes)
        else:
            put_aside(v, distance[v], limits.middle, near)


@njit(cache=True)
def find_tight_arcs_step(rows, distance, most, wanted, found):
    """found[v] = a vertex here whose arc to v gives exactly ``wanted[v]``, which is ``most`` where none is asked for.

    Invariant  distances of vertices with out-arcs are final; ``found`` arrives as -1.
    Races      none, serial.   Work  O(arcs).
    """
    row_begin, row_end, arcs, weight = rows
    for u in range(row_begin.size):
        mine = distance[u]
        if mine == most:
            continue
        for e in range(np.uint64(row_begin[u]), np.uint64(row_end[u])):
            v, reached = follow_arc(arcs, weight, e, mine)
            if reached == wanted[v] and found[v] < 0:
                found[v] = u
