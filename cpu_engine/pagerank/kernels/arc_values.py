"""Numbers on arcs: to the other side of a directed graph, and summed over the arcs that lead to a vertex."""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True)
def transpose_values_step(out_offsets, out_targets, value, cursor, in_value):
    """Write the values of arcs in the order of the in-rows.

    Invariant  cursor[v] arrives as where v's in-row begins. Rows are visited in ascending order, as in-rows list them.
    Races      none, serial.   Work  O(arcs), scattered writes.
    """
    for u in range(out_offsets.shape[0] - 1):
        for e in range(out_offsets[u], out_offsets[u + 1]):
            v = out_targets[e]
            in_value[cursor[v]] = value[e]
            cursor[v] += 1


@njit(cache=True, parallel=True)
def gather_shares_step(in_offsets, in_sources, in_value, share, received):
    """Sum ``value * share`` of the sources of all arcs to each vertex; without values (of size 0) they are 1.

    Races      iteration v writes received[v] only.   Work  O(arcs), random reads of ``share``.
    """
    weighted = in_value.shape[0] > 0
    for v in prange(in_offsets.shape[0] - 1):
        total = 0.0
        for e in range(in_offsets[v], in_offsets[v + 1]):
            total += share[in_sources[e]] * (in_value[e] if weighted else 1.0)
        received[v] = total
