"""The asynchronous engine on a part: what comm.rounds drives, bulk-synchronously or not.

The part's own arcs are relaxed by bfs_async as if the part were a graph; values that messages lowered are noticed
between two quanta. Invariant: a value only ever falls, and every fall is either pushed on or still listed as active.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.comm.requests import Message
from cpu_engine.ranks.outside import Outside
from cpu_engine.ranks.split import PartSplit, local_id
from cpu_engine.ranks.statistics import RankStatistics


class AsyncWorker:
    """See the module; satisfies ``comm.rounds.Worker`` and ``outside.Host``."""

    def __init__(self, split: PartSplit, statistics: RankStatistics | None = None) -> None:
        self._split = split
        self.engine = AsyncBfs(split)  # type: ignore[arg-type]
        self._parent = self.engine.unfinished()[1]
        self.statistics = statistics or RankStatistics()
        self._outside: Outside | None = None

    def start(self, root: int, *, withhold_core: bool, outside: Outside | None, statistics: RankStatistics) -> None:
        """Begin at an internal id; every part that has a copy of it knows its value."""
        self.statistics, self._outside = statistics, outside
        if outside is not None:
            outside.bind(self)
        self.engine.start(local_id(self._split.part, root), withhold_core=withhold_core)

    @property
    def values(self) -> np.ndarray:
        return self.engine.distance

    def activate(self, vertices: np.ndarray, peer: int) -> None:
        self._parent[vertices] = -2 - peer
        self.engine.notice(vertices)

    def adopt_unexplained(self, vertices: np.ndarray) -> None:
        """The values of these were lowered by something that knows no parents."""
        self._parent[vertices] = -1
        self.engine.notice(vertices)

    def can_step(self) -> bool:
        return self.engine.can_step()

    def take_core_back(self) -> None:
        self.engine.take_core_back()

    def compute(self) -> bool:
        if not self.engine.can_step():
            return False
        with self.statistics.computing():
            step = self.engine.step()
            self.statistics.expanded(step.direction, step.frontier, step.edges)
        return self.engine.can_step()

    def idle(self) -> bool:
        return not self.engine.can_step() and (self._outside is None or self._outside.idle())

    def outside(self) -> list[Message]:
        if self._outside is None:
            return []
        messages = self._outside.outgoing()
        for message in messages:
            self.statistics.sent("core", "values", message.payload.size)
        return messages

    def from_outside(self, message: Message) -> None:
        if self._outside is not None:
            self._outside.arrived(message)
