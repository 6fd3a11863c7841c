"""BFS from many roots on a partitioned graph, 64 to a pass: one bit per root, one 64-bit word per vertex and copy.

A level is that of level_synchronous.py, with words for bits: each part expands its frontier over its own arcs, mirrors
are folded into their masters by OR, masters send what is new to their mirrors with out-arcs. So 64 searches share every
message and every round. Messages have the places and words of the vertices that changed (comm/updates.py).
Invariant: after a level, every master has exactly the bits of the roots that reach it within ``depth`` edges. A mirror
without out-arcs may lag behind; what it then finds again, its master ignores.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, Table
from cpu_engine.bfs.ranks.kernels.words import pull_words_step, push_words_step
from cpu_engine.comm.encoding import AgreedList, Packed
from cpu_engine.comm.reductions import local_ids
from cpu_engine.comm.requests import Driver
from cpu_engine.comm.rounds import RoundsReport, agree, trade
from cpu_engine.comm.substrate import DISTANCE_PUSHED, Phase, Sync
from cpu_engine.comm.updates import pack_updates, unpack_updates
from cpu_engine.ranks.outside import CoreLevels
from cpu_engine.ranks.split import PartSplit, local_id
from cpu_engine.ranks.statistics import RankStatistics

PULL_SHARE = 1 / 2  # pull once the frontier has more than this share of the part's arcs
_NONE = np.uint64(0)
_NEVER = np.uint32(0xFFFFFFFF)
_FEWEST_PLANES = 4


@dataclass(frozen=True)
class ManySearchOutcome:
    """One part's result: levels by [root, master], -1 = not reached, in the smallest signed type that holds them."""

    levels: np.ndarray
    statistics: RankStatistics


class WordsPhase(Phase):
    """Reduce or broadcast by OR of the words of selected vertices."""

    dtype = np.uint64
    selected = np.empty(0, np.int32)  # local ids, ascending: whose words are sent next

    def start(self) -> None:
        """There is no last sent value to reset."""

    def _pack(self, peer: int, agreed: AgreedList, values: np.ndarray) -> Packed:
        positions = _positions(agreed, self.selected)
        return pack_updates(positions, values[local_ids(agreed, positions)], agreed.total)

    def _merge(self, peer: int, agreed: AgreedList, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        positions, came = unpack_updates(payload, agreed.total)
        changed = local_ids(agreed, positions)
        values[changed] |= came
        return changed


class ManyBfsOnRanks:
    """Made once per part, used for every search; ``search`` is a driver for comm.loopback or comm.mpi."""

    def __init__(self, split: PartSplit, *, pull_share: float = PULL_SHARE) -> None:
        part = split.part
        n = part.internal_of.size
        self._split, self._part, self._pull_share = split, part, pull_share
        self._sync = Sync(part, DISTANCE_PUSHED, phases=WordsPhase)
        self._reduce, self._broadcast = (
            next((one for one in self._sync.phases if isinstance(one, WordsPhase) and one.name == name), None)
            for name in ("reduce", "broadcast")
        )
        self._seen, self._front, self._fresh = np.zeros((3, n), np.uint64)
        self._planes = np.zeros((_FEWEST_PLANES, part.masters), np.uint64)
        self._found = np.empty(n, np.int32)
        self._looked = np.zeros(numba.get_num_threads(), np.int64)
        self._degree = np.diff(part.out_offsets)
        self._report, self._statistics = RoundsReport(), RankStatistics()
        self._outside: CoreLevels | None = None
        self._withheld = False
        self._due = np.empty((0, split.core_size), np.uint32)  # [root, core master]: the level that the solver gives it

    def search(
        self, roots: np.ndarray, outside: CoreLevels | None = None, *, withhold_core: bool = False
    ) -> Driver[ManySearchOutcome]:
        """Levels from each of any number of internal ids, which may repeat.

        ``withhold_core``: a core solver says when the core's own edges reach a core vertex. After every level it is
        given the core vertices that were reached in another way, so that what it says holds for the next one.
        """
        self._outside = outside
        roots = np.asarray(roots, np.int64)
        self._report, self._statistics = RoundsReport(), RankStatistics()
        self._sync.restart_statistics()
        table = Table(self._part.masters, roots.size, np.uint8)
        for first in range(0, roots.size, ROOTS_PER_PASS):
            together = roots[first : first + ROOTS_PER_PASS]
            depth = yield from self._search_pass(together, withhold_core)
            with self._statistics.computing():
                table.make_room_for(depth)
                planes = self._planes[: depth.bit_length()]
                table.write_levels(self._seen[: self._part.masters], planes, first, together.size)
        self._statistics.take(self._report, self._sync)
        return ManySearchOutcome(table.by_root(), self._statistics)

    def _search_pass(self, roots: np.ndarray, withhold_core: bool) -> Driver[int]:
        """All levels from up to 64 roots, in seen and planes; returns the depth of the last one."""
        report, statistics = self._report, self._statistics
        frontier = self._start(roots)
        depth, awaited = 0, 0
        if self._outside is not None:
            self._withheld = yield from self._outside.start(roots.size, withhold_core)
            yield from self._close(0)
        while True:
            with statistics.computing(depth):
                found = self._expand(frontier)
            masters = yield from self._fold(found)
            with statistics.computing(depth):
                masters = self._settle(masters, depth + 1)
            mirrors = yield from self._spread(masters)
            frontier = np.concatenate((masters, mirrors))
            if self._outside is not None:
                awaited = yield from self._close(depth + 1)
            report.rounds += 1
            total = yield from agree(np.array([frontier.size + awaited], np.int64), "sum", report)
            if int(total[0]) == 0:
                return depth
            depth += 1

    def _start(self, roots: np.ndarray) -> np.ndarray:
        """Forget the last pass; the copies of the roots that this part has are the frontier."""
        for words in (self._seen, self._front, self._fresh, self._planes):
            words.fill(0)
        self._withheld, self._due = False, np.full((roots.size, self._split.core_size), _NEVER)
        places = [local_id(self._part, int(root)) for root in roots]
        for bit, place in enumerate(places):
            if place is not None:
                self._seen[place] |= np.uint64(1) << np.uint64(bit)
        frontier = np.unique(np.array([place for place in places if place is not None], np.int32))
        self._front[frontier] = self._seen[frontier]
        return frontier

    def _expand(self, frontier: np.ndarray) -> np.ndarray:
        """Look for new bits over the part's own arcs, into ``fresh``; the vertices that got any, ascending."""
        view = self._split.outside_core if self._withheld else self._split.all_edges
        if frontier.size == 0:
            return frontier
        if int(self._degree[frontier].sum()) > self._pull_share * self._split.graph.m:
            direction, active = "pull", np.bitwise_or.reduce(self._front[frontier])
            pull_words_step(view.in_rows, self._seen, self._front, self._fresh, active, self._looked)
            found, looked = np.flatnonzero(self._fresh).astype(np.int32), self._looked.sum()
        else:
            direction = "push"
            size, looked = push_words_step(view.out_rows, frontier, self._seen, self._front, self._fresh, self._found)
            found = np.sort(self._found[:size])
        self._front[frontier] = 0
        self._statistics.expanded(direction, frontier.size, int(looked))
        return found

    def _fold(self, found: np.ndarray) -> Driver[np.ndarray]:
        """Reduce what mirrors found to their masters; the masters that have fresh bits, ascending."""
        if self._reduce is None:  # mirrors have no in-arcs
            return found
        cut = int(np.searchsorted(found, self._part.masters))
        masters, mirrors = found[:cut], found[cut:]
        changed = yield from self._exchange(self._reduce, mirrors, self._fresh)
        self._seen[mirrors] |= self._fresh[mirrors]
        self._fresh[mirrors] = 0
        return np.union1d(masters, changed) if changed.size else masters

    def _settle(self, masters: np.ndarray, level: int) -> np.ndarray:
        """Record the bits that are new as this level; the masters that have any, which are its frontier."""
        if self._outside is not None:
            core = self._split.core_size
            self._fresh[:core] |= _words(self._due <= level) & ~self._seen[:core]
            masters = np.union1d(masters, np.flatnonzero(self._fresh[:core])).astype(np.int32)
        new = self._fresh[masters] & ~self._seen[masters]
        self._fresh[masters] = 0
        some = new != _NONE
        masters, new = masters[some], new[some]
        self._seen[masters] |= new
        self._front[masters] = new
        if masters.size:
            self._record(masters, new, level)
        return masters

    def _close(self, level: int) -> Driver[int]:
        """Tell the core solver what was reached at this level; how many bits it will set at later ones."""
        core = self._split.core_size
        assert self._outside is not None
        due, self._withheld = yield from self._outside.close(self._front[:core].copy(), level)
        if due is not None:
            np.minimum(self._due, due, out=self._due)
        later = _words(self._due != _NEVER) & ~self._seen[:core]
        return int(np.unpackbits(later.view(np.uint8)).sum())

    def _record(self, masters: np.ndarray, new: np.ndarray, level: int) -> None:
        planes = self._planes.shape[0]
        if level.bit_length() > planes:
            more = np.zeros((max(2 * planes, level.bit_length()), self._part.masters), np.uint64)
            more[:planes] = self._planes
            self._planes = more
        for p in range(level.bit_length()):
            if level >> p & 1:
                self._planes[p, masters] |= new

    def _spread(self, masters: np.ndarray) -> Driver[np.ndarray]:
        """Send what is new at masters to their mirrors with out-arcs; the mirrors here that got any."""
        if self._broadcast is None:  # mirrors have no out-arcs
            return self._found[:0]
        mirrors = yield from self._exchange(self._broadcast, masters, self._front)
        self._seen[mirrors] |= self._front[mirrors]
        return mirrors

    def _exchange(self, phase: WordsPhase, selected: np.ndarray, words: np.ndarray) -> Driver[np.ndarray]:
        """Send the words of the selected vertices, merge what comes; the local ids that it names."""
        phase.selected = selected
        arrived = yield from trade(phase, words, self._report)
        begin = time.perf_counter()
        changed = [phase.apply(peer, payload, words) for peer, payload in arrived.items()]
        self._report.note("unpack", begin, time.perf_counter())
        return np.concatenate(changed) if changed else self._found[:0]


def _positions(agreed: AgreedList, vertices: np.ndarray) -> np.ndarray:
    """Where those of the vertices (ascending local ids) that are in the list are in it."""
    ids = agreed.indices
    if ids is None:
        first, last = np.searchsorted(vertices, (agreed.begin, agreed.begin + agreed.total))
        return vertices[first:last].astype(np.int64) - agreed.begin
    at = np.searchsorted(ids, vertices)
    at[at == ids.size] = 0
    return at[ids[at] == vertices]


def _words(bits: np.ndarray) -> np.ndarray:
    """bool[root, vertex] as a word per vertex."""
    words = np.zeros(bits.shape[1], np.uint64)
    for bit, row in enumerate(bits):
        words |= row.astype(np.uint64) << np.uint64(bit)
    return words
