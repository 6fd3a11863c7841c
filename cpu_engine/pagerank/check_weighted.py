"""Whether weighted ranks are right, found out by one more iteration, made by pushing and from the edges alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small

ROUNDING = 1e-10  # in all


@dataclass(frozen=True)
class WeightedRanksCheck:
    """The findings; ``holds`` when there are none."""

    impossible: int  # ranks that are not numbers, or below 0
    mass: float
    residual: float  # how far one more iteration moves the ranks, in all
    allowed: float

    @property
    def holds(self) -> bool:
        return self.impossible == 0 and abs(self.mass - 1) <= 1e-6 and self.residual <= self.allowed

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence."""
        if self.impossible:
            return plural(self.impossible, "impossible rank")
        return (
            f"the ranks sum to {self.mass:.9g}, and one more iteration moves them by {self.residual:.3g}, of "
            f"{self.allowed:.3g} allowed"
        )


@alone_if_small
def check_pagerank_weighted(
    graph: Graph, rank: np.ndarray, teleport: np.ndarray, dangling: np.ndarray, *, damping: float, tolerance: float
) -> WeightedRanksCheck:
    """Check ranks by position in user_ids."""
    wrong = int(np.count_nonzero(~(np.isfinite(rank) & (rank >= 0))))
    if wrong:
        return WeightedRanksCheck(wrong, 1.0, 0.0, 0.0)
    source = graph.user_position[np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))]
    target = graph.user_position[graph.out_targets]
    weight = np.ones(graph.m) if graph.weight is None else graph.weight.astype(np.float64)
    leaving = np.bincount(source, weights=weight, minlength=rank.size)
    goes = leaving > 0
    pushed = weight * rank[source] / np.where(goes, leaving, 1)[source]
    again = damping * np.bincount(target, weights=pushed, minlength=rank.size)
    again += damping * float(rank[~goes].sum()) * dangling + (1 - damping) * teleport
    return WeightedRanksCheck(0, float(rank.sum()), float(np.abs(again - rank).sum()), tolerance + ROUNDING)
