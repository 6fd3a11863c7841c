"""One round of label propagation, the check's way: short rows are sorted, long ones counted in an array of all labels.

It shares nothing with the run, which counts in hash tables.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add

BLOCK = 128  # vertices that a thread takes at a time
SHORT = 32  # neighbours of a row that is sorted, by insertion; labels soon agree, and then that is one pass


@njit(cache=True)
def sort_labels(values):
    """Sort ``values`` in place, ascending."""
    for i in range(1, values.size):
        value, at = values[i], i
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@njit(cache=True)
def longest_run(values):
    """The value of the longest run in ascending ``values``, the smallest of several; there is at least one value."""
    best, most, begin = values[0], 0, 0
    for i in range(1, values.size + 1):
        if i == values.size or values[i] != values[begin]:
            if i - begin > most:
                best, most = values[begin], i - begin
            begin = i
    return best


@njit(cache=True)
def most_counted(first, second, label, counts):
    """The most frequent label in two rows together, the smallest of several; ``counts`` are zero before and after."""
    for row in (first, second):
        for i in range(row.size):
            counts[label[row[i]]] += 1
    best, most = label[first[0]] if first.size else label[second[0]], 0
    for row in (first, second):
        for i in range(row.size):
            value = label[row[i]]
            count = counts[value]
            counts[value] = 0  # seen
            if count > most or (count == most and value < best):
                best, most = value, count
    return best


@njit(cache=True, parallel=True)
def repeat_round_step(
    out_offsets, out_targets, in_offsets, in_sources, directed, label, fresh, counts, changed, ticket
):
    """fresh[v] = the most frequent label of v's neighbours, the smallest of several; its own where it has none.

    Invariant  label is only read, below counts.shape[1]; in-rows count as well if ``directed``. Counts are zero before
               and after.
    Races      thread t alone uses counts[t] and changed[t]; blocks of vertices are claimed at ``ticket``.
    Work       O(m), and up to SHORT / 4 moves per neighbour in a short row.

    ``changed[t]`` counts the vertices whose label is new.
    """
    n = label.size
    for t in prange(changed.size):
        room, moved = np.empty(SHORT, label.dtype), 0
        block = atomic_add(ticket, 0, 1)
        while block * BLOCK < n:
            for v in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
                first = out_targets[out_offsets[v] : out_offsets[v + 1]]
                second = in_sources[in_offsets[v] : in_offsets[v + 1]] if directed else in_sources[:0]
                held = first.size + second.size
                if held > SHORT:
                    fresh[v] = most_counted(first, second, label, counts[t])
                elif held > 0:
                    for i in range(first.size):
                        room[i] = label[first[i]]
                    for i in range(second.size):
                        room[first.size + i] = label[second[i]]
                    sort_labels(room[:held])
                    fresh[v] = longest_run(room[:held])
                else:
                    fresh[v] = label[v]
                moved += fresh[v] != label[v]
            block = atomic_add(ticket, 0, 1)
        changed[t] = moved
