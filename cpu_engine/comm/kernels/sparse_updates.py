"""From a list of changed vertices to buffers of (place, value) for each peer; see cpu_engine/comm/sparse_updates.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

LISTED = 4  # bit of a vertex's mark: it is in the list of changes
_UNLISTED = np.uint8(0xFF ^ LISTED)


class Copies(NamedTuple):
    """By vertex v from ``first``: it is at place at[k] of list which[k] for k in offsets[v - first : v - first + 2]."""

    first: int
    offsets: np.ndarray
    which: np.ndarray
    at: np.ndarray


class Buffers(NamedTuple):
    """Room for (place, value) pairs: list q's is from rooms[q] to rooms[q + 1], and counts[q] pairs were due."""

    rooms: np.ndarray
    places: np.ndarray
    values: np.ndarray
    counts: np.ndarray


@njit(cache=True)
def unlist_step(listed, mark):
    """Invariant  after: none of these is marked as listed.   Races  none, serial.   Work  O(listed)."""
    for v in listed:
        mark[v] &= _UNLISTED


@njit(cache=True)
def buffer_updates_step(listed, mark, copies, values, last_sent, begins, buffers):
    """Put each listed vertex that is smaller than last sent into the buffers of the peers that hold a copy of it.

    List q's part of ``last_sent`` begins at begins[q].
    Invariant  counts[q] pairs were due, of which as many as fit are in the buffer and count as sent; a vertex that is
               taken is no longer marked as listed.
    Races      none, serial.
    Work       O(copies of the listed vertices).
    """
    first, offsets, which, at = copies.first, copies.offsets, copies.which, copies.at
    rooms, places, pending, counts = buffers.rooms, buffers.places, buffers.values, buffers.counts
    for v in listed:
        mark[v] &= _UNLISTED
        value = values[v]
        for k in range(offsets[v - first], offsets[v - first + 1]):
            q, position = which[k], at[k]
            slot = begins[q] + position
            if value < last_sent[slot]:
                count = counts[q]
                counts[q] = count + 1
                if rooms[q] + count < rooms[q + 1]:
                    last_sent[slot] = value
                    places[rooms[q] + count] = position
                    pending[rooms[q] + count] = value


@njit(cache=True)
def gather_below_step(begin, indices, values, limit, most, out):
    """The values of a list side by side, those that are not below ``limit`` as ``most``.

    Invariant  out[i] is the i-th value or ``most``.   Races  none, serial.   Work  O(entries).
    """
    for i in range(out.size):
        value = values[begin + i if indices is None else np.int64(indices[i])]
        out[i] = value if value < limit else most
