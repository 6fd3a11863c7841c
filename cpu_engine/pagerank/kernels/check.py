"""What the check of a PageRank needs: contributions pushed along out-arcs, the other way round than the sweeps."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def push_ranks_step(out_offsets, out_targets, rank, received):
    """Add rank[u] / outdegree(u) to received[v] for each arc u -> v; return the rank of those without out-arcs.

    Invariant  the sum of ``received`` grows by the rest of the rank.   Races  none, serial.
    Work       every arc once, random writes.
    """
    stranded = 0.0
    for u in range(rank.size):
        degree = out_offsets[u + 1] - out_offsets[u]
        if degree == 0:
            stranded += rank[u]
            continue
        for e in range(out_offsets[u], out_offsets[u + 1]):
            received[out_targets[e]] += rank[u] / degree
    return stranded


@njit(cache=True)
def push_shares_step(out_offsets, out_targets, rank, degree, received):
    """Add rank[u] / degree[u] to received[v] for each arc u -> v of a part, whose rows may not be whole.

    Invariant  rank and degree are those of the whole graph for every copy with out-arcs.
    Races      none, serial.   Work  every arc once, random writes.
    """
    for u in range(rank.size):
        for e in range(out_offsets[u], out_offsets[u + 1]):
            received[out_targets[e]] += rank[u] / degree[u]
