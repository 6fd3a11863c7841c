"""Whether ranks are PageRanks, found out from the ranks and the graph alone.

"gap" is a fixpoint to a tolerance: one more iteration, made by pushing in float64, must move the ranks by no more than
that in all. A run that ended at its limit of iterations promises less, and that is what is checked: one more iteration
moves the ranks by no more than its last one did. (With all arcs as a matrix d P whose columns sum to at most d, an
iteration that reads old ranks through U and new ones through L, L + U = d P, leaves the residual U (new - old), whose
sum of absolute values is at most d times that of new - old, the change.) "ldbc" is the outcome of a number of
iterations, so these are made again by pushing, and each rank must agree to the relative 1e-4 that LDBC allows; its
ranks must sum to one. Nothing is shared with the algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.kernels.check import push_ranks_step
from cpu_engine.threads import alone_if_small

RELATIVE = 1e-4  # LDBC Graphalytics
ROUNDING = 1e-6  # of a sum of ranks that were float32 once


@dataclass(frozen=True)
class RankCheck:
    """The findings; ``holds`` when there are none."""

    impossible: int  # ranks that are not numbers, or below what every vertex has
    mass: float  # the sum of all ranks, where it must be one; else 1
    residual: float  # gap: how far one more iteration moves the ranks; ldbc: the largest relative deviation
    allowed: float  # for the residual
    example: int  # internal id of a vertex that is wrong, or furthest off; -1 if there is none

    @property
    def holds(self) -> bool:
        return self.impossible == 0 and abs(self.mass - 1) <= ROUNDING and self.residual <= self.allowed

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence on what is wrong; with the graph, the furthest vertex is named by the user's id."""
        wrong = [plural(self.impossible, "impossible rank")] if self.impossible else []
        if not abs(self.mass - 1) <= ROUNDING:
            wrong.append(f"the ranks sum to {self.mass:.9g} instead of 1")
        if not self.residual <= self.allowed:
            wrong.append(f"the ranks are off by {self.residual:.3g}, of which {self.allowed:.3g} is allowed")
        if not wrong:
            return f"the ranks are off by {self.residual:.3g} at most, of {self.allowed:.3g} allowed"
        if graph is not None and self.example >= 0:
            wrong.append(f"vertex {int(graph.user_ids[graph.user_position[self.example]])} for one")
        return "; ".join(wrong)


@dataclass(frozen=True)
class IterationCheck:
    """What one more iteration finds; ``holds`` when there is nothing wrong."""

    impossible: int  # ranks that are not numbers, or below 0
    mass: float  # the sum of all ranks
    residual: float  # how far the iteration moves the ranks, in all
    allowed: float  # for the residual
    mass_allowed: float  # how far from 1 the mass may be
    example: int = -1  # internal id of the vertex that is wrong, or moves most; -1 if there is none

    @property
    def holds(self) -> bool:
        return self.impossible == 0 and abs(self.mass - 1) <= self.mass_allowed and self.residual <= self.allowed

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence on what is wrong; with the graph, a vertex is named by the user's id."""
        moves = f"by {self.residual:.3g}, of {self.allowed:.3g} allowed"
        if self.holds:
            return f"one more iteration moves the ranks {moves}"
        text = f"the ranks sum to {self.mass:.9g}, and one more iteration moves them {moves}"
        if self.impossible:
            text = plural(self.impossible, "impossible rank")
        if graph is not None and self.example >= 0:
            text += f"; vertex {int(graph.user_ids[graph.user_position[self.example]])} for one"
        return text


@alone_if_small
def check_pagerank(
    graph: Graph,
    rank: np.ndarray,
    isolated_rank: float,
    definition: str = "ldbc",
    damping: float = 0.85,
    *,
    iterations: int = 10,
    tolerance: float = 1e-4,
    change: float | None = None,
) -> RankCheck:
    """Check ranks in internal ids; ``iterations`` counts for "ldbc" only, ``tolerance`` and ``change`` for "gap" only.

    ``change`` is given for a run that ended at its limit: how far its last iteration moved the ranks.
    """
    if definition not in ("ldbc", "gap"):
        raise ValueError(f"there is no definition {definition!r} of PageRank, only ldbc and gap")
    vertices = int(graph.user_ids.size)
    everyone = np.append(rank, isolated_rank)
    lowest = (1 - damping) / max(vertices, 1) * (1 - ROUNDING)
    wrong = np.flatnonzero(~(np.isfinite(everyone) & (everyone >= lowest))) if vertices else np.empty(0, np.int64)
    if iterations == 0 and definition == "ldbc":
        wrong = wrong[everyone[wrong] != 1 / vertices]
    if wrong.size:
        return RankCheck(int(wrong.size), 1.0, 0.0, 0.0, int(wrong[0]) if wrong[0] < graph.n else -1)
    isolated = vertices - graph.n
    if definition == "gap":
        again = _iterate(graph, everyone, damping, spread=False)
        moved = np.abs(again - everyone) * np.append(np.ones(graph.n), isolated)
        # Ranks of float32 are checked here in float64.
        allowed = max(tolerance, change or 0.0, ROUNDING)
        return RankCheck(0, 1.0, float(moved.sum()), allowed, _furthest(moved))
    again = np.full(graph.n + 1, 1 / max(vertices, 1))
    for _ in range(iterations):
        again = _iterate(graph, again, damping, spread=True)
    deviation = np.abs(everyone / again - 1) if vertices else np.zeros(1)
    mass = float(rank.sum()) + isolated * isolated_rank if vertices else 1.0
    return RankCheck(0, mass, float(deviation.max()), RELATIVE, _furthest(deviation))


def _iterate(graph: Graph, everyone: np.ndarray, damping: float, *, spread: bool) -> np.ndarray:
    """One iteration from the ranks of all internal vertices and, last, of an isolated one."""
    received = np.zeros(graph.n + 1)
    stranded = push_ranks_step(graph.out_offsets, graph.out_targets, everyone[:-1], received)
    vertices = max(graph.user_ids.size, 1)
    if spread:
        received += (stranded + (graph.user_ids.size - graph.n) * everyone[-1]) / vertices
    again: np.ndarray = (1 - damping) / vertices + damping * received
    return again


def _furthest(deviation: np.ndarray) -> int:
    at = int(deviation.argmax())
    return at if at < deviation.size - 1 else -1
