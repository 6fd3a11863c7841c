"""What every core [0, k) holds, for all k at once: edges by their larger end, and by their smaller end.

An edge (u, v) is inside [0, k) from k = max(u, v) + 1 on, and touches it from k = min(u, v) + 1 on. So a histogram of
max and one of min, summed up, are the answer for every k. Rows are ascending: no edge needs to be looked at for it.
"""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.intrinsics.bisect import first_not_below


@njit(cache=True)
def _split_row(row, u):
    """How many of the ascending row are below u, and how many up to it."""
    below = first_not_below(row, u)
    up_to = below
    while up_to < row.size and row[up_to] == u:
        up_to += 1
    return below, up_to


@njit(cache=True)
def _count_row(u, out_offsets, out_targets, in_offsets, in_sources, larger, smaller):
    row = out_targets[out_offsets[u] : out_offsets[u + 1]]
    below, up_to = _split_row(row, u)
    above, loops = row.size - up_to, up_to - below
    if in_offsets.size:
        back = in_sources[in_offsets[u] : in_offsets[u + 1]]
        back_below, back_up_to = _split_row(back, u)
        larger[u], smaller[u] = below + back_below + loops, above + (back.size - back_up_to) + loops
    else:
        larger[u], smaller[u] = 2 * below + loops, 2 * above + loops


@njit(cache=True, parallel=True)
def count_core_ends_step(out_offsets, out_targets, in_offsets, in_sources, larger, smaller):
    """larger[u] = edges whose larger end is u, smaller[u] = those whose smaller end is u, for u < larger.size.

    Invariant  an edge from u is in u's out-row, one to u in its in-row, a loop in both and counted once; so the sum of
               ``larger`` over [0, k) is the number of edges inside [0, k), that of ``smaller`` of those touching it.
               No in-rows (size 0) means that they are the out-rows: an undirected graph.
    Races      iteration u writes larger[u] and smaller[u] only.
    Work       O(size log degree): a binary search in each row, not a look at each edge.
    """
    for u in prange(larger.size):
        _count_row(u, out_offsets, out_targets, in_offsets, in_sources, larger, smaller)


@njit(cache=True)
def count_few_core_ends_step(out_offsets, out_targets, in_offsets, in_sources, larger, smaller):
    """count_core_ends_step on one thread: for so few rows that waking the others would take longer.

    Invariant  as there.   Races  none, serial.   Work  as there.
    """
    for u in range(larger.size):
        _count_row(u, out_offsets, out_targets, in_offsets, in_sources, larger, smaller)
