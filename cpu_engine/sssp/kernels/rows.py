"""Rows of weighted edges, lightest first: the one-time preparation of a graph for shortest paths.

A word holds the target in its lower ``bits`` and the weight above. Where weights are too long or not integers, words
are the targets alone and weights lie in an array of their own, in the same order.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add

SHORT = 48  # rows up to this length are sorted by insertion
RUN = 16  # length of the runs that a merge sort begins with
DIGIT = 8


@njit(cache=True)
def transpose_weights_step(out_offsets, out_targets, weight, in_offsets, cursor, in_weight):
    """Bring the weights into the order of the in-rows.

    Invariant  in-rows are ascending by source, as out-rows are visited; equal sources keep their order.
    Races      none, serial.
    Work       one pass over the edges, writing all over the place.
    """
    cursor[:] = in_offsets[:-1]
    for u in range(out_offsets.size - 1):
        for e in range(out_offsets[u], out_offsets[u + 1]):
            v = out_targets[e]
            in_weight[cursor[v]] = weight[e]
            cursor[v] += 1


@njit(cache=True)
def sort_digits(row, spare, shift, stop, counts):
    """Sort by the bits ``shift:stop``, lowest digit first; equal ones keep their order."""
    while shift < stop:
        counts[:] = 0
        for i in range(row.size):
            counts[(row[i] >> shift) & 255] += 1
        end = 0
        for digit in range(256):
            size = counts[digit]
            counts[digit] = end
            end += size
        for i in range(row.size):
            digit = (row[i] >> shift) & 255
            spare[counts[digit]] = row[i]
            counts[digit] += 1
        row[:] = spare[: row.size]
        shift += DIGIT


@njit(cache=True)
def sort_short(row):
    """Sort by insertion."""
    for i in range(1, row.size):
        word = row[i]
        j = i
        while j > 0 and row[j - 1] > word:
            row[j] = row[j - 1]
            j -= 1
        row[j] = word


@njit(cache=True, parallel=True)
def pack_rows_step(cuts, offsets, targets, weight, bits, stop, ticket, spare, words):
    """Fill ``words`` with the rows' edges, and sort each row by weight.

    Invariant  targets take ``bits`` bits, words ``stop``; a row's edges stay in its place.
    Races      a stretch between two cuts is one lane's; lane t alone writes spare[t], as long as the longest row.
    Work       one pass per 8 bits of weight; short rows in one.
    """
    for lane in prange(spare.shape[0]):
        counts = np.empty(256, np.int64)
        stretch = atomic_add(ticket, 0, 1)
        while stretch < cuts.size - 1:
            for u in range(cuts[stretch], cuts[stretch + 1]):
                row = words[offsets[u] : offsets[u + 1]]
                for i in range(row.size):
                    e = offsets[u] + i
                    row[i] = np.uint64(weight[e]) << np.uint64(bits) | np.uint64(targets[e])
                if row.size <= SHORT:
                    sort_short(row)
                else:
                    sort_digits(row, spare[lane], bits, stop, counts)
            stretch = atomic_add(ticket, 0, 1)


@njit(cache=True)
def sort_pairs(keys, values, spare_keys, spare_values):
    """Sort by key, and bring the values along: short runs by insertion, then merged."""
    size = keys.size
    for first in range(0, size, RUN):
        for i in range(first + 1, min(first + RUN, size)):
            key, value = keys[i], values[i]
            j = i
            while j > first and keys[j - 1] > key:
                keys[j], values[j] = keys[j - 1], values[j - 1]
                j -= 1
            keys[j], values[j] = key, value
    run = RUN
    while run < size:
        for first in range(0, size, 2 * run):
            i, middle, last = first, min(first + run, size), min(first + 2 * run, size)
            j = middle
            for at in range(first, last):
                if j >= last or (i < middle and keys[i] <= keys[j]):
                    spare_keys[at], spare_values[at] = keys[i], values[i]
                    i += 1
                else:
                    spare_keys[at], spare_values[at] = keys[j], values[j]
                    j += 1
        keys[:] = spare_keys[:size]
        values[:] = spare_values[:size]
        run *= 2


@njit(cache=True, parallel=True)
def sort_rows_step(cuts, offsets, ticket, spare_weight, spare_words, weight, words):
    """Sort each row of (words, weight) by weight, where the two do not fit into one word.

    Invariant, races: see pack_rows_step.   Work  a merge sort per row.
    """
    for lane in prange(spare_words.shape[0]):
        stretch = atomic_add(ticket, 0, 1)
        while stretch < cuts.size - 1:
            for u in range(cuts[stretch], cuts[stretch + 1]):
                first, last = offsets[u], offsets[u + 1]
                sort_pairs(weight[first:last], words[first:last], spare_weight[lane], spare_words[lane])
            stretch = atomic_add(ticket, 0, 1)
