"""One PageRank iteration as a pull: every vertex adds up what its in-neighbours pass on.

Encoding: ``contribution[v]`` = rank of v / its out-degree, and the rank itself where there is no out-edge (no vertex
reads it as a contribution then), so that rank = contribution * max(out-degree, 1) and no array of ranks is needed. The
core's rows [0, k) may be left unfinished: the core solver adds up the arcs inside the core.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add

# A row's sum may be taken in any order, which makes it a vector of gathers; the order is the compiler's, the same at
# every run, thread count and share. Infinities and NaN keep their meaning.
ANY_ORDER = {"reassoc", "nsz", "contract"}


class InRows(NamedTuple):
    """Rows of in-neighbours, perhaps without those of the core, and the out-degrees as offsets."""

    begin: np.ndarray
    end: np.ndarray
    sources: np.ndarray
    out_offsets: np.ndarray


@njit(cache=True, fastmath=ANY_ORDER)
def sum_row(row, contribution):
    """What the in-neighbours in ``row`` pass on, in the type of the contributions."""
    total = contribution.dtype.type(0)
    for i in range(row.size):
        total += contribution[row[i]]
    return total


@njit(cache=True)
def settle_rank(u, total, base, damping, out_offsets, contribution, fresh):
    """The new rank of u goes to ``fresh``; return it, its change and, if u has no out-edge, the rank again (else 0)."""
    degree = out_offsets[u + 1] - out_offsets[u]
    rank = base + damping * total
    if degree == 0:
        fresh[u] = rank
        return rank, abs(rank - contribution[u]), rank
    fresh[u] = rank / degree
    return rank, abs(rank - np.float64(contribution[u]) * degree), 0.0


@njit(cache=True, parallel=True)
def sweep_step(rows, contribution, fresh, core_sums, base, damping, cuts, ticket, tally, lanes):
    """New ranks for all vertices from k = core_sums.size on, and for the core's the sums over the rows given.

    Invariant  contribution is only read; after: fresh[v] for v >= k, core_sums[u] for u < k, both of the blocks given.
               tally[b] = (change, rank without out-edges, rank) of block b, vertices cuts[b] to cuts[b + 1], so that
               their sum does not depend on the threads.
    Races      lanes take the next block by ticket; a block's vertices and tally[b] belong to it alone.
    Work       every arc once: one sequential read and one gather, hubs' contributions coming from the cache. The last
               blocks, whose many short rows take longest, are taken first.
    """
    row_begin, row_end, sources, out_offsets = rows
    ticket[0] = 0
    blocks = tally.shape[0]
    k = core_sums.size
    for _lane in prange(lanes):
        b = blocks - 1 - atomic_add(ticket, 0, 1)
        while b >= 0:
            change, lost, mass = 0.0, 0.0, 0.0
            for u in range(cuts[b], min(cuts[b + 1], k)):
                core_sums[u] = sum_row(sources[row_begin[u] : row_end[u]], contribution)
            for u in range(max(cuts[b], k), cuts[b + 1]):
                total = np.float64(sum_row(sources[row_begin[u] : row_end[u]], contribution))
                rank, moved, dangling = settle_rank(u, total, base, damping, out_offsets, contribution, fresh)
                change += moved
                lost += dangling
                mass += rank
            tally[b, 0], tally[b, 1], tally[b, 2] = change, lost, mass
            b = blocks - 1 - atomic_add(ticket, 0, 1)


@njit(cache=True)
def settle_core_step(core_sums, out_offsets, contribution, fresh, base, damping):
    """New ranks of the core from its complete sums; return their change and the rank of those without out-edges.

    Invariant  with sweep_step's: fresh holds every vertex.   Races  none, serial.   Work  O(k).
    """
    change, lost = 0.0, 0.0
    for u in range(core_sums.size):
        _, moved, dangling = settle_rank(u, core_sums[u], base, damping, out_offsets, contribution, fresh)
        change += moved
        lost += dangling
    return change, lost


@njit(cache=True, parallel=True)
def add_core_arcs_step(offsets, core_end, sources, contribution, core_sums):
    """Add to core_sums[u] what the arcs inside the core pass on: the row's part before core_end[u].

    Invariant  rows are ascending, so the core's arcs are a prefix.   Races  none: element by element.
    Work       the arcs inside the core.
    """
    for u in prange(core_sums.size):
        core_sums[u] += sum_row(sources[offsets[u] : core_end[u]], contribution)


@njit(cache=True, parallel=True)
def start_ranks_step(out_offsets, rank, contribution):
    """Give every vertex the same rank.

    Invariant  see the encoding above.   Races  none: element by element.   Work  O(n).
    """
    for v in prange(contribution.size):
        contribution[v] = rank / max(out_offsets[v + 1] - out_offsets[v], 1)


@njit(cache=True, parallel=True)
def read_ranks_step(out_offsets, contribution, rank):
    """rank[v] from the contributions.   Races  none: element by element.   Work  O(n)."""
    for v in prange(rank.size):
        rank[v] = np.float64(contribution[v]) * max(out_offsets[v + 1] - out_offsets[v], 1)
