"""Triangles whose edges have values: at each corner the sum of the products of the three.

Two vertices have one edge between them, with the sum of the values of the arcs in either direction. Rows keep only the
neighbours of smaller id, which are those of higher degree: a row is short, and a triangle is found once.
"""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True, parallel=True)
def count_neighbours_step(out_offsets, out_targets, in_offsets, in_sources, directed, lower, degree, mutual):
    """Count of each vertex the distinct neighbours of smaller id, the arcs, and those neighbours joined both ways.

    Invariant  rows ascend without repetition; loops do not count. An undirected graph's edges are arcs once, from here.
    Races      iteration v writes lower[v], degree[v] and mutual[v].   Work  O(arcs), two rows merged.
    """
    for v in prange(out_offsets.shape[0] - 1):
        a, a_end = out_offsets[v], out_offsets[v + 1]
        b, b_end = (in_offsets[v], in_offsets[v + 1]) if directed else (0, 0)
        below, arcs, both = 0, 0, 0
        while a < a_end or b < b_end:
            from_a = b >= b_end or (a < a_end and out_targets[a] <= in_sources[b])
            from_b = a >= a_end or (b < b_end and in_sources[b] <= out_targets[a])
            u = out_targets[a] if from_a else in_sources[b]
            if u != v:
                below += u < v
                arcs += int(from_a) + int(from_b)
                both += from_a and from_b
            a += from_a
            b += from_b
        lower[v], degree[v], mutual[v] = below, arcs, both


@njit(cache=True, parallel=True)
def fill_lower_step(
    out_offsets, out_targets, out_value, in_offsets, in_sources, in_value, directed, offsets, column, value
):
    """Write the neighbours of smaller id, and the values of the edges to them.

    Invariant  offsets are those of the counts of count_neighbours_step.
    Races      iteration v writes its own row of column and value.   Work  O(arcs), two rows merged.
    """
    for v in prange(out_offsets.shape[0] - 1):
        a, a_end = out_offsets[v], out_offsets[v + 1]
        b, b_end = (in_offsets[v], in_offsets[v + 1]) if directed else (0, 0)
        at = offsets[v]
        while at < offsets[v + 1]:  # the smaller ones come first
            from_a = b >= b_end or (a < a_end and out_targets[a] <= in_sources[b])
            from_b = a >= a_end or (b < b_end and in_sources[b] <= out_targets[a])
            column[at] = out_targets[a] if from_a else in_sources[b]
            value[at] = (out_value[a] if from_a else 0.0) + (in_value[b] if from_b else 0.0)
            a += from_a
            b += from_b
            at += 1


@njit(cache=True, parallel=True)
def add_triples_step(offsets, column, value, mark, total):
    """Add to total[lane, corner] the product of each triangle's values.

    Invariant  mark[lane] is zeros before and after. Over all lanes every triangle is counted once at each corner.
    Races      mark[lane] and total[lane] are the lane's own; lanes take every so-manieth vertex.
    Work       for each edge the row of its end of smaller id.
    """
    lanes, n = mark.shape
    for lane in prange(lanes):
        for v in range(lane, n, lanes):
            for e in range(offsets[v], offsets[v + 1]):
                mark[lane, column[e]] = value[e]
            for e in range(offsets[v], offsets[v + 1]):
                u, here = column[e], 0.0
                for f in range(offsets[u], offsets[u + 1]):
                    product = value[e] * value[f] * mark[lane, column[f]]
                    if product != 0.0:
                        total[lane, column[f]] += product
                        here += product
                total[lane, u] += here
                total[lane, v] += here
            for e in range(offsets[v], offsets[v + 1]):
                mark[lane, column[e]] = 0.0
