"""Level-synchronous, direction-optimised BFS on a partitioned graph: parts expand, then finds are folded and spread.

A level is three things. *Expand locally*: push or pull over the part's own arcs, each part as it thinks best. *Fold*:
mirrors that were found are reported to their masters (a reduction of bits). *Spread*: masters that were found are sent
to their mirrors that have out-arcs (a broadcast of bits). Which of the two is needed follows from the policy: an
outgoing edge-cut folds only, an incoming one spreads only, and on a grid both run along one row or column of it - the
fold and expand of 2D BFS (Bisson et al., source 004).
Invariant: after a level, every master within ``depth`` hops carries its exact level. A mirror may lag behind; what it
then finds again, its master ignores.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import numpy as np

from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.ranks.kernels.level_bits import (
    BITS,
    HEADER,
    list_places_step,
    pack_level_bits_step,
    take_index_bits_step,
    take_places_step,
    take_range_bits_step,
)
from cpu_engine.bfs.strategies.auto import AutoExpander
from cpu_engine.comm.encoding import places_are_shorter
from cpu_engine.comm.requests import AllReduce, Exchange
from cpu_engine.comm.substrate import DISTANCE_PUSHED, needs
from cpu_engine.ranks.split import PartSplit, local_id
from cpu_engine.ranks.statistics import RankStatistics

FOLD, SPREAD = 1, 2  # tags
_ANY = np.empty(0, np.int32)
_NOTHING = np.empty(0, np.uint8)


class FoundList:
    """Vertices that a part and a peer both hold, in the same order: by index, or as a range of local ids."""

    def __init__(self, index: np.ndarray) -> None:
        contiguous = index.size > 0 and int(index[-1]) - int(index[0]) == index.size - 1
        self.first = int(index[0]) if contiguous else 0
        self.count = index.size
        self.index = _ANY if contiguous else np.ascontiguousarray(index, np.int32)
        self._bits = np.zeros(HEADER + 8 * ((index.size + 63) // 64), np.uint8)

    def pack(self, level: np.ndarray, reach: int, found: np.ndarray | None) -> tuple[np.ndarray, int]:
        """Which of these are at ``reach``, and how many; ``found`` lists all that are, if they are listed."""
        if self.count == 0 or (found is not None and found.size == 0):
            return _NOTHING, 0
        if found is not None and places_are_shorter(found.size, self.count):
            message = np.empty(HEADER + 4 * found.size, np.uint8)
            size = list_places_step(found, found.size, self.index, self.first, self.count, message)
            return (message[: HEADER + 4 * size], size) if size else (_NOTHING, 0)
        found_here = pack_level_bits_step(self.index, self.first, self.count, level, reach, self._bits)
        return (self._bits, int(found_here)) if found_here else (_NOTHING, 0)


class LevelBfsOnRanks:
    """One part's side of the search; ``search`` is a driver for comm.loopback or comm.mpi."""

    def __init__(self, split: PartSplit) -> None:
        part = split.part
        n = part.internal_of.size
        self._split, self._part = split, part
        self.level = np.empty(n, np.int32)
        self.parent = np.empty(n, np.int32)  # local id; -2 - q: part q found it
        self._expander = AutoExpander(split, Tree(self.level, self.parent))  # type: ignore[arg-type]
        self._arrived = np.empty(n, np.int32)
        fold, spread = needs(DISTANCE_PUSHED, part.layout.policy)
        peers = [q for q in range(part.layout.parts) if q != part.part]
        self._fold_to = _lists(part.mirrors_with_in, peers) if fold else {}
        self._fold_from = _lists(part.masters_written_at, peers) if fold else {}
        self._spread_to = _lists(part.masters_read_at, peers) if spread else {}
        self._spread_from = _lists(part.mirrors_with_out, peers) if spread else {}

    def search(self, root: int, statistics: RankStatistics) -> Generator[Any, Any, None]:
        """BFS from an internal id; afterwards ``level`` is right for every master."""
        expander, view = self._expander, self._split.all_edges
        here = local_id(self._part, root)
        expander.start(here)
        depth, count = 0, int(here is not None)
        while True:
            with statistics.computing(depth):
                if count:
                    done = expander.expand(view, depth)
                    statistics.expanded(done.direction, done.frontier, done.edges)
                found = expander.finds()
            size, marked = 0, 0
            if self._fold_to or self._fold_from:
                outgoing = self._packed(statistics, "fold", self._fold_to, depth + 1, found)
                t0 = time.perf_counter()
                arrived = yield Exchange(FOLD, outgoing, tuple(self._fold_from))
                statistics.waited(t0, "fold")
                size, marked = self._take(statistics, arrived, self._fold_from, depth + 1, 0)
            if self._spread_to or self._spread_from:
                listed = None if found is None or marked else np.concatenate((found, self._arrived[:size]))
                outgoing = self._packed(statistics, "spread", self._spread_to, depth + 1, listed)
                t0 = time.perf_counter()
                arrived = yield Exchange(SPREAD, outgoing, tuple(self._spread_from))
                statistics.waited(t0, "spread")
                size, more = self._take(statistics, arrived, self._spread_from, depth + 1, size)
                marked += more
            with statistics.computing(depth):
                if marked:
                    expander.admit(marked)
                depth += 1
                count = expander.advance(self._arrived[:size].copy(), depth)
            t0 = time.perf_counter()
            total = yield AllReduce(np.array([count], np.int64), "sum")
            statistics.waited(t0, "agree")
            statistics.rounds += 1
            if int(total[0]) == 0:
                return

    def _packed(
        self, statistics: RankStatistics, phase: str, lists: dict[int, FoundList], reach: int, found: np.ndarray | None
    ) -> dict[int, np.ndarray]:
        with statistics.packing():
            packed = {q: agreed.pack(self.level, reach, found) for q, agreed in lists.items()}
        for message, count in packed.values():
            form = "nothing" if message.size == 0 else "bitset" if message[0] == BITS else "offsets"
            statistics.sent(phase, form, message.size, count)
        return {q: message for q, (message, _) in packed.items()}

    def _take(
        self, statistics: RankStatistics, arrived: dict[int, np.ndarray], lists: dict[int, FoundList], reach: int,
        size: int,
    ) -> tuple[int, int]:  # fmt: skip
        """Mark what other parts found; the new size of the list of arrivals, and how many were marked only."""
        marked = 0
        state = (self.level, self.parent, self._expander.visited)
        with statistics.packing():
            for q, message in arrived.items():
                agreed = lists[q]
                if message.size == 0:
                    continue
                if message[0] != BITS:
                    size = take_places_step(message, agreed.index, agreed.first, reach, q, *state, self._arrived, size)
                elif agreed.index.size:
                    marked += take_index_bits_step(message, agreed.index, reach, q, *state)
                else:
                    marked += take_range_bits_step(message, agreed.first, agreed.count, reach, q, *state)
        return int(size), int(marked)


def _lists(of_peer: tuple[np.ndarray, ...], peers: list[int]) -> dict[int, FoundList]:
    return {q: FoundList(of_peer[q]) for q in peers if of_peer[q].size}
