"""Whether weighted ranks are right, found out by one more iteration, made by pushing and from the edges alone."""

from __future__ import annotations

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.check import IterationCheck
from cpu_engine.threads import alone_if_small

ROUNDING = 1e-10  # in all
MASS_ROUNDING = 1e-6  # of the sum of all ranks


@alone_if_small
def check_pagerank_weighted(
    graph: Graph, rank: np.ndarray, teleport: np.ndarray, dangling: np.ndarray, *, damping: float, tolerance: float
) -> IterationCheck:
    """Check ranks by position in user_ids."""
    wrong = int(np.count_nonzero(~(np.isfinite(rank) & (rank >= 0))))
    if wrong:
        return IterationCheck(wrong, 1.0, 0.0, 0.0, 0.0)
    source = graph.user_position[np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))]
    target = graph.user_position[graph.out_targets]
    weight = np.ones(graph.m) if graph.weight is None else graph.weight.astype(np.float64)
    leaving = np.bincount(source, weights=weight, minlength=rank.size)
    goes = leaving > 0
    pushed = weight * rank[source] / np.where(goes, leaving, 1)[source]
    again = damping * np.bincount(target, weights=pushed, minlength=rank.size)
    again += damping * float(rank[~goes].sum()) * dangling + (1 - damping) * teleport
    moved = float(np.abs(again - rank).sum())
    return IterationCheck(0, float(rank.sum()), moved, tolerance + ROUNDING, MASS_ROUNDING)
