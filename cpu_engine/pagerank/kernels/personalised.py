"""One iteration of many PageRanks at once: iteration.py's encoding, a row of B float32 columns per vertex.

B is a multiple of 16. A vertex's columns are neighbours in memory, so that an arc costs B / 16 cache lines.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.pagerank.kernels.vectors import LANES, WIDE, sum_narrow, sum_wide

WIDE_LANES = LANES * WIDE


@njit(cache=True)
def sum_rows(sources, begin, end, contribution, out):
    """out = the sum of the rows sources[begin:end] of ``contribution``, all columns."""
    first = 0
    while first + WIDE_LANES <= out.size:
        sum_wide(contribution, sources, begin, end, first, out)
        first += WIDE_LANES
    while first < out.size:
        sum_narrow(contribution, sources, begin, end, first, out)
        first += LANES


@njit(cache=True)
def settle_columns(out_degree, damping, before, sums, change, lost):
    """Turn a vertex's sums into contributions, in place; add up changes and, without out-edges, ranks by column."""
    degree = np.float32(max(out_degree, 1))
    factor = np.float32(damping) / degree
    for j in range(sums.size):
        now = sums[j] * factor
        change[j] += abs(now - before[j]) * degree
        sums[j] = now
    if out_degree == 0:
        for j in range(sums.size):
            lost[j] += sums[j]


@njit(cache=True, parallel=True)
def sweep_many_step(rows, contribution, fresh, core_sums, damping, cuts, ticket, change, lost, lanes):
    """New contributions for all vertices from k = len(core_sums) on, for the core's the sums over the rows given.

    Invariant  as sweep_step's, without the restart; change[b] and lost[b] are block b's, by column.
    Races      lanes take the next block by ticket; a block's vertices and change[b], lost[b] belong to it alone.
    Work       every arc once: B / 16 cache lines each.
    """
    row_begin, row_end, sources, out_offsets = rows
    ticket[0] = 0
    blocks = change.shape[0]
    k = core_sums.shape[0]
    for _lane in prange(lanes):
        b = blocks - 1 - atomic_add(ticket, 0, 1)
        while b >= 0:
            change[b], lost[b] = 0, 0
            for u in range(cuts[b], min(cuts[b + 1], k)):
                sum_rows(sources, row_begin[u], row_end[u], contribution, core_sums[u])
            for u in range(max(cuts[b], k), cuts[b + 1]):
                sum_rows(sources, row_begin[u], row_end[u], contribution, fresh[u])
                degree = out_offsets[u + 1] - out_offsets[u]
                settle_columns(degree, damping, contribution[u], fresh[u], change[b], lost[b])
            b = blocks - 1 - atomic_add(ticket, 0, 1)


@njit(cache=True)
def settle_core_many_step(core_sums, out_offsets, contribution, fresh, damping, change, lost):
    """New contributions of the core from its complete sums; changes and lost ranks are added by column.

    Invariant  with sweep_many_step's: fresh holds every vertex, but for the restart.
    Races      none, serial.   Work  O(k B).
    """
    for u in range(core_sums.shape[0]):
        fresh[u] = core_sums[u]
        degree = out_offsets[u + 1] - out_offsets[u]
        settle_columns(degree, damping, contribution[u], fresh[u], change, lost)


@njit(cache=True, parallel=True)
def sum_core_arcs_many_step(offsets, core_end, sources, contribution, inside):
    """inside[u] = what the arcs inside the core pass on to u, by column.

    Invariant  rows are ascending, so the core's arcs are a prefix.   Races  none: row by row.
    Work       the arcs inside the core, B / 16 cache lines each.
    """
    for u in prange(inside.shape[0]):
        sum_rows(sources, offsets[u], core_end[u], contribution, inside[u])


@njit(cache=True, parallel=True)
def read_ranks_many_step(out_offsets, contribution, rank):
    """rank[v] from the contributions, as many columns as ``rank`` has.   Races  none: row by row.   Work  O(n B)."""
    for v in prange(rank.shape[0]):
        degree = np.float32(max(out_offsets[v + 1] - out_offsets[v], 1))
        for j in range(rank.shape[1]):
            rank[v, j] = contribution[v, j] * degree
