"""Whether ranks are those seen from one vertex, found out by one more iteration that is made by pushing, in float64.

    rank(v) = [v is the source] * (1 - d + d * lost) + d * sum over in-arcs u -> v of rank(u) / outdegree(u)

The iteration brings any two vectors closer by the factor d at least, so ranks that it moves by ``r`` in all are within
r / (1 - d) of the only right ones.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.check import IterationCheck
from cpu_engine.pagerank.kernels.check import push_ranks_step

ROUNDING = 1e-5  # in all, of ranks that were float32


def check_personalised(
    graph: Graph, source: int, rank: np.ndarray, *, damping: float = 0.85, tolerance: float = 1e-4
) -> IterationCheck:
    """Check ranks in internal ids."""
    wrong = np.flatnonzero(~(np.isfinite(rank) & (rank >= 0)))
    if wrong.size:
        return IterationCheck(int(wrong.size), 1.0, 0.0, 0.0, 0.0, int(wrong[0]))
    received = np.zeros(graph.n + 1)
    stranded = push_ranks_step(graph.out_offsets, graph.out_targets, rank, received)
    again = damping * received[:-1]
    again[source] += 1 - damping + damping * stranded
    moved = np.abs(again - rank)
    worst = int(moved.argmax()) if moved.size else -1
    allowed = tolerance + ROUNDING
    return IterationCheck(0, float(rank.sum()), float(moved.sum()), allowed, allowed, worst)
