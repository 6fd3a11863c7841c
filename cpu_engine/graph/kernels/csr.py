"""From scattered entries to compressed rows: what is done bucket by bucket, within a core's cache, and once per vertex.

Encodings are those of radix_scatter.py. No comparison sort of edges anywhere: rows come out sorted because they are
written by a transposition that visits the other side in ascending order. Lanes take the next bucket by ticket; a
bucket's rows belong to it alone, so that nothing depends on which lane takes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add


class Buckets(NamedTuple):
    """Bucket b is entries[begin[b]:begin[b + 1]]; a launch takes those of more than ``above``, at most ``up_to``."""

    entries: np.ndarray
    columns: np.ndarray  # the memory of ``entries``, which are lost
    begin: np.ndarray
    above: int
    up_to: int


class Gathered(NamedTuple):
    """Rows by bucket: that at place q of bucket b has size[its position] columns from begin[b * rows + q] on."""

    begin: np.ndarray
    size: np.ndarray
    kept: np.ndarray  # columns in each bucket, without gaps


@njit(cache=True)
def begin_rows(entries, bits, begin):
    """Set begin[q] to where row q will begin when these entries are sorted by row."""
    for q in range(begin.shape[0]):
        begin[q] = 0
    for entry in entries:
        begin[np.int64(entry) >> bits] += 1
    end = np.int64(0)
    for q in range(begin.shape[0]):
        size = begin[q]
        begin[q] = end
        end += size


@njit(cache=True)
def _gather_buckets(buckets, shape, ticket, gathered, scratch, seen):
    entries, columns, bucket_begin, above, up_to = buckets
    row_begin, row_size, kept = gathered
    log_b, group, bits, _ = shape
    mask, rows = (1 << bits) - 1, row_begin.shape[0] >> log_b
    ratio, distinct = entries.itemsize // columns.itemsize, seen.shape[0] > 0
    b = atomic_add(ticket, 0, 1)
    while b < kept.shape[0]:
        lo, hi = bucket_begin[b], bucket_begin[b + 1]
        if above < hi - lo <= up_to:
            # A counting sort by row: ends[q] is where row q begins, and after the scatter where it ends.
            ends, unsorted = row_begin[b * rows : (b + 1) * rows], entries[lo:hi]
            begin_rows(unsorted, bits, ends)
            for word in unsorted:
                entry = np.int64(word)
                end = ends[entry >> bits]
                ends[entry >> bits] = end + 1
                scratch[end] = entry & mask
            begin, at = np.int64(0), lo * ratio
            for q in range(rows):
                first, end = at, ends[q]
                ends[q] = at
                for e in range(begin, end):
                    c = np.int64(scratch[e])
                    columns[at] = c
                    if distinct:
                        # One bit per position, so that the set stays in the core's own cache; all clear between rows.
                        word = seen[c >> 6]
                        bit = np.uint64(1) << np.uint64(c & 63)
                        seen[c >> 6] = word | bit
                        at += 1 if word & bit == 0 else 0  # no branch: duplicates come at random
                    else:
                        at += 1
                if distinct:
                    for e in range(first, at):
                        seen[columns[e] >> 6] = 0
                position = (q >> group << log_b | b) << group | q & ((1 << group) - 1)
                if position < row_size.shape[0]:
                    row_size[position] = at - first
                begin = end
            kept[b] = at - lo * ratio
        b = atomic_add(ticket, 0, 1)


@njit(cache=True, parallel=True)
def gather_rows_step(buckets, shape, ticket, gathered, scratch, seen):
    """Turn buckets into rows, in place, dropping repeated columns but the first.

    Invariant  see Buckets and Gathered; a row is in the order of the edge list.
    Races      a bucket belongs to one lane, as do scratch[lane] (``up_to`` long) and seen[lane] (uint64 zeros, a bit
               per position; of size 0: repeated columns are kept).
    Work       O(entries), random access within one bucket and within ``seen``.
    """
    for lane in prange(scratch.shape[0]):
        _gather_buckets(buckets, shape, ticket, gathered, scratch[lane], seen[lane])


@njit(cache=True, parallel=True)
def count_columns_step(columns, bucket_begin, kept, counts):
    """Add to counts[lane, c] the number of entries in column c.

    Invariant  over all lanes every kept entry is counted once.   Races  counts[lane] is the lane's own.
    Work       O(entries), random access to counts[lane].
    """
    lanes = counts.shape[0]
    for lane in prange(lanes):
        count = counts[lane]
        for b in range(lane, kept.shape[0], lanes):
            for e in range(bucket_begin[b], bucket_begin[b] + kept[b]):
                count[columns[e]] += 1


@njit(cache=True)
def rank_by_degree_step(degree, start, label, order):
    """Number the positions of non-zero degree by descending degree, ties by ascending position (a counting sort).

    Invariant  ``start`` arrives as zeros[max degree + 2]; after: order[label[p]] == p; label[p] == -1 for degree 0.
    Races      none, serial.
    Work       O(positions + max degree).
    """
    for p in range(degree.shape[0]):
        start[degree[p]] += 1
    at = 0
    for d in range(start.shape[0] - 1, 0, -1):
        size = start[d]
        start[d] = at
        at += size
    for p in range(degree.shape[0]):
        d = degree[p]
        if d == 0:
            label[p] = -1
        else:
            label[p] = start[d]
            order[start[d]] = p
            start[d] += 1


@njit(cache=True, parallel=True)
def locate_rows_step(order, slot_begin, row_size, shape, row_begin, sizes):
    """Write where the row of each vertex begins and how long it is, in the order of the internal ids.

    Invariant  the row at place q of bucket b begins at slot_begin[b * rows + q].
    Races      iteration u writes only row_begin[u] and sizes[u].
    Work       O(vertices), random access.
    """
    log_b, group, _, _ = shape
    mask, high, low = (1 << log_b) - 1, log_b + group, (1 << group) - 1
    rows = slot_begin.shape[0] >> log_b
    for u in prange(order.shape[0]):
        p = np.int64(order[u])
        row_begin[u] = slot_begin[((p >> group) & mask) * rows + ((p >> high) << group | p & low)]
        sizes[u] = row_size[p]


@njit(cache=True)
def _settle_buckets(entries, entry_weight, bucket_begin, shape, label, offsets, ticket, cursor, columns, weight):
    log_b, group, bits, _ = shape
    mask = (1 << bits) - 1
    weighted = entry_weight.shape[0] > 0
    labelled = label.shape[0] > 0
    positions = label.shape[0] if labelled else offsets.shape[0] - 1
    buckets = bucket_begin.shape[0] - 1
    b = atomic_add(ticket, 0, 1)
    while b < buckets:
        for q in range(cursor.shape[0]):
            position = (q >> group << log_b | b) << group | q & ((1 << group) - 1)
            if position < positions:
                v = np.int64(label[position]) if labelled else position
                cursor[q] = offsets[max(v, 0)]
        for e in range(bucket_begin[b], bucket_begin[b + 1]):
            entry = np.int64(entries[e])
            at = cursor[entry >> bits]
            cursor[entry >> bits] = at + 1
            columns[at] = entry & mask
            if weighted:
                weight[at] = entry_weight[e]
        b = atomic_add(ticket, 0, 1)


@njit(cache=True, parallel=True)
def settle_rows_step(entries, entry_weight, bucket_begin, shape, label, offsets, ticket, cursors, columns, weight):
    """Scatter each bucket's entries to their final rows, in order.

    Invariant  the row of position p goes to offsets[label[p]] and on (label of size 0: p itself); rows come out sorted
               because the buckets are.
    Races      a bucket's rows belong to one lane, as does cursors[lane] (an int64 per place in a bucket).
    Work       O(entries), random access within the rows of one bucket.
    """
    for lane in prange(cursors.shape[0]):
        _settle_buckets(
            entries, entry_weight, bucket_begin, shape, label, offsets, ticket, cursors[lane], columns, weight
        )


@njit(cache=True)
def mark_present_step(ids, first, present):
    """Set ``present[id - first]`` for every id.   Races  none, serial.   Work  O(ids)."""
    for i in range(ids.shape[0]):
        present[ids[i] - first] = 1
