"""Core values from the core's index, without a round: row minima, or the closed form where the diameter is at most 2.

``distance[u, v]`` is the number of edges on a shortest path u -> v inside the core, uint8, FAR where there is none.
``near`` is the same for distances up to 1 only, one bit per vertex: bit v % 64 of near[u, v // 64].
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.hub_core.kernels.closure import close_core_step

FAR = 255
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_UNSET = np.int32(2**31 - 1)


@njit(cache=True, parallel=True)
def index_core_step(begin, end, targets, distance):
    """distance[u] = the hops from u to every vertex of the core over core edges; returns the largest that there is.

    Invariant  exact, unless the result is FAR or more: then there is a distance that a byte does not hold.
    Races      iteration u writes row u only.   Work  O(k * core edges) at most, usually far less.
    """
    k = distance.shape[0]
    farthest = np.zeros(k, np.int32)
    for u in prange(k):
        value = np.full(k, -1, np.int32)
        value[u] = 0
        close_core_step(begin, end, targets, value)
        for v in range(k):
            distance[u, v] = FAR if value[v] < 0 or value[v] >= FAR else value[v]
            farthest[u] = max(farthest[u], value[v])
    return farthest.max()


@njit(cache=True, parallel=True)
def pack_near_step(distance, near):
    """The index's distances up to 1 as bits.

    Invariant  all of ``near`` is written.   Races  iteration u writes row u only.   Work  O(k * k).
    """
    k = distance.shape[0]
    for u in prange(k):
        near[u, :] = _NONE
        for v in range(k):
            near[u, v >> 6] |= np.uint64(distance[u, v] <= 1) << np.uint64(v & 63)


@njit(cache=True)
def close_row_step(distance, diameter, value, closed):
    """closed[v] = min over u of value[u] + distance[u, v], for one row of values.

    Invariant  -1 is no value. With m the smallest value, the minima alone bring everything to m + diameter, so that a
               vertex from m + diameter - 1 on improves nothing; a diameter below 0 means that there is none.
    Races      none, serial.   Work  k per vertex that counts.
    """
    k = value.size
    least = _UNSET
    for v in range(k):
        closed[v] = value[v] if value[v] >= 0 else _UNSET
        least = min(least, closed[v])
    bound = _UNSET if diameter < 0 or least == _UNSET else least + max(diameter - 1, 1)
    for u in range(k):
        base = value[u]
        if 0 <= base < bound:
            row = distance[u]
            for v in range(k):
                there = np.int32(row[v]) + base if row[v] != FAR else _UNSET
                closed[v] = there if there < closed[v] else closed[v]
    for v in range(k):
        closed[v] = -1 if closed[v] == _UNSET else closed[v]


@njit(cache=True, parallel=True)
def close_rows_step(distance, diameter, values, closed):
    """close_row_step for every row of a batch.

    Invariant  as there.   Races  iteration i writes row i only.   Work  the sum of theirs.
    """
    for i in prange(values.shape[0]):
        close_row_step(distance, diameter, values[i], closed[i])


@njit(cache=True)
def close_row_within_two_step(near, value, closed):
    """The closed form of a core in which all vertices are within two hops: with m the smallest value,

    closed[v] = min(value[v], m + 1 next to a minimum, else m + 2).

    Invariant  -1 is no value; a row without any stays so.   Races  none, serial.
    Work       k, and k / 64 per minimum.
    """
    k = value.size
    least = _UNSET
    for v in range(k):
        if 0 <= value[v] < least:
            least = value[v]
    if least == _UNSET:
        closed[:] = -1
        return
    next_to = np.zeros(near.shape[1], np.uint64)
    for u in range(k):
        if value[u] == least:
            row = near[u]
            for w in range(next_to.size):
                next_to[w] |= row[w]
    for v in range(k):
        there = least + np.int32(2) - np.int32((next_to[v >> 6] >> np.uint64(v & 63)) & _ONE)
        closed[v] = value[v] if 0 <= value[v] < there else there


@njit(cache=True, parallel=True)
def close_rows_within_two_step(near, values, closed):
    """close_row_within_two_step for every row.

    Invariant  as there.   Races  iteration i writes row i only.   Work  the sum of theirs.
    """
    for i in prange(values.shape[0]):
        close_row_within_two_step(near, values[i], closed[i])
