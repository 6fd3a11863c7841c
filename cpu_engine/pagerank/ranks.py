"""PageRank on a partitioned graph, in rounds: partial sums to the masters, new contributions to the mirrors.

Both definitions of pagerank.py, by Jacobi iteration ("gap" converges to the same ranks as on one rank, to the same
tolerance, but takes its own number of iterations):

    ldbc  rank(v) = (1 - d) / N + d (sum over in-arcs u -> v of rank(u) / outdegree(u) + lost / N), so many times
    gap   the same without the lost term, until the sum of |changes| is below the tolerance

Bulk-synchronous only: an iteration reads the ranks of the one before, all of them. A stale contribution would not be
mended by a later message, as a stale distance is, but would be part of the sum - another result in every run.

Invariant: the same ranks in every run with the same parts. Sums over ranks travel as multiples of 2**-61, whose sum
does not depend on the order in which a transport adds them.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_engine.comm.reductions import DensePhase, SumPhase
from cpu_engine.comm.rounds import RoundsReport, agree, trade
from cpu_engine.comm.substrate import OUT_COUNT, SUM_PULLED, VALUE_READ, PhaseStatistics, Sync
from cpu_engine.graph.partition.part import Part
from cpu_engine.hub_core.kernels.rows import skip_core_of_part_step
from cpu_engine.pagerank.kernels.ranks import settle_ranks_step, sum_in_arcs_step
from cpu_engine.ranks.outside import CoreSums, core_masters
from cpu_engine.ranks.statistics import RankStatistics

DEFINITIONS = ("ldbc", "gap")
LDBC_ITERATIONS = 10
GAP_ITERATIONS, GAP_TOLERANCE = 20, 1e-4  # GAP's defaults
BLOCKS = 256  # of about as many arcs, dealt to threads
_FIXED_POINT = float(1 << 61)  # all rank is 1, all changes of an iteration at most 2


@dataclass(frozen=True)
class PageRankOutcome:
    """One part's result: its masters' ranks, and what all parts share."""

    ranks: np.ndarray  # float64
    isolated_rank: float  # what a vertex without edges has, or would have
    iterations: int
    change: float  # sum over all vertices of |rank - rank one iteration before|
    converged: bool  # whether the change is below the tolerance; True where none was asked for
    statistics: RankStatistics


class PageRankOnRanks:
    """One part's side; made once, run as often as wanted."""

    def __init__(self, part: Part, core_size: int = 0) -> None:
        self.part, self._core_masters = part, core_masters(part, core_size)
        self._outside_core = part.in_offsets[:-1]  # where each row's arcs from outside the core begin
        if core_size:
            core = np.flatnonzero(part.internal_of < core_size).astype(np.int32)
            self._outside_core = skip_core_of_part_step(
                part.in_offsets, part.in_sources, core, part.internal_of, core_size
            )
        self._sums = Sync(part, SUM_PULLED, phases=DensePhase)
        self._contributions = Sync(part, VALUE_READ, phases=DensePhase)
        self._out_count: np.ndarray | None = None  # of the masters, in the whole graph
        arcs = np.linspace(0, part.arcs, BLOCKS + 1)
        self._cuts = np.searchsorted(part.in_offsets, arcs).astype(np.int64)
        self._cuts[0], self._cuts[-1] = 0, part.size

    def run(
        self,
        *,
        definition: str = "ldbc",
        damping: float = 0.85,
        tolerance: float | None = None,
        iterations: int | None = None,
        outside: CoreSums | None = None,
    ) -> Generator[Any, Any, PageRankOutcome]:
        """Iterate until the change is below ``tolerance``, at most ``iterations`` times; None: as pagerank.py.

        ``outside``: a core solver adds up what the core's own arcs bring.
        """
        if definition not in DEFINITIONS:
            raise ValueError(f"the definition must be one of {', '.join(DEFINITIONS)}, and is {definition!r}")
        spreads = definition == "ldbc"
        tolerance = GAP_TOLERANCE if tolerance is None and not spreads else tolerance
        if iterations is None:
            iterations = LDBC_ITERATIONS if spreads else GAP_ITERATIONS
        part, report, statistics = self.part, RoundsReport(), RankStatistics()
        for phase in (*self._sums.phases, *self._contributions.phases):
            phase.statistics = PhaseStatistics()
        if self._out_count is None:
            self._out_count = yield from _whole_out_count(part, report)
        vertices = int(part.layout.bounds[-1])
        isolated, base = vertices - part.n, 1 / max(vertices, 1)
        sums, contribution = np.zeros(part.size), np.zeros(part.size)
        rank = np.full(part.masters, base)
        sums[: part.masters] = 0.0
        own = settle_ranks_step(sums[: part.masters], self._out_count, base, 0.0, rank, contribution)
        lost = (yield from _add_up([own[1]], report))[0]
        isolated_rank, done, change = base, 0, float("inf")
        while done < iterations and (tolerance is None or change >= tolerance):
            done += 1
            helped = False
            if outside is not None:
                helped = yield from outside.send(contribution[: self._core_masters])
            yield from self._spread(contribution, report)
            begin, rows = time.perf_counter(), (self._outside_core if helped else part.in_offsets[:-1])
            with statistics.computing(done):
                self._sum(rows, part.in_offsets[1:], contribution, sums)
                statistics.expanded("pull", part.size, part.arcs)
            report.note("compute", begin, time.perf_counter())
            yield from self._gather(sums, report)
            if helped and outside is not None:
                yield from self._add_core(outside, contribution, sums, report)
            base = (1 - damping + damping * (lost + isolated * isolated_rank if spreads else 0.0)) / max(vertices, 1)
            own = settle_ranks_step(sums[: part.masters], self._out_count, base, damping, rank, contribution)
            moved, lost = yield from _add_up(own, report)
            change = moved + isolated * abs(base - isolated_rank)
            isolated_rank = base
        report.rounds = done
        statistics.take(report, self._sums)
        statistics.take(RoundsReport(), self._contributions)
        converged = tolerance is None or change < tolerance
        return PageRankOutcome(rank, isolated_rank, done, change, converged, statistics)

    def _sum(self, begin: np.ndarray, end: np.ndarray, contribution: np.ndarray, sums: np.ndarray) -> None:
        sum_in_arcs_step(self._cuts, begin, end, self.part.in_sources.view(np.uint32), contribution, sums)

    def _add_core(
        self, outside: CoreSums, contribution: np.ndarray, sums: np.ndarray, report: RoundsReport
    ) -> Generator[Any, Any, None]:
        """Add what the core's own arcs bring: by the solver's word, or, where none comes, by another sweep."""
        answer = yield from outside.receive()
        if answer is not None:
            sums[: self._core_masters] += answer
            return
        inside = np.zeros(self.part.size)
        self._sum(self.part.in_offsets[:-1], self._outside_core, contribution, inside)
        yield from self._gather(inside, report)
        sums[: self.part.masters] += inside[: self.part.masters]

    def _spread(self, contribution: np.ndarray, report: RoundsReport) -> Generator[Any, Any, None]:
        for phase in self._contributions.phases:
            came = yield from trade(phase, contribution, report)
            _apply(phase, came, contribution, report)

    def _gather(self, sums: np.ndarray, report: RoundsReport) -> Generator[Any, Any, None]:
        for phase in self._sums.phases:
            came = yield from trade(phase, sums, report)
            _apply(phase, came, sums, report)


def _apply(phase: Any, came: dict[int, np.ndarray], values: np.ndarray, report: RoundsReport) -> None:
    begin = time.perf_counter()
    for peer in sorted(came):  # in the same order always: sums of floats depend on it
        phase.apply(peer, came[peer], values)
    report.note("unpack", begin, time.perf_counter())


def _whole_out_count(part: Part, report: RoundsReport) -> Generator[Any, Any, np.ndarray]:
    """The masters' out-arcs on all parts together."""
    counts = np.diff(part.out_offsets).astype(np.uint64)
    for phase in Sync(part, OUT_COUNT, phases=SumPhase).phases:
        came = yield from trade(phase, counts, report)
        for peer, payload in came.items():
            phase.apply(peer, payload, counts)
    return counts[: part.masters].astype(np.float64)


def _add_up(values: Any, report: RoundsReport) -> Generator[Any, Any, list[float]]:
    """Sums over all ranks of numbers in [0, 2]."""
    fixed = np.array([round(value * _FIXED_POINT) for value in values], np.int64)
    total = yield from agree(fixed, "sum", report)
    return [float(value) / _FIXED_POINT for value in total]
