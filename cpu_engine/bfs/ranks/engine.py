"""BFS on a partitioned graph: one part's side, by either engine.

``search`` is a driver (see comm.requests): P of them run in one process by comm.loopback, or one per rank by comm.mpi.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_engine.bfs.ranks.asynchronous import AsyncWorker
from cpu_engine.bfs.ranks.level_synchronous import LevelBfsOnRanks
from cpu_engine.bfs.ranks.parents import ask_parents, settle_parents
from cpu_engine.comm.rounds import basp_rounds, bsp_rounds
from cpu_engine.comm.substrate import DISTANCE_PUSHED, Sync
from cpu_engine.comm.termination import Termination
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.outside import Outside, peers_of
from cpu_engine.ranks.split import PartSplit
from cpu_engine.ranks.statistics import RankStatistics


@dataclass(frozen=True)
class SearchOutcome:
    """One part's result: level and parent of its masters, parents as internal ids, -1 where there is none."""

    levels: np.ndarray
    parents: np.ndarray
    statistics: RankStatistics


class RankEngine:
    """Made once per part, used for every search. ``sync``: bsp or basp; the level engine is always bulk-synchronous."""

    def __init__(self, part: Part, *, engine: str = "async", sync: str = "basp", core_size: int = 0) -> None:
        self.part, self.core_size, self.sync = part, core_size, sync
        self.split = PartSplit(part, core_size)
        self._level = LevelBfsOnRanks(self.split) if engine == "level" else None
        self.worker = AsyncWorker(self.split) if engine == "async" else None
        self._field = Sync(part, DISTANCE_PUSHED)

    def search(
        self, root: int, outside: Outside | None = None, *, withhold_core: bool = False
    ) -> Generator[Any, Any, SearchOutcome]:
        """BFS from an internal id."""
        statistics = RankStatistics()
        if self._level is not None:
            outcome = yield from self._search_by_level(root, statistics)
        else:
            outcome = yield from self._search_async(root, outside, withhold_core, statistics)
        return outcome

    def _search_by_level(self, root: int, statistics: RankStatistics) -> Generator[Any, Any, SearchOutcome]:
        search, part = self._level, self.part
        assert search is not None
        yield from search.search(root, statistics)
        parents = yield from ask_parents(part, search.level, search.parent, statistics)
        return SearchOutcome(search.level[: part.masters], parents, statistics)

    def _search_async(
        self, root: int, outside: Outside | None, withhold_core: bool, statistics: RankStatistics
    ) -> Generator[Any, Any, SearchOutcome]:
        worker, part = self.worker, self.part
        assert worker is not None
        worker.start(root, withhold_core=withhold_core, outside=outside, statistics=statistics)
        self._field.restart_statistics()
        if self.sync == "basp":
            termination = Termination(part.part, part.layout.parts)
            report = yield from basp_rounds(worker, self._field, termination)
        else:
            others = peers_of(part, outside)
            report = yield from bsp_rounds(worker, self._field, others, others)
        statistics.take(report, self._field)
        level, parent = worker.engine.unfinished()
        parents = yield from settle_parents(part, level, parent, statistics)
        parents[level[: part.masters] == 0] = root
        return SearchOutcome(level[: part.masters], parents, statistics)

    @property
    def local_parents(self) -> np.ndarray:
        """After a search: the masters' parents as local ids; -2 - q where only part q knows it."""
        parent = self._level.parent if self._level is not None else self.worker.engine.unfinished()[1]  # type: ignore[union-attr]
        return parent[: self.part.masters]

    def count_redundant(self, statistics: RankStatistics) -> None:
        """After a search, off the clock: how often a vertex was expanded again, or for nothing."""
        level = self._level.level if self._level is not None else self.worker.engine.unfinished()[0]  # type: ignore[union-attr]
        needed = int(np.count_nonzero(level >= 0))  # every copy that has a value was taken once
        statistics.redundant_relaxations = max(0, statistics.relaxations - needed)
