"""PageRank by pull: whole, or with the arcs inside the dense core left to the core solver.

Two definitions, both with N = all vertices, isolated ones included, starting at 1 / N everywhere:

    ldbc  rank(v) = (1 - d) / N + d * (sum over in-arcs u -> v of rank(u) / outdegree(u) + lost / N), where ``lost`` is
          the rank of all vertices without out-arcs; a fixed number of iterations (10).
    gap   the same without the lost term; until the sum of |changes| is below a tolerance (1e-4), at most 20 iterations.

A parallel arc counts as often as it is there, a self-loop passes rank on to its own vertex.

"ldbc" iterates as it is defined: all read the last iteration's ranks (Jacobi). "gap" asks for the fixpoint, to a
tolerance; as in GAP's own program new ranks are read as soon as they are there (Gauss-Seidel), here by the block: one
part of the rows after the other, hubs first. That unbalances the total, which would take long to settle; so before each
sweep all ranks are scaled to the total that the next one would leave as it is. Either way the same ranks come out with
any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.kernels.iteration import (
    InRows,
    add_core_arcs_step,
    read_ranks_step,
    settle_core_step,
    start_ranks_step,
    sweep_step,
)
from cpu_engine.threads import alone_if_small

DEFINITIONS = ("ldbc", "gap")
SHARES = 1024  # of the rows, of equal arcs: fine enough to even out the threads, whatever their number
BLOCKS_OF_A_SWEEP = 32  # a relaxation's: more converge faster, but each is a barrier
MIN_BLOCK_ARCS = 1 << 16  # below that, the barrier costs more than the block
LDBC_ITERATIONS = 10
GAP_ITERATIONS, GAP_TOLERANCE = 20, 1e-4  # GAP's defaults


@dataclass(frozen=True)
class PageRankResult:
    """The ranks of the vertices with edges, and the one rank that all isolated vertices share."""

    rank: np.ndarray  # float64[n], internal ids
    isolated_rank: float  # what a vertex without edges has, or would have
    iterations: int
    change: float  # sum over all vertices of |rank - rank one iteration before|
    converged: bool  # whether the change is below the tolerance; True where none was asked for

    @property
    def counters(self) -> dict[str, Any]:
        """What the summary says of the run besides its ranks."""
        return {"iterations": self.iterations, "change": self.change, "converged": self.converged}


@alone_if_small
def pagerank(
    graph: Graph,
    *,
    definition: str = "ldbc",
    damping: float = 0.85,
    tolerance: float | None = None,
    iterations: int | None = None,
) -> PageRankResult:
    """Iterate until the change is below ``tolerance``, at most ``iterations`` times.

    None is the definition's default: for "ldbc" no tolerance and 10 iterations, for "gap" 1e-4 and 20.
    """
    engine = PageRankEngine(graph, definition=definition, damping=damping)
    tolerance, most = limits_of(definition, tolerance, iterations)
    engine.begin()
    done, change = 0, float("inf")
    iterate = engine.relax if definition == "gap" else engine.iterate
    while done < most and (tolerance is None or change >= tolerance):
        change = iterate()
        done += 1
    return PageRankResult(engine.rank(), engine.isolated_rank, done, change, tolerance is None or change < tolerance)


def limits_of(definition: str, tolerance: float | None, iterations: int | None) -> tuple[float | None, int]:
    """Tolerance and most iterations, with the definition's defaults where they are None."""
    if definition == "gap" and tolerance is None:
        tolerance = GAP_TOLERANCE
    if iterations is None:
        iterations = GAP_ITERATIONS if definition == "gap" else LDBC_ITERATIONS
    if iterations < 0:
        raise ValueError(f"iterations must not be negative, and are {iterations}")
    return tolerance, iterations


def edge_cuts(begin: np.ndarray, end: np.ndarray, blocks: int) -> np.ndarray:
    """Where to cut the rows so that each of the blocks has about as many arcs; int64[blocks + 1], from 0 to n."""
    before = np.zeros(begin.size + 1, np.int64)
    np.cumsum(end - begin, out=before[1:])
    return _cuts(before, blocks)


def _cuts(before: np.ndarray, blocks: int) -> np.ndarray:
    cuts = np.searchsorted(before, np.linspace(0, before[-1], blocks + 1)).astype(np.int64)
    cuts[0], cuts[-1] = 0, before.size - 1
    return cuts


class PageRankEngine:
    """PageRank iteration by iteration, with buffers that are made once. The core is the vertex range [0, core_size).

    One iteration: ``core_contributions`` go to the core solver, which adds up the core's own arcs; ``sweep_outside``
    does all others, at the same time if need be; ``add_core_sums`` or, without an answer, ``sum_core``;
    ``finish_iteration``. ``iterate`` is all that by the CPU alone, ``relax`` the iteration of "gap" that converges
    faster.
    """

    def __init__(self, graph: Graph, *, core_size: int = 0, definition: str = "ldbc", damping: float = 0.85) -> None:
        if definition not in DEFINITIONS:
            raise ValueError(f"the definition must be one of {', '.join(DEFINITIONS)}, and is {definition!r}")
        if not 0 <= damping < 1:
            raise ValueError(f"the damping must be at least 0 and below 1, and is {damping}")
        if not 0 <= core_size <= graph.n:
            raise ValueError(f"the core must have 0..{graph.n} vertices, and has {core_size}")
        self.graph, self.core_size, self.definition = graph, core_size, definition
        self._spreads, self._damping = definition == "ldbc", damping
        self._vertices = int(graph.user_ids.size)
        self._isolated = self._vertices - graph.n
        self._view = CoreSplit(graph, core_size).outside_core
        if core_size:
            self._cuts = edge_cuts(self._view.in_begin, self._view.in_end, SHARES)
        else:
            self._cuts = _cuts(graph.in_offsets, SHARES)
        number = np.float32 if definition == "gap" else np.float64  # as GAP has it; LDBC wants ten digits
        self._contribution, self._fresh = np.empty((2, graph.n), number)
        self._core_sums = np.empty(core_size, np.float64)
        self._tally, self._ticket = np.zeros((SHARES, 3)), np.zeros(1, np.int64)
        self.isolated_rank = self._lost = self._mass = self._base = 0.0
        self._missing = 0  # parts of the iteration that finish_iteration still needs
        self.begin()

    def begin(self) -> None:
        """Forget the last run: every vertex has rank 1 / N."""
        self.isolated_rank = 1 / max(self._vertices, 1)
        start_ranks_step(self.graph.out_offsets, self.isolated_rank, self._contribution)
        dangling = np.count_nonzero(np.diff(self.graph.out_offsets) == 0) if self.graph.directed else 0
        self._lost, self._mass = dangling * self.isolated_rank, self.graph.n * self.isolated_rank
        self._begin_iteration()

    def core_contributions(self) -> np.ndarray:
        """What each core vertex passes on to each of its out-neighbours in this iteration, float32[core_size]."""
        return self._contribution[: self.core_size].astype(np.float32)

    def sweep_outside(self) -> None:
        """Follow every arc but those inside the core."""
        self._sweep(0, SHARES)
        self._missing &= ~_OUTSIDE

    def add_core_sums(self, sums: np.ndarray) -> None:
        """Take over the sums of contributions over the core's own arcs, one number per core vertex.

        Call it after ``sweep_outside``.
        """
        self._require_sweep()
        self._core_sums += sums
        self._missing &= ~_CORE

    def sum_core(self) -> None:
        """Follow the arcs inside the core here: what to do without the core solver's answer."""
        self._require_sweep()
        graph, view = self.graph, self._view
        add_core_arcs_step(graph.in_offsets, view.in_begin, view.in_sources, self._contribution, self._core_sums)
        self._missing &= ~_CORE

    def finish_iteration(self) -> float:
        """Make the new ranks the current ones; return the sum over all vertices of how far they moved."""
        if self._missing:
            raise RuntimeError("an iteration needs sweep_outside and, with a core, add_core_sums or sum_core")
        core_change, core_lost = settle_core_step(
            self._core_sums, self.graph.out_offsets, self._contribution, self._fresh, self._base, self._damping
        )
        self._contribution, self._fresh = self._fresh, self._contribution
        return self._end_iteration(core_change, core_lost)

    def iterate(self) -> float:
        """A whole iteration, core and all."""
        self.sweep_outside()
        if self.core_size:
            self.sum_core()
        return self.finish_iteration()

    def relax(self) -> float:
        """A whole iteration in place: a block of rows reads what the blocks before it have written. Not with a core."""
        if self.core_size or self._spreads:
            raise RuntimeError("relax is for the definition 'gap' and no core; iterate is for all")
        # The total that (1 - d) n / N + d (total - lost) reproduces, from the proportions as they are.
        kept = (1 - self._damping) * self._mass + self._damping * self._lost
        self._contribution *= self._contribution.dtype.type(self.graph.n * self._base / kept if kept else 1)
        blocks = max(1, min(BLOCKS_OF_A_SWEEP, self.graph.m // MIN_BLOCK_ARCS))
        for first in range(0, SHARES, SHARES // blocks):
            last = min(first + SHARES // blocks, SHARES)
            self._sweep(first, last)
            rows = slice(self._cuts[first], self._cuts[last])
            self._contribution[rows] = self._fresh[rows]
        return self._end_iteration(0.0, 0.0)

    def rank(self) -> np.ndarray:
        """The current ranks, float64[n]."""
        result = np.empty(self.graph.n)
        read_ranks_step(self.graph.out_offsets, self._contribution, result)
        return result

    def _sweep(self, first: int, last: int) -> None:
        view = self._view
        sweep_step(
            InRows(view.in_begin, view.in_end, view.in_sources, self.graph.out_offsets),
            self._contribution, self._fresh, self._core_sums, self._base, self._damping,
            self._cuts[first : last + 1], self._ticket, self._tally[first:last], numba.get_num_threads(),
        )  # fmt: skip

    def _end_iteration(self, core_change: float, core_lost: float) -> float:
        change, lost, self._mass = self._tally.sum(axis=0)
        change += core_change + self._isolated * abs(self._base - self.isolated_rank)
        self._lost, self.isolated_rank = lost + core_lost, self._base
        self._begin_iteration()
        return float(change)

    def _begin_iteration(self) -> None:
        """What a vertex without in-arcs gets, from the ranks as they are."""
        lost = self._lost + self._isolated * self.isolated_rank if self._spreads else 0.0
        self._base = (1 - self._damping + self._damping * lost) / max(self._vertices, 1)
        self._missing = _OUTSIDE | (_CORE if self.core_size else 0)

    def _require_sweep(self) -> None:
        if self._missing & _OUTSIDE:
            raise RuntimeError("the core's sums are added to what sweep_outside has found: call that first")


_OUTSIDE, _CORE = 1, 2
