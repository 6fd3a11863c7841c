"""Core numbers on a partitioned graph: peeling in rounds.

Level k takes the vertices with at most k neighbours left, and each of their neighbours then has one less. A part goes
on with what that does to its own masters, then sends the others the vertices that were taken (broadcast) and what their
masters lost here (reduce by sum), until no part takes a vertex. The next level is the smallest number of neighbours
that a vertex has left.
Any policy will do. Of a directed graph it needs a symmetric layout: neighbours are those over arcs of either direction,
each counted once, which the part that holds both arcs sees.

Bulk-synchronous: which vertices a level takes is known only when the level before has taken all of its own.

Invariant: a vertex that is left has at least as many neighbours left as the level, by the losses that its master has
received; each loss is sent once.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cpu_engine.comm.reductions import SumPhase
from cpu_engine.comm.rounds import RoundsReport, agree, trade
from cpu_engine.comm.sparse_updates import ChangeList, SparsePhase
from cpu_engine.comm.substrate import SUM_PULLED, VALUE_READ, PhaseStatistics, Sync
from cpu_engine.graph.partition.part import Part
from cpu_engine.kcore.kernels import ranks as kernel
from cpu_engine.ranks.statistics import RankStatistics

_NONE_LEFT = np.iinfo(np.int64).max


@dataclass(frozen=True)
class CoreNumbersOutcome:
    """One part's result: its masters' core numbers, and the largest of all."""

    cores: np.ndarray  # int32
    largest: int
    levels: int
    statistics: RankStatistics


class CoreNumbersOnRanks:
    """One part's side; made once, run as often as wanted."""

    def __init__(self, part: Part) -> None:
        self.part = part
        size = part.size
        self._offsets, self._targets = _distinct(part)
        self._changes = ChangeList(size, part.masters)
        self._gone = Sync(part, VALUE_READ, phases=partial(SparsePhase, dtype=np.uint32))
        self._lost = Sync(part, SUM_PULLED, phases=SumPhase)
        for phase in self._gone.phases:
            assert isinstance(phase, SparsePhase)
            phase.follow(self._changes)
        self._core, self._losses = np.empty(size, np.uint32), np.empty(size, np.uint32)
        self._state = np.zeros(kernel.STATE, np.int64)
        self._peeling = kernel.Peeling(
            degree=np.empty(part.masters, np.int32),
            core=self._core,
            losses=self._losses,
            alive=np.empty(part.masters, np.int32),
            stack=np.empty(size, np.int32),
            state=self._state,
            mark=self._changes.mark,
            changes=self._changes.vertices,
            counts=self._changes.counts,
        )

    def run(self) -> Generator[Any, Any, CoreNumbersOutcome]:
        """All core numbers."""
        report, statistics = RoundsReport(), RankStatistics()
        yield from self._start(report)
        level, largest, levels = 0, 0, 0
        while True:
            smallest = kernel.smallest_degree_step(self._peeling)
            agreed = yield from agree(np.array([_NONE_LEFT if smallest < 0 else smallest], np.int64), "min", report)
            if agreed[0] == _NONE_LEFT:
                break
            level, levels = int(agreed[0]), levels + 1
            largest = level
            with statistics.computing(level):
                kernel.open_level_step(level, self._peeling)
            yield from self._peel_level(level, report, statistics)
        for sync in (self._gone, self._lost):
            statistics.take(report, sync)
            report = RoundsReport()
        cores = self._core[: self.part.masters].astype(np.int32)
        return CoreNumbersOutcome(cores, largest, levels, statistics)

    def _start(self, report: RoundsReport) -> Generator[Any, Any, None]:
        """No vertex has gone yet; masters learn how many neighbours they have on other parts."""
        part, masters = self.part, self.part.masters
        for phase in (*self._gone.phases, *self._lost.phases):
            phase.statistics = PhaseStatistics()
            phase.start()
        self._changes.start()
        self._core.fill(kernel.NOT_YET)
        self._state[:] = 0
        self._state[kernel.ALIVE] = masters
        self._peeling.alive[:] = np.arange(masters, dtype=np.int32)
        counts = np.bincount(self._targets, minlength=part.size).astype(np.uint32)
        for phase in self._lost.phases:
            came = yield from trade(phase, counts, report)
            for peer, payload in came.items():
                phase.apply(peer, payload, counts)
        self._peeling.degree[:] = counts[:masters]
        self._losses.fill(0)

    def _peel_level(self, level: int, report: RoundsReport, statistics: RankStatistics) -> Generator[Any, Any, None]:
        """Peel until no vertex goes at this level any more, on any rank."""
        while True:
            report.rounds += 1
            self._peel(level, report, statistics)
            for phase in self._gone.phases:
                came = yield from trade(phase, self._core, report)
                begin = time.perf_counter()
                for peer, payload in came.items():
                    kernel.stack_step(phase.apply(peer, payload, self._core), self._peeling)
                report.note("unpack", begin, time.perf_counter())
                self._peel(level, report, statistics)
            for phase in self._lost.phases:
                came = yield from trade(phase, self._losses, report)
                begin = time.perf_counter()
                for peer, payload in came.items():
                    masters = phase.apply(peer, payload, self._losses)
                    kernel.take_losses_step(masters, level, self._peeling)
                report.note("unpack", begin, time.perf_counter())
            unsent = self._state[kernel.STACKED] > 0 or (self._gone.phases and self._changes.counts[0] > 0)
            busy = yield from agree(np.array([bool(unsent)], np.int64), "max", report)
            if not busy[0]:
                return

    def _peel(self, level: int, report: RoundsReport, statistics: RankStatistics) -> None:
        if not self._state[kernel.STACKED]:
            return
        begin, looked = time.perf_counter(), int(self._state[kernel.EDGES])
        with statistics.computing(level):
            kernel.peel_step(self._offsets, self._targets, self.part.masters, level, self._peeling)
            statistics.expanded("peel", 0, int(self._state[kernel.EDGES]) - looked)
        report.note("compute", begin, time.perf_counter())


def _distinct(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """The part's out-rows, each neighbour once."""
    offsets, targets = np.zeros(part.size + 1, np.int64), np.empty(part.arcs, np.int32)
    size = kernel.keep_distinct_step(part.out_offsets, part.out_targets, offsets, targets)
    return (part.out_offsets, part.out_targets) if size == part.arcs else (offsets, targets[:size].copy())
