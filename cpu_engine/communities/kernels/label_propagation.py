"""The most frequent label among the neighbours of each vertex, for all vertices at once.

Labels are counted in an open-addressed table that belongs to the thread; a vertex uses only as much of it as its own
degree needs, so that the table of all but the hubs stays in the nearest cache. An entry is (label + 1) << 32 | count,
zero where there is none. Which label leads is known while counting: the one that reaches the highest count, or the
smaller of two that do.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy import int64, uint64

from cpu_engine.intrinsics.atomics import atomic_add

BLOCK = 128  # vertices that a thread takes at a time
_SPREAD = np.uint64(0x9E3779B1)  # 2**32 over the golden ratio, odd (Knuth 6.4)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_NONE = np.uint64(0)


@njit(cache=True)
def count_labels(row, label, table, bits, best, most):
    """Count the labels of a row's vertices in the first 2**bits entries; returns the leading label and its count."""
    mask, shift = (_ONE << uint64(bits)) - _ONE, _HALF - uint64(bits)
    for i in range(row.size):
        key = uint64(label[row[i]])
        place = ((key * _SPREAD) & _LOW) >> shift
        wanted = key + _ONE
        entry = table[place]
        while entry != _NONE and entry >> _HALF != wanted:
            place = (place + _ONE) & mask
            entry = table[place]
        if entry == _NONE:
            entry = wanted << _HALF
        entry += _ONE
        table[place] = entry
        count = entry & _LOW
        if count > most or (count == most and key < best):
            best, most = key, count
    return best, most


@njit(cache=True)
def choose_label(first, second, label, table):
    """The most frequent label in two rows together, the smallest of several; there is at least one entry."""
    size = first.size + second.size
    if size <= 2:
        smallest = label[first[0]] if first.size > 0 else label[second[0]]
        for i in range(first.size):
            smallest = min(smallest, label[first[i]])
        for i in range(second.size):
            smallest = min(smallest, label[second[i]])
        return smallest
    bits = 3
    while (1 << bits) < 2 * size:
        bits += 1
    best, most = count_labels(first, label, table, bits, _NONE, _NONE)
    best, most = count_labels(second, label, table, bits, best, most)
    table[: 1 << bits] = _NONE
    return int64(best)


@njit(cache=True, parallel=True)
def propagate_labels_step(
    out_offsets, out_targets, in_offsets, in_sources, directed, label, fresh, tables, changed, next_block
):
    """fresh[v] = the most frequent label of v's neighbours, the smallest of several; its own where it has none.

    Invariant  label is only read; in-rows count as well if ``directed``. Tables are zero before and after.
    Races      thread t alone uses tables[t] and changed[t]; blocks of vertices are claimed at ``next_block``.
    Work       O(m).

    ``changed[t]`` counts the vertices whose label is new.
    """
    n = label.size
    for t in prange(changed.size):
        moved = 0
        block = atomic_add(next_block, 0, 1)
        while block * BLOCK < n:
            for v in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
                first = out_targets[out_offsets[v] : out_offsets[v + 1]]
                second = in_sources[in_offsets[v] : in_offsets[v + 1]] if directed else in_sources[:0]
                if first.size + second.size > 0:
                    fresh[v] = choose_label(first, second, label, tables[t])
                    moved += fresh[v] != label[v]
            block = atomic_add(next_block, 0, 1)
        changed[t] = moved
