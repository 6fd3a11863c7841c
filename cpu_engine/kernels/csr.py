"""From an edge list to compressed rows by counting and scattering; no comparison sort of edges anywhere.

The work is done twice with the same idea. Entries are first dealt to buckets of rows (a radix pass: few write streams,
so it is kind to caches and translation buffers), then each bucket is scattered to its rows by one lane, in cache.
Lanes are static parts of the work, one per thread, with counts of their own: no atomics, and the outcome does not
depend on the number of lanes.

Encodings  position p: a vertex as the caller numbers it, 0 <= p < 2^31.
           slot q of position p: the ``log_b`` low bits of p choose the bucket, the rest the place in it, so that
           neighbouring positions fall into different buckets and ids that come sorted by degree stay balanced.
           an entry: row << 32 | column in one int64; in the first pass "row" is the place within the bucket.
           weight arrays of size 0 mean "unweighted".
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

LOW_32 = 0xFFFFFFFF


@njit(cache=True)
def _count_edges(src, dst, first, mirror, drop_loops, log_b, begin, end, counts):
    mask = (1 << log_b) - 1
    loops = 0
    for i in range(begin, end):
        u = src[i] - first
        v = dst[i] - first
        if u == v:
            loops += 1
            if drop_loops:
                continue
        counts[u & mask] += 1
        if mirror and u != v:
            counts[v & mask] += 1
    return loops


@njit(cache=True, parallel=True)
def count_edges_step(src, dst, first, mirror, drop_loops, log_b, counts, loops):
    """Count the entries of each lane for each bucket; ``loops[lane]`` counts self-loops, dropped or not.

    Invariant  lane l reads edges [E*l/lanes, E*(l+1)/lanes); a mirrored edge counts in both ends' buckets, a loop once.
    Races      lane l writes only counts[l] and loops[l].
    Work       O(E), one sequential pass.
    """
    lanes = counts.shape[0]
    total = src.shape[0]
    for lane in prange(lanes):
        begin = total * lane // lanes
        end = total * (lane + 1) // lanes
        loops[lane] = _count_edges(src, dst, first, mirror, drop_loops, log_b, begin, end, counts[lane])


@njit(cache=True)
def _deal_edges(src, dst, weight, first, mirror, drop_loops, log_b, begin, end, cursor, entries, entry_weight):
    mask = (1 << log_b) - 1
    weighted = weight.shape[0] > 0
    for i in range(begin, end):
        u = np.int64(src[i] - first)
        v = np.int64(dst[i] - first)
        if drop_loops and u == v:
            continue
        at = cursor[u & mask]
        cursor[u & mask] = at + 1
        entries[at] = (u >> log_b) << 32 | v
        if weighted:
            entry_weight[at] = weight[i]
        if mirror and u != v:
            at = cursor[v & mask]
            cursor[v & mask] = at + 1
            entries[at] = (v >> log_b) << 32 | u
            if weighted:
                entry_weight[at] = weight[i]


@njit(cache=True, parallel=True)
def deal_edges_step(src, dst, weight, first, mirror, drop_loops, log_b, cursors, entries, entry_weight):
    """Write each lane's entries to their buckets, in the order of the edge list.

    Invariant  cursors[l, b] starts where lane l's part of bucket b begins; a bucket ends up ordered by edge index.
    Races      the parts are disjoint by the counts of ``count_edges_step``.
    Work       O(E), writes to 2^log_b streams per lane.
    """
    lanes = cursors.shape[0]
    total = src.shape[0]
    for lane in prange(lanes):
        begin = total * lane // lanes
        end = total * (lane + 1) // lanes
        _deal_edges(
            src, dst, weight, first, mirror, drop_loops, log_b, begin, end, cursors[lane], entries, entry_weight
        )


@njit(cache=True)
def _gather_bucket(entries, entry_weight, lo, hi, ends, columns, weight):
    # Counting sort by row. ends[q] counts, then is where row q begins, and after the scatter where it ends.
    for e in range(lo, hi):
        ends[entries[e] >> 32] += 1
    at = lo
    for q in range(ends.shape[0]):
        size = ends[q]
        ends[q] = at
        at += size
    for e in range(lo, hi):
        row = entries[e] >> 32
        at = ends[row]
        ends[row] = at + 1
        columns[at] = np.int32(entries[e] & LOW_32)
        if entry_weight.shape[0] > 0:
            weight[at] = entry_weight[e]


@njit(cache=True)
def _drop_duplicates(columns, weight, begin, end, seen, place):
    # One bit per position, so that the set stays in the core's own cache; all clear before and after.
    weighted = weight.shape[0] > 0
    kept = begin
    for e in range(begin, end):
        c = columns[e]
        word = seen[c >> 6]
        bit = np.uint64(1) << np.uint64(c & 63)
        if word & bit != 0:
            if weighted and weight[e] < weight[begin + place[c]]:
                weight[begin + place[c]] = weight[e]
            continue
        seen[c >> 6] = word | bit
        columns[kept] = c
        if weighted:
            place[c] = kept - begin
            weight[kept] = weight[e]
        kept += 1
    for e in range(begin, kept):
        seen[columns[e] >> 6] = 0
    return kept - begin


@njit(cache=True, parallel=True)
def gather_rows_step(
    entries, entry_weight, bucket_begin, drop_duplicates, row_begin, row_size, columns, weight, seen, place
):
    """Scatter each bucket to its rows and drop repeated columns, keeping the first place and the smallest weight.

    Invariant  row_begin arrives as zeros; after: row q is columns[row_begin[q] : row_begin[q] + row_size[q]], in the
               order of the edge list; the room of dropped entries stays unused behind the row.
    Races      a bucket's rows and room belong to one lane, as do its seen (uint64 zeros, a bit per position) and place
               (int32 per position; length 0 when unweighted).
    Work       O(entries), random access within one bucket and within ``seen``.
    """
    lanes = seen.shape[0]
    buckets = bucket_begin.shape[0] - 1
    rows = row_begin.shape[0] // buckets
    for lane in prange(lanes):
        for b in range(lane, buckets, lanes):
            ends = row_begin[b * rows : (b + 1) * rows]
            sizes = row_size[b * rows : (b + 1) * rows]
            begin = bucket_begin[b]
            _gather_bucket(entries, entry_weight, begin, bucket_begin[b + 1], ends, columns, weight)
            for q in range(rows):
                end = ends[q]
                ends[q] = begin
                if drop_duplicates:
                    sizes[q] = _drop_duplicates(columns, weight, begin, end, seen[lane], place[lane])
                else:
                    sizes[q] = end - begin
                begin = end


@njit(cache=True)
def count_columns_step(row_begin, row_size, columns, count):
    """Add to ``count[c]`` the number of entries in column c.

    Invariant  every kept entry counted once.   Races  none, serial.   Work  O(entries), random access to ``count``.
    """
    for q in range(row_begin.shape[0]):
        for e in range(row_begin[q], row_begin[q] + row_size[q]):
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


@njit(cache=True)
def _count_rows(row_begin, row_size, columns, label, first, last, bucket_of, counts):
    relabel = label.shape[0] > 0
    for u in range(first, last):
        for e in range(row_begin[u], row_begin[u] + row_size[u]):
            w = columns[e]
            if relabel:
                w = label[w]
                columns[e] = w
            counts[bucket_of[w]] += 1


@njit(cache=True, parallel=True)
def count_rows_step(row_begin, row_size, columns, label, lane_rows, bucket_of, counts):
    """Count each lane's entries for each bucket of columns, first replacing every column by its label (if any given).

    Invariant  lane l reads rows [lane_rows[l], lane_rows[l + 1]); bucket_of is non-decreasing.
    Races      lane l writes only counts[l] and the columns of its own rows.
    Work       O(entries), random access to ``label`` and ``bucket_of``.
    """
    for lane in prange(counts.shape[0]):
        first, last = lane_rows[lane], lane_rows[lane + 1]
        _count_rows(row_begin, row_size, columns, label, first, last, bucket_of, counts[lane])


@njit(cache=True)
def _deal_rows(row_begin, row_size, columns, weight, first, last, bucket_of, cursor, entries, entry_weight):
    weighted = weight.shape[0] > 0
    for u in range(first, last):
        for e in range(row_begin[u], row_begin[u] + row_size[u]):
            w = np.int64(columns[e])
            b = bucket_of[w]
            at = cursor[b]
            cursor[b] = at + 1
            entries[at] = w << 32 | u
            if weighted:
                entry_weight[at] = weight[e]


@njit(cache=True, parallel=True)
def deal_rows_step(row_begin, row_size, columns, weight, lane_rows, bucket_of, cursors, entries, entry_weight):
    """Write the transposed entries (column, row) to the buckets of their columns, rows ascending within each.

    Invariant  as ``deal_edges_step``; stable, which is what makes the transposed rows come out sorted.
    Races      the parts are disjoint by the counts of ``count_rows_step``.
    Work       O(entries), writes to as many streams as there are buckets per lane.
    """
    for lane in prange(cursors.shape[0]):
        first, last = lane_rows[lane], lane_rows[lane + 1]
        _deal_rows(row_begin, row_size, columns, weight, first, last, bucket_of, cursors[lane], entries, entry_weight)


@njit(cache=True)
def _settle_bucket(entries, entry_weight, lo, hi, cursor, columns, weight):
    weighted = entry_weight.shape[0] > 0
    for e in range(lo, hi):
        row = entries[e] >> 32
        at = cursor[row]
        cursor[row] = at + 1
        columns[at] = np.int32(entries[e] & LOW_32)
        if weighted:
            weight[at] = entry_weight[e]


@njit(cache=True, parallel=True)
def settle_rows_step(entries, entry_weight, bucket_begin, cursor, columns, weight, lanes):
    """Scatter each bucket's entries to their final rows, in order.

    Invariant  cursor[row] arrives as the row's begin and leaves as its end; rows sorted because the buckets are.
    Races      a bucket's rows belong to one lane.
    Work       O(entries), random access within one bucket.
    """
    buckets = bucket_begin.shape[0] - 1
    for lane in prange(lanes):
        for b in range(lane, buckets, lanes):
            _settle_bucket(entries, entry_weight, bucket_begin[b], bucket_begin[b + 1], cursor, columns, weight)


@njit(cache=True)
def mark_present_step(ids, first, present):
    """Set ``present[id - first]`` for every id.   Races  none, serial.   Work  O(ids)."""
    for i in range(ids.shape[0]):
        present[ids[i] - first] = 1
