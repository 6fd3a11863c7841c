"""Hash tables of sparse 64-bit ids: the set of them, and the way to their positions in a sorted list.

Encoding: open addressing, linear probing, at most half full, size a power of two. In the set, -1 is empty (ids are not
negative). In the map, ``slots[h] == 0`` is empty, otherwise ``slots[h] - 1`` is a position in ``ids``.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing: the high bits are well mixed


@njit(cache=True, inline="always")
def _home(key, shift):
    return np.int64((np.uint64(key) * GOLDEN) >> shift)


@njit(cache=True)
def collect_ids_step(keys, begin, known, count, shift):
    """Enter the keys from ``begin`` on into the set ``known``, which has ``count`` ids; stop when it is half full.

    Invariant  returns the first key that is not in yet, and the new count.   Races  none, serial.
    Work       O(keys) expected, random access to ``known``.
    """
    mask = known.shape[0] - 1
    for i in range(begin, keys.shape[0]):
        if 2 * count >= known.shape[0]:
            return i, count
        key = np.int64(keys[i])
        h = _home(key, shift)
        while known[h] != key:
            if known[h] == -1:
                known[h] = key
                count += 1
                break
            h = (h + 1) & mask
    return keys.shape[0], count


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
