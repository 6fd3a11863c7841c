"""PageRank with weights, a distribution that walks return to, and one that they go to from vertices without out-arcs.

    rank(v) = (1 - d) * teleport(v) + d * (stranded * dangling(v) + sum over arcs u -> v of rank(u) * w(u, v) / w(u))

where w(u) is what u's out-arcs weigh in all. Vectors are by position, isolated vertices included. Invariant: the ranks
sum to 1 throughout; an iteration brings any two vectors closer by the factor d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.kernels.arc_values import gather_shares_step, transpose_values_step
from cpu_engine.threads import alone_if_small

_NOTHING = np.empty(0)


@dataclass(frozen=True)
class WeightedRanks:
    """``change`` is how far the last iteration moved the ranks, in all."""

    rank: np.ndarray  # float64[N], by position in user_ids
    iterations: int
    change: float
    converged: bool


@alone_if_small
def pagerank_weighted(
    graph: Graph,
    start: np.ndarray,
    teleport: np.ndarray,
    dangling: np.ndarray,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    iterations: int = 100,
) -> WeightedRanks:
    """Iterate from ``start`` until the ranks move by less than ``tolerance`` in all; all three vectors sum to 1."""
    here = graph.user_position
    strength, value = out_strength(graph), values_of_in_arcs(graph, graph.weight)
    stranded = np.ones(start.size, np.bool_)
    stranded[here] = strength == 0
    rank, received, change = start, np.zeros(graph.n), np.inf
    for done in range(1, iterations + 1):
        share = np.divide(rank[here], strength, out=np.zeros(graph.n), where=strength != 0)
        gather_shares_step(graph.in_offsets, graph.in_sources, value, share, received)
        moved = damping * rank[stranded].sum() * dangling + (1 - damping) * teleport
        moved[here] += damping * received
        change = float(np.abs(moved - rank).sum())
        rank = moved
        if change < tolerance:
            return WeightedRanks(rank, done, change, True)
    return WeightedRanks(rank, iterations, change, False)


def out_strength(graph: Graph) -> np.ndarray:
    """What the out-arcs of each vertex weigh in all, float64[n]."""
    sizes = np.diff(graph.out_offsets)
    if graph.weight is None:
        return sizes.astype(np.float64)
    source = np.repeat(np.arange(graph.n), sizes)
    return np.bincount(source, weights=graph.weight, minlength=graph.n)


def values_of_in_arcs(graph: Graph, value: np.ndarray | None) -> np.ndarray:
    """Values of out-arcs in the order of the in-rows, float64; empty for None. An undirected graph's are symmetric."""
    if value is None:
        return _NOTHING
    given = value.astype(np.float64)
    if not graph.directed:
        return given
    turned = np.empty(graph.m)
    transpose_values_step(graph.out_offsets, graph.out_targets, given, graph.in_offsets[:-1].copy(), turned)
    return turned
