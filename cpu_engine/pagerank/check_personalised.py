"""Whether ranks are those seen from one vertex, found out by one more iteration that is made by pushing, in float64.

    rank(v) = [v is the source] * (1 - d + d * lost) + d * sum over in-arcs u -> v of rank(u) / outdegree(u)

The iteration brings any two vectors closer by the factor d at least, so ranks that it moves by ``r`` in all are within
r / (1 - d) of the only right ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.kernels.check import push_ranks_step

ROUNDING = 1e-5  # in all, of ranks that were float32


@dataclass(frozen=True)
class PersonalisedCheck:
    """The findings; ``holds`` when there are none."""

    impossible: int  # ranks that are not numbers, or below 0
    mass: float
    residual: float  # how far one more iteration moves the ranks, in all
    allowed: float
    example: int  # internal id of the vertex that is wrong, or moves most; -1 if there is none

    @property
    def holds(self) -> bool:
        return self.impossible == 0 and abs(self.mass - 1) <= self.allowed and self.residual <= self.allowed

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence on what is wrong; with the graph, a vertex is named by the user's id."""
        if self.holds:
            return f"one more iteration moves the ranks by {self.residual:.3g}, of {self.allowed:.3g} allowed"
        text = (
            plural(self.impossible, "impossible rank")
            if self.impossible
            else (
                f"the ranks sum to {self.mass:.9g}, and one more iteration moves them by {self.residual:.3g}, of "
                f"{self.allowed:.3g} allowed"
            )
        )
        named = graph is not None and self.example >= 0
        return text + (f"; vertex {int(graph.user_ids[graph.user_position[self.example]])} for one" if named else "")  # type: ignore[union-attr]


def check_personalised(
    graph: Graph, source: int, rank: np.ndarray, *, damping: float = 0.85, tolerance: float = 1e-4
) -> PersonalisedCheck:
    """Check ranks in internal ids."""
    wrong = np.flatnonzero(~(np.isfinite(rank) & (rank >= 0)))
    if wrong.size:
        return PersonalisedCheck(int(wrong.size), 1.0, 0.0, 0.0, int(wrong[0]))
    received = np.zeros(graph.n + 1)
    stranded = push_ranks_step(graph.out_offsets, graph.out_targets, rank, received)
    again = damping * received[:-1]
    again[source] += 1 - damping + damping * stranded
    moved = np.abs(again - rank)
    worst = int(moved.argmax()) if moved.size else -1
    return PersonalisedCheck(0, float(rank.sum()), float(moved.sum()), tolerance + ROUNDING, worst)
