"""Personalised PageRank from many vertices at once: one column per vertex, the arcs inside the core shareable.

    rank(v) = [v is the source] * (1 - d + d * lost) + d * sum over in-arcs u -> v of rank(u) / outdegree(u)

``lost`` is the rank of the vertices without out-arcs: a walk that cannot go on restarts at the source, as one does with
probability 1 - d at every step. So a column always sums to 1, and isolated vertices have rank 0 (an isolated source has
all of its own). Iterations start from the source and are Jacobi's; numbers are float32, good for a relative 1e-4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.memory import require_bytes
from cpu_engine.pagerank.engine import SHARES, edge_cuts
from cpu_engine.pagerank.kernels.iteration import InRows
from cpu_engine.pagerank.kernels.personalised import (
    read_ranks_many_step,
    settle_core_many_step,
    sum_core_arcs_many_step,
    sweep_many_step,
)
from cpu_engine.pagerank.kernels.vectors import LANES
from cpu_engine.threads import threads_for

ITERATIONS = 100  # the change falls at least as d^i: below 1e-4 after 61


@dataclass(frozen=True)
class ManyRanksResult:
    """One column of ranks per source."""

    rank: np.ndarray  # float32[n, B], internal ids
    iterations: int
    change: np.ndarray  # float64[B]: sum over all vertices of |rank - rank one iteration before|
    converged: bool  # whether every change is below the tolerance


def personalised_pagerank(
    graph: Graph,
    sources: np.ndarray,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-4,
    iterations: int = ITERATIONS,
) -> ManyRanksResult:
    """Ranks as seen from each source (internal ids), until every column changes by less than ``tolerance``."""
    engine = ManyRanksEngine(graph, len(sources), damping=damping)
    engine.begin(sources)
    done, change = 0, np.full(len(sources), np.inf)
    with threads_for((graph.n + graph.m) * len(sources)):
        while done < iterations and (change >= tolerance).any():
            change = engine.iterate()
            done += 1
    return ManyRanksResult(engine.rank(), done, change, bool((change < tolerance).all()))


class ManyRanksEngine:
    """Many personalised PageRanks iteration by iteration: PageRankEngine's methods on matrices, a column each."""

    def __init__(self, graph: Graph, columns: int, *, core_size: int = 0, damping: float = 0.85) -> None:
        if not 0 <= damping < 1:
            raise ValueError(f"the damping must be at least 0 and below 1, and is {damping}")
        if not 0 <= core_size <= graph.n:
            raise ValueError(f"the core must have 0..{graph.n} vertices, and has {core_size}")
        self.graph, self.core_size, self.columns = graph, core_size, columns
        self._damping = damping
        width = -(-columns // LANES) * LANES
        require_bytes(2 * graph.n * width * 4, f"{columns} PageRanks of {graph.n} vertices", "take fewer at once")
        self._view = CoreSplit(graph, core_size).outside_core
        self._cuts = edge_cuts(self._view.in_begin, self._view.in_end, SHARES)
        self._contribution, self._fresh = np.zeros((2, graph.n, width), np.float32)
        self._core_sums, self._inside = np.zeros((2, core_size, width), np.float32)
        self._change, self._returned = np.zeros((2, SHARES + 1, width))  # the last row is the core's
        self._lost = np.zeros(columns)
        self._sources, self._column = np.empty(0, np.int64), np.arange(columns)
        self._degree = np.empty(0, np.int64)
        self._ticket = np.zeros(1, np.int64)
        self._swept = self._has_core = False

    def begin(self, sources: np.ndarray) -> None:
        """Forget the last run: column j is all at sources[j]."""
        chosen = np.asarray(sources, np.int64)
        if chosen.shape != (self.columns,):
            raise ValueError(f"{self.columns} sources are needed, not an array of shape {chosen.shape}")
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.graph.n:
            raise ValueError(f"sources must be internal ids in 0..{self.graph.n - 1}")
        offsets = self.graph.out_offsets
        self._sources, self._degree = chosen, offsets[chosen + 1] - offsets[chosen]
        self._contribution[:] = 0
        self._contribution[chosen, self._column] = 1 / np.maximum(self._degree, 1)
        self._lost = (self._degree == 0).astype(np.float64)
        self._swept, self._has_core = False, not self.core_size

    def core_contributions(self) -> np.ndarray:
        """What each core vertex passes on to each of its out-neighbours, float32[core_size, columns]."""
        return self._contribution[: self.core_size, : self.columns].copy()

    def sweep_outside(self) -> None:
        """Follow every arc but those inside the core."""
        view = self._view
        sweep_many_step(
            InRows(view.in_begin, view.in_end, view.in_sources, self.graph.out_offsets),
            self._contribution, self._fresh, self._core_sums, self._damping, self._cuts, self._ticket,
            self._change[:-1], self._returned[:-1], numba.get_num_threads(),
        )  # fmt: skip
        self._swept = True

    def add_core_sums(self, sums: np.ndarray) -> None:
        """Take over the sums of contributions over the core's own arcs, [core_size, columns].

        Call it after ``sweep_outside``.
        """
        self._require_sweep()
        self._core_sums[:, : self.columns] += sums
        self._has_core = True

    def sum_core(self) -> None:
        """Follow the arcs inside the core here: what to do without the core solver's answer."""
        self._require_sweep()
        graph, view = self.graph, self._view
        sum_core_arcs_many_step(graph.in_offsets, view.in_begin, view.in_sources, self._contribution, self._inside)
        self._core_sums += self._inside
        self._has_core = True

    def finish_iteration(self) -> np.ndarray:
        """Make the new ranks the current ones; return how far they moved, float64[columns]."""
        if not (self._swept and self._has_core):
            raise RuntimeError("an iteration needs sweep_outside and, with a core, add_core_sums or sum_core")
        self._change[-1] = self._returned[-1] = 0
        settle_core_many_step(
            self._core_sums, self.graph.out_offsets, self._contribution, self._fresh, self._damping,
            self._change[-1], self._returned[-1],
        )  # fmt: skip
        change = self._change.sum(axis=0)[: self.columns]
        lost = self._returned.sum(axis=0)[: self.columns]
        # The restart, at one place per column; its change has been counted as if there were none.
        place = (self._sources, self._column)
        restart, degree = 1 - self._damping + self._damping * self._lost, np.maximum(self._degree, 1)
        without, before = self._fresh[place].astype(np.float64), self._contribution[place]
        full = without + restart / degree
        self._fresh[place] = full
        change += (abs(full - before) - abs(without - before)) * degree
        self._lost = lost + np.where(self._degree == 0, restart, 0)
        self._contribution, self._fresh = self._fresh, self._contribution
        self._swept, self._has_core = False, not self.core_size
        return np.maximum(change, 0)

    def iterate(self) -> np.ndarray:
        """A whole iteration, core and all."""
        self.sweep_outside()
        if self.core_size:
            self.sum_core()
        return self.finish_iteration()

    def rank(self) -> np.ndarray:
        """The current ranks, float32[n, columns]."""
        result = np.empty((self.graph.n, self.columns), np.float32)
        read_ranks_many_step(self.graph.out_offsets, self._contribution, result)
        return result

    def _require_sweep(self) -> None:
        if not self._swept:
            raise RuntimeError("the core's sums are added to what sweep_outside has found: call that first")
