"""Weakly connected components on a partitioned graph: each part's own once, then labels between parts.

A part joins what its own arcs connect (Afforest: most of it from two neighbours per vertex, the rest only outside the
largest tree), and from then on a component of a part is one thing: a smaller label at any member is one for all. So
what travels is the smallest internal id known for a vertex, and a round costs what changes in it.

Invariant: labels only fall and are always ids of the vertex's component, so both bsp and basp end with the smallest.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_engine.comm.requests import AllReduce, Message
from cpu_engine.comm.rounds import basp_rounds, bsp_rounds
from cpu_engine.comm.substrate import LABEL_SPREAD, PhaseStatistics, Sync
from cpu_engine.comm.termination import Termination
from cpu_engine.components.kernels import ranks as kernel
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.outside import Outside, peers_of
from cpu_engine.ranks.split import PartSplit
from cpu_engine.ranks.statistics import RankStatistics

SAMPLE = 1024  # vertices asked for their tree to find the largest one
_MOST = 0xFFFFFFFF


@dataclass(frozen=True)
class ComponentsOutcome:
    """One part's result: the smallest internal id of each master's component, and how many there are in all."""

    labels: np.ndarray  # int32
    count: int
    statistics: RankStatistics


class ComponentsOnRanks:
    """One part's side; made once, run as often as wanted. ``sync``: bsp or basp."""

    def __init__(self, part: Part, *, sync: str = "bsp", core_size: int = 0) -> None:
        self.part, self.sync = part, sync
        self._worker = _Worker(part, core_size)

    def run(
        self, outside: Outside | None = None, *, withhold_core: bool = False
    ) -> Generator[Any, Any, ComponentsOutcome]:
        """All components; ``withhold_core``: a core solver joins what the core's own edges connect."""
        part, worker, statistics = self.part, self._worker, RankStatistics()
        for phase in worker.field.phases:
            phase.statistics = PhaseStatistics()
        worker.start(statistics, outside, withhold_core)
        if self.sync == "basp":
            report = yield from basp_rounds(worker, worker.field, Termination(part.part, part.layout.parts))
        else:
            others = peers_of(part, outside)
            report = yield from bsp_rounds(worker, worker.field, others, others)
        statistics.take(report, worker.field)
        labels = worker.values[: part.masters].astype(np.int32)
        own = int(np.count_nonzero(labels == part.internal_of[: part.masters]))
        count = yield AllReduce(np.array([own], np.int64))
        return ComponentsOutcome(labels, int(count[0]), statistics)


class _Worker:
    """The local side; satisfies ``comm.rounds.Worker`` and ``ranks.outside.Host``."""

    def __init__(self, part: Part, core_size: int) -> None:
        size = part.size
        self.part, self._split = part, PartSplit(part, core_size)
        self._outside: Outside | None = None
        self._withheld = False
        self.values = np.empty(size, np.uint32)
        self.field = Sync(part, LABEL_SPREAD)
        self._root, self._members = np.empty(size, np.int32), np.empty(size, np.int32)
        self._ends, self._smallest = np.empty(size, np.int64), np.empty(size, np.uint32)
        self._queued, self._waiting = np.zeros(size, np.uint8), np.empty(size, np.int32)
        self._count, self._joined = 0, False
        self._statistics = RankStatistics()

    def start(self, statistics: RankStatistics, outside: Outside | None, withhold_core: bool) -> None:
        self._statistics, self._outside, self._withheld = statistics, outside, withhold_core
        if outside is not None:
            self.values.fill(_MOST)  # no label is known before the part's own arcs were looked at
            outside.bind(self)
        self._count, self._joined = 0, False
        self._queued[:] = 0

    def compute(self) -> bool:
        if not self._joined:
            with self._statistics.computing():
                looked = self._join()
                self._statistics.expanded("join", self.part.size, looked)
            self._joined = True
        elif self._count:
            with self._statistics.computing():
                waiting, self._count = self._waiting[: self._count], 0
                looked = kernel.spread_labels_step(
                    waiting, self._ends, self._members, self._smallest, self._queued, self.values
                )
                self._statistics.expanded("spread", waiting.size, int(looked))
        return False

    def _join(self) -> int:
        """The components of the part's own arcs; how many arcs were looked at, or about."""
        part, root = self.part, self._root
        view = self._split.outside_core if self._withheld else self._split.all_edges
        root[:] = np.arange(root.size, dtype=np.int32)
        rows = ((view.out_begin, view.out_end, part.out_targets), (view.in_begin, view.in_end, part.in_sources))
        for nth in range(kernel.SAMPLED_NEIGHBOURS):
            for row in rows:
                kernel.link_some_step(*row, root, nth)
        kernel.compress_roots_step(root)
        largest = _most_frequent(root)
        outside = root != largest
        for row in rows:
            kernel.link_rest_step(*row, root, kernel.SAMPLED_NEIGHBOURS, largest)
        kernel.compress_roots_step(root)
        self._ends[:] = 0
        kernel.group_members_step(root, self._ends, self._members)
        self._smallest[:] = _MOST
        kernel.smallest_names_step(root, part.internal_of, self.values, self._smallest)
        rest = sum(int((end - begin)[outside].sum()) for begin, end, _ in rows)
        return 2 * kernel.SAMPLED_NEIGHBOURS * root.size + rest

    def activate(self, local_ids: np.ndarray, peer: int) -> None:
        self._count = kernel.notice_labels_step(
            local_ids, self._root, self.values, self._smallest, self._queued, self._waiting, self._count
        )

    def adopt_unexplained(self, vertices: np.ndarray) -> None:
        self.activate(vertices, self.part.part)

    def take_core_back(self) -> None:
        """Join again, all arcs this time; a smaller label that has come in between is kept."""
        self._withheld = False
        if not self._joined:
            return
        known = self.values.copy()
        with self._statistics.computing():
            self._statistics.expanded("join", self.part.size, self._join())
        lower = np.flatnonzero(known < self.values).astype(np.int32)
        self.values[lower] = known[lower]
        self._count = 0
        self._queued[:] = 0
        self.activate(lower, self.part.part)

    def can_step(self) -> bool:
        return not self._joined or self._count > 0

    def idle(self) -> bool:
        return not self.can_step() and (self._outside is None or self._outside.idle())

    def outside(self) -> list[Message]:
        return [] if self._outside is None else self._outside.outgoing()

    def from_outside(self, message: Message) -> None:
        if self._outside is not None:
            self._outside.arrived(message)


def _most_frequent(root: np.ndarray) -> int:
    """The root that most of a sample have; -1 if the part has no vertices."""
    if not root.size:
        return -1
    sample = root[np.random.default_rng(0).integers(0, root.size, SAMPLE)]
    roots, counts = np.unique(sample, return_counts=True)
    return int(roots[counts.argmax()])
