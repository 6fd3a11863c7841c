"""A hash table from sparse 64-bit ids to their positions in a sorted list.

Encoding: ``slots[h] == 0`` is empty, otherwise ``slots[h] - 1`` is a position in ``ids``; open addressing, linear
probing, at most half full, size a power of two. The keys are not stored: ``ids`` has them.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing: the high bits are well mixed


@njit(cache=True, inline="always")
def _home(key, shift):
    return np.int64((np.uint64(key) * GOLDEN) >> shift)


@njit(cache=True)
def fill_table_step(ids, slots, shift):
    """Enter every id; ``slots`` arrives as zeros, ``shift`` is 64 - log2(size).

    Invariant  ids are distinct.   Races  none, serial.   Work  O(ids) expected.
    """
    mask = slots.shape[0] - 1
    for i in range(ids.shape[0]):
        h = _home(ids[i], shift)
        while slots[h] != 0:
            h = (h + 1) & mask
        slots[h] = i + 1


@njit(cache=True, parallel=True)
def look_up_step(keys, ids, slots, shift, position):
    """Write the position of every key; each key must be one of ``ids``.

    Invariant  ids[position[i]] == keys[i].   Races  iteration i writes position[i] only.   Work  O(keys) expected.
    """
    mask = slots.shape[0] - 1
    for i in prange(keys.shape[0]):
        h = _home(keys[i], shift)
        while ids[slots[h] - 1] != keys[i]:
            h = (h + 1) & mask
        position[i] = slots[h] - 1
