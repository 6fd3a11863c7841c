"""One PageRank iteration on a part: what in-arcs bring, and what masters pass on.

Encoding: ``contribution[v]`` = rank of v / its out-degree in the whole graph, 0 where it has no out-arcs.
"""

from __future__ import annotations

from numba import njit, prange

# The order of a row's sum is the compiler's, the same at every run and thread count.
ANY_ORDER = {"reassoc", "nsz", "contract"}


@njit(cache=True, fastmath=ANY_ORDER)
def sum_of_row(row, contribution):
    """What the in-neighbours in ``row`` pass on."""
    total = 0.0
    for i in range(row.size):
        total += contribution[row[i]]
    return total


@njit(cache=True, parallel=True)
def sum_in_arcs_step(cuts, begin, end, in_sources, contribution, sums):
    """sums[v] = what the in-arcs that are here bring to v; ``cuts`` are blocks of vertices with about as many arcs.

    Invariant  contribution is only read.   Races  iteration b writes the sums of block b only.   Work  O(arcs).
    """
    for b in prange(cuts.size - 1):
        for v in range(cuts[b], cuts[b + 1]):
            sums[v] = sum_of_row(in_sources[begin[v] : end[v]], contribution)


@njit(cache=True)
def settle_ranks_step(sums, out_count, base, damping, rank, contribution):
    """New ranks of the masters from their complete sums; return the sum of changes, and the rank without out-arcs.

    Invariant  sums, out_count and rank are the masters'; contribution[v] is right for every master after.
    Races      none, serial, so that the two sums are always the same.   Work  O(masters).
    """
    change, lost = 0.0, 0.0
    for v in range(rank.size):
        fresh = base + damping * sums[v]
        change += abs(fresh - rank[v])
        rank[v] = fresh
        if out_count[v] > 0:
            contribution[v] = fresh / out_count[v]
        else:
            contribution[v] = 0.0
            lost += fresh
    return change, lost
