"""The simple undirected view of a graph, as triangles want it: of each vertex the distinct neighbours of smaller id.

Smaller ids have higher degrees, so these lists are short (at most sqrt(2 m) long) whatever the hubs look like. An
undirected graph without loops and parallel edges has them as the beginnings of its own rows; any other gets arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.bisect import first_not_below

BLOCK = 1024  # vertices per turn: low ids are hubs, so blocks are dealt round robin


@njit(cache=True, parallel=True)
def end_lower_rows_step(offsets, targets, end, faults):
    """end[v] = where v's neighbours of smaller id end; faults[t] counts the loops and parallel edges that thread t met.

    Invariant  rows are ascending.   Races  thread t writes its vertices' ends and faults[t].   Work  O(m), one pass.
    """
    threads, n = faults.size, end.size
    for t in prange(threads):
        found = 0
        for first in range(t * BLOCK, n, threads * BLOCK):
            for v in range(first, min(first + BLOCK, n)):
                row = targets[offsets[v] : offsets[v + 1]]
                for i in range(1, row.size):
                    found += row[i] == row[i - 1]
                place = first_not_below(row, v)
                found += place < row.size and row[place] == v
                end[v] = offsets[v] + place
        faults[t] = found


@njit(cache=True)
def merge_row(v, out_row, in_row, ids, both, fill):
    """Merge v's two rows into its distinct neighbours; returns how many there are, and how many are below v.

    Those below are written to ``ids`` if ``fill``; ``both`` is 1 where there is an arc in each direction.
    """
    i, j, total, lower = 0, 0, 0, 0
    while i < out_row.size or j < in_row.size:
        from_in = i == out_row.size or (j < in_row.size and in_row[j] < out_row[i])
        u = in_row[j] if from_in else out_row[i]
        had_out, had_in = i, j
        while i < out_row.size and out_row[i] == u:
            i += 1
        while j < in_row.size and in_row[j] == u:
            j += 1
        if u != v:
            if fill and u < v:
                ids[lower] = u
                both[lower] = had_out < i and had_in < j
            total += 1
            lower += u < v
    return total, lower


@njit(cache=True, parallel=True)
def size_rows_step(out_offsets, out_targets, in_offsets, in_sources, degree, lower, threads):
    """degree[v] = distinct neighbours of v over edges of either direction, without itself; lower[v] = those below v.

    Invariant  rows are ascending.   Races  thread t writes its own vertices.   Work  O(m).
    """
    n = degree.size
    for t in prange(threads):
        no_ids, no_flags = np.empty(0, np.uint32), np.empty(0, np.uint8)
        for first in range(t * BLOCK, n, threads * BLOCK):
            for v in range(first, min(first + BLOCK, n)):
                degree[v], lower[v] = merge_row(
                    v, out_targets[out_offsets[v] : out_offsets[v + 1]], in_sources[in_offsets[v] : in_offsets[v + 1]],
                    no_ids, no_flags, False,
                )  # fmt: skip


@njit(cache=True, parallel=True)
def fill_rows_step(out_offsets, out_targets, in_offsets, in_sources, offsets, ids, both, threads):
    """Write each vertex's distinct neighbours below it, ascending, and whether arcs go both ways.

    Invariant  offsets are the sums of size_rows_step's ``lower``.   Races  thread t writes its own vertices' rows.
    Work       O(m).
    """
    n = offsets.size - 1
    for t in prange(threads):
        for first in range(t * BLOCK, n, threads * BLOCK):
            for v in range(first, min(first + BLOCK, n)):
                merge_row(
                    v, out_targets[out_offsets[v] : out_offsets[v + 1]], in_sources[in_offsets[v] : in_offsets[v + 1]],
                    ids[offsets[v] : offsets[v + 1]], both[offsets[v] : offsets[v + 1]], True,
                )  # fmt: skip
