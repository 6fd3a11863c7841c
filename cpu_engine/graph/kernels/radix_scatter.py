"""Entries scattered to buckets of rows: the radix passes of the build, which alone touch all memory at random.

A bucket is small enough for a core's cache, so that whatever comes after is done within it (csr.py). Work is cut into
parts in the order of the input; lanes (threads) take the next part by ticket, and every part has its own share of every
bucket. So a bucket ends up in the order of the input, whichever lane did which part: no outcome depends on the threads.

Encodings  position p: a vertex as the caller numbers it, 0 <= p < span.
           bucket of p: ``log_b`` bits of p, above the ``group`` lowest; place in the bucket: its other bits. So a few
           neighbours stay together, which is kind to caches, and no more, so that ids sorted by degree stay balanced.
           entry: place << bits | column in one uint32, or one uint64 where that is too narrow.
           weight arrays of size 0 mean "unweighted".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.lines import LINE_BYTES, ask_for_line, settle_lines, stream_line

ROWS_AHEAD = 12  # how far ahead a row is asked for: rows are visited by degree, so each begins anywhere
LOOPS, LOW, HIGH = 0, 1, 2  # columns of ``facts``


class Shape(NamedTuple):
    """How entries are packed; see the module."""

    log_b: int  # 2**log_b buckets
    group: int
    bits: int  # of the column
    phase: int  # how many entries into a cache line the array of entries begins


class Edges(NamedTuple):
    """An edge list, and how it is to be read."""

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray
    first: int  # the id of position 0
    mirror: bool  # each edge counts in both directions
    drop_loops: bool


class Rows(NamedTuple):
    """Row u is the offsets[u + 1] - offsets[u] columns from begin[u] on; part i is rows parts[i] to parts[i + 1]."""

    begin: np.ndarray
    offsets: np.ndarray
    columns: np.ndarray
    weight: np.ndarray
    parts: np.ndarray


@njit(cache=True)
def _count_edge_parts(edges, shape, ticket, counts, facts, present):
    src, dst, _, first, mirror, drop_loops = edges
    parts, total, mask, group = counts.shape[0], src.shape[0], (1 << shape.log_b) - 1, shape.group
    part = atomic_add(ticket, 0, 1)
    while part < parts:
        loops, low, high = 0, facts[part, LOW], facts[part, HIGH]
        for i in range(total * part // parts, total * (part + 1) // parts):
            u = np.int64(src[i])
            v = np.int64(dst[i])
            low = min(low, min(u, v))
            high = max(high, max(u, v))
            u -= first
            v -= first
            if u == v:
                loops += 1
                if present.shape[0] > 0:
                    present[u] = 1
                if drop_loops:
                    continue
            counts[part, (u >> group) & mask] += 1
            if mirror and u != v:
                counts[part, (v >> group) & mask] += 1
        facts[part, LOOPS], facts[part, LOW], facts[part, HIGH] = loops, low, high
        part = atomic_add(ticket, 0, 1)


@njit(cache=True, parallel=True)
def count_edges_step(edges, shape, lanes, ticket, counts, facts, present):
    """Count each part's entries for each bucket, and its self-loops (dropped or not), lowest and highest id.

    Invariant  part i of P is edges [E*i/P, E*(i+1)/P); a mirrored edge counts in both ends' buckets, a loop once. Ids
               out of range count in some bucket. ``present`` (of size 0: not wanted) is set for the ends of loops.
    Races      a part writes only counts[part] and facts[part]; present is only ever set to 1.
    Work       O(E), one sequential pass.
    """
    for _lane in prange(lanes):
        _count_edge_parts(edges, shape, ticket, counts, facts, present)


# Entries gather in a line per bucket, within the core's cache, and leave it as whole lines. The line in which a share
# begins may hold another part's entries as well, so it goes to a second line instead, and both ends of a share are put
# in their places when the part is done.
@njit(cache=True, inline="always")
def _put_entry(entry, bucket, cursor, begin, lines, width, phase, entries):
    at = cursor[bucket]
    cursor[bucket] = at + 1
    place = (at + phase) & (width - 1)
    lines[bucket * width + place] = entry
    if place == width - 1:
        if at - place >= begin[bucket]:
            stream_line(entries, at - place, lines, bucket * width)
        else:
            stream_line(lines, (cursor.shape[0] + bucket) * width, lines, bucket * width)
    return at


@njit(cache=True)
def _put_ends(cursor, begin, lines, phase, entries):
    buckets, width = cursor.shape[0], LINE_BYTES // entries.itemsize
    for bucket in range(buckets):
        first, end = begin[bucket], cursor[bucket]
        place = (first + phase) & (width - 1)
        last = first - place + width  # where the line of the first entry ends
        if place > 0 and end >= last:
            for e in range(first, last):
                entries[e] = lines[(buckets + bucket) * width + ((e + phase) & (width - 1))]
        for e in range(max(end - ((end + phase) & (width - 1)), first), end):
            entries[e] = lines[bucket * width + ((e + phase) & (width - 1))]


@njit(cache=True)
def _scatter_edge_parts(edges, shape, ticket, starts, cursor, lines, entries, entry_weight):
    src, dst, weight, first, mirror, drop_loops = edges
    log_b, group, bits, phase = shape
    high, low = log_b + group, (1 << group) - 1
    mask, width = (1 << log_b) - 1, LINE_BYTES // entries.itemsize
    weighted, parts, total = weight.shape[0] > 0, starts.shape[0], src.shape[0]
    part = atomic_add(ticket, 0, 1)
    while part < parts:
        begin = starts[part]
        for bucket in range(cursor.shape[0]):
            cursor[bucket] = begin[bucket]
        for i in range(total * part // parts, total * (part + 1) // parts):
            u = np.int64(src[i]) - first
            v = np.int64(dst[i]) - first
            if drop_loops and u == v:
                continue
            for _ in range(2 if mirror and u != v else 1):
                entry = ((u >> high) << group | u & low) << bits | v
                at = _put_entry(entry, (u >> group) & mask, cursor, begin, lines, width, phase, entries)
                if weighted:
                    entry_weight[at] = weight[i]
                u, v = v, u
        _put_ends(cursor, begin, lines, shape.phase, entries)
        part = atomic_add(ticket, 0, 1)
    settle_lines()


@njit(cache=True, parallel=True)
def scatter_edges_step(edges, shape, ticket, starts, cursors, lines, entries, entry_weight):
    """Write each part's entries to their buckets, in the order of the edge list.

    Invariant  starts[i, b] is where part i's share of bucket b begins; a bucket ends up ordered by edge index.
    Races      the shares are disjoint by the counts of ``count_edges_step``; cursors[lane] and lines[lane] (two
               cache lines per bucket) are the lane's own.
    Work       O(E), writes to 2^log_b streams per lane, by whole lines.
    """
    for lane in prange(cursors.shape[0]):
        _scatter_edge_parts(edges, shape, ticket, starts, cursors[lane], lines[lane], entries, entry_weight)


@njit(cache=True)
def _count_row_parts(rows, shape, ticket, counts):
    row_begin, offsets, columns, _, part_rows = rows
    mask, group = (1 << shape.log_b) - 1, shape.group
    parts = counts.shape[0]
    part = atomic_add(ticket, 0, 1)
    while part < parts:
        count, last = counts[part], part_rows[part + 1]
        for u in range(part_rows[part], last):
            ask_for_line(columns, row_begin[min(u + ROWS_AHEAD, last - 1)])
            for e in range(row_begin[u], row_begin[u] + offsets[u + 1] - offsets[u]):
                count[(columns[e] >> group) & mask] += 1
        part = atomic_add(ticket, 0, 1)


@njit(cache=True, parallel=True)
def count_rows_step(rows, shape, lanes, ticket, counts):
    """Count each part's entries for each bucket of columns.

    Invariant  see Rows.
    Races      a part writes only counts[part].
    Work       O(rows + entries); each row begins at a random place.
    """
    for _lane in prange(lanes):
        _count_row_parts(rows, shape, ticket, counts)


@njit(cache=True)
def _scatter_row_parts(rows, shape, ticket, starts, cursor, lines, entries, entry_weight):
    row_begin, offsets, columns, weight, part_rows = rows
    log_b, group, bits, phase = shape
    high, low = log_b + group, (1 << group) - 1
    mask, width = (1 << log_b) - 1, LINE_BYTES // entries.itemsize
    weighted, parts = weight.shape[0] > 0, starts.shape[0]
    part = atomic_add(ticket, 0, 1)
    while part < parts:
        begin, last = starts[part], part_rows[part + 1]
        for bucket in range(cursor.shape[0]):
            cursor[bucket] = begin[bucket]
        for u in range(part_rows[part], last):
            ask_for_line(columns, row_begin[min(u + ROWS_AHEAD, last - 1)])
            for e in range(row_begin[u], row_begin[u] + offsets[u + 1] - offsets[u]):
                w = np.int64(columns[e])
                entry = ((w >> high) << group | w & low) << bits | u
                at = _put_entry(entry, (w >> group) & mask, cursor, begin, lines, width, phase, entries)
                if weighted:
                    entry_weight[at] = weight[e]
        _put_ends(cursor, begin, lines, shape.phase, entries)
        part = atomic_add(ticket, 0, 1)
    settle_lines()


@njit(cache=True, parallel=True)
def scatter_rows_step(rows, shape, ticket, starts, cursors, lines, entries, entry_weight):
    """Write the transposed entries (column, row) to the buckets of their columns, rows ascending within each.

    Invariant  see Rows; buckets as in ``scatter_edges_step``: in the order of the rows, which is
               what makes the transposed rows come out sorted.
    Races      as ``scatter_edges_step``.
    Work       O(rows + entries), as ``count_rows_step`` and ``scatter_edges_step``.
    """
    for lane in prange(cursors.shape[0]):
        _scatter_row_parts(rows, shape, ticket, starts, cursors[lane], lines[lane], entries, entry_weight)
