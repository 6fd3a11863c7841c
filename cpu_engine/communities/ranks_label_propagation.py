"""Communities by label propagation (LDBC CDLP) on a partitioned graph, in rounds.

A vertex takes the most frequent label of its neighbours, so all of them must be seen at one place. An edge cut has them
at the master: by ``iec`` all in-arcs, by ``oec`` all out-arcs; in an undirected graph, and in a symmetric layout of a
directed one, either are all neighbours, those joined both ways twice. Under the other policies a vertex's neighbours
are spread over parts, which would have to exchange counts of labels: they are refused.

Bulk-synchronous: the definition is. Within the rounds a label is its position in the ascending list of user ids, so
that the smaller label is the smaller id; masters assign labels, and send their mirrors those that have changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from cpu_engine.comm.reductions import AssignPhase
from cpu_engine.comm.requests import Driver
from cpu_engine.comm.rounds import RoundsReport, agree, trade
from cpu_engine.comm.substrate import Field, PhaseStatistics, Sync
from cpu_engine.communities.kernels.label_propagation import propagate_labels_step
from cpu_engine.errors import InputError
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.statistics import RankStatistics

POLICIES = ("iec", "oec")
_SMALLEST_TABLE = 8
_MOST_LABELS = np.iinfo(np.int32).max


@dataclass(frozen=True)
class LabelsOutcome:
    """One part's result: its masters' labels as user ids."""

    labels: np.ndarray  # int64
    iterations: int  # that were run; fewer than asked for where the labels came to rest before
    changed: int  # labels that the last iteration changed, on all ranks
    statistics: RankStatistics


class LabelsOnRanks:
    """One part's side. ``own``: where its vertices are in the user's order; ``name``: the ids at such positions."""

    def __init__(self, part: Part, own: np.ndarray, name: Callable[[np.ndarray], Driver[np.ndarray]]) -> None:
        policy = part.layout.policy
        if policy not in POLICIES:
            raise InputError(
                "label propagation needs all neighbours of a vertex at one place, which this policy does not give",
                value=policy,
                fix=f"use one of {', '.join(POLICIES)}",
            )
        if part.layout.bounds[-1] > _MOST_LABELS:
            raise InputError(
                "label propagation numbers its labels with 31 bits",
                value=int(part.layout.bounds[-1]),
                fix="use a graph of fewer than 2,147,483,648 vertices",
            )
        self.part, self._name = part, name
        self._own = own.astype(np.int32)
        by_target = policy == "iec"
        self._offsets = part.in_offsets if by_target else part.out_offsets
        self._neighbours = (part.in_sources if by_target else part.out_targets).view(np.uint32)
        field = Field("label", written="master", read="source" if by_target else "target")
        self._sync = Sync(part, field, phases=AssignPhase)
        most = int(np.diff(self._offsets).max(initial=0))
        size = max(_SMALLEST_TABLE, 1 << max(0, 2 * most - 1).bit_length())
        self._tables = np.zeros((numba.get_num_threads(), size), np.uint64)

    def run(self, *, iterations: int = 10) -> Generator[Any, Any, LabelsOutcome]:
        """The labels after so many rounds, or when nothing changes any more, which is the same."""
        part, report, statistics = self.part, RoundsReport(), RankStatistics()
        label, fresh = self._own.copy(), self._own.copy()
        for phase in self._sync.phases:
            assert isinstance(phase, AssignPhase)
            phase.statistics = PhaseStatistics()
            phase.knows(label.view(np.uint32))
        changed = 0
        while report.rounds < iterations:
            report.rounds += 1
            moved = self._propagate(label, fresh, report, statistics)
            fresh[part.masters :] = label[part.masters :]
            label, fresh = fresh, label
            for phase in self._sync.phases:
                came = yield from trade(phase, label.view(np.uint32), report)
                begin = time.perf_counter()
                for peer, payload in came.items():
                    phase.apply(peer, payload, label.view(np.uint32))
                report.note("unpack", begin, time.perf_counter())
            total = yield from agree(np.array([moved], np.int64), "sum", report)
            changed = int(total[0])
            if not changed:
                break
        rounds = report.rounds
        statistics.take(report, self._sync)
        found = (yield from self._name(label[: part.masters])).astype(np.int64)
        return LabelsOutcome(found, rounds, changed, statistics)

    def _propagate(self, label: np.ndarray, fresh: np.ndarray, report: RoundsReport, statistics: RankStatistics) -> int:
        """New labels of the masters into ``fresh``; how many differ."""
        begin, moved = time.perf_counter(), np.zeros(self._tables.shape[0], np.int64)
        with statistics.computing(report.rounds):
            rows = (self._offsets, self._neighbours)
            propagate_labels_step(*rows, *rows, False, label, fresh, self._tables, moved, np.zeros(1, np.int64))
            statistics.expanded("pull", self.part.masters, self.part.arcs)
        report.note("compute", begin, time.perf_counter())
        return int(moved.sum())
