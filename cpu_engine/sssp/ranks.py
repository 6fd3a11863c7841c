"""Shortest paths on a partitioned graph: near vertices first on every part, changed values sent from lists.

A part relaxes what is nearer than a limit until nothing is left, then speaks of it; what lies further waits in a pile
(delta-stepping with one bucket open at a time). In rounds (bsp) all ranks agree on the next limit: the smallest value
that waits anywhere, plus delta, which grows where buckets hold little. Without (basp) each rank raises its own limit
and takes what comes: min-plus tolerates stale values, they only cost work done again.

Invariants: a distance is always the length of a real path, and every fall is relaxed, sent or still waiting. A vertex's
parent is the vertex that lowered its value last; where a value came from another part, that part knows the parent, and
is asked at the end. Parents form a tree: along arcs that weigh more than 0 a parent is nearer than its child. Arcs of
weight 0 need more. Where a vertex-cut has both ends of such an arc as mirrors, two parts may each lower both vertices,
in opposite order, and the two masters may take the parents of different parts: a circle. So where some weight is 0, a
mirror is not lowered by its own part. That part *offers* the value to the master and relaxes the mirror's arcs when the
master has sent a value. Then a value is relaxed only after the master took it, and a master takes its last value after
its parent's master did: parents form a tree.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cpu_engine.bfs.ranks.parents import ANSWERS, WISHES, exchange_parents
from cpu_engine.bfs.ranks.recorded_parents import ask_recorded
from cpu_engine.comm.framing import join_messages, split_messages
from cpu_engine.comm.requests import TAG_OUTSIDE_ROUND, AllReduce, Exchange, Message
from cpu_engine.comm.rounds import RoundsReport, agree, basp_rounds, trade
from cpu_engine.comm.sparse_updates import ChangeList, SparsePhase
from cpu_engine.comm.substrate import DISTANCE_PUSHED, PhaseStatistics, Sync
from cpu_engine.comm.termination import Termination
from cpu_engine.errors import InputError
from cpu_engine.graph.partition.part import Part
from cpu_engine.hub_core.kernels.rows import skip_core_of_part_step
from cpu_engine.ranks.outside import Outside, peers_of
from cpu_engine.ranks.split import local_id
from cpu_engine.ranks.statistics import RankStatistics
from cpu_engine.sssp.kernels import ranks as kernel

QUANTUM = 1 << 20  # arcs that a basp rank relaxes before it looks for messages
MIDDLE_BUCKETS = 16  # this far ahead the pile is that of the next buckets; beyond, it is looked at less often
THIN_ARCS, THICK_ARCS = 1 << 14, 1 << 18  # of the busiest rank in a bucket: a round's cost, and many times that
THIN_BUCKETS = 8  # in a row, before buckets become twice as wide: a power-law graph has few before its hubs
DELTA_FACTOR = 2.0  # mean weights by mean degree in a bucket
_FIXED_POINT = 1 << 20
_NOTHING_WAITS = np.iinfo(np.int64).max
_LIMIT_TYPES: dict[type, type] = {np.uint32: np.uint64, np.int64: np.int64, np.float64: np.float64}


@dataclass(frozen=True)
class SsspOutcome:
    """One part's result: distance of its masters (int64, -1 not reached; or float64, inf), parents as internal ids."""

    distance: np.ndarray
    parents: np.ndarray
    delta: float
    statistics: RankStatistics


class SsspOnRanks:
    """One part's side; made once, used for every search. ``sync``: bsp or basp. ``delta``: None = from the weights."""

    def __init__(self, part: Part, *, sync: str = "bsp", delta: float | None = None, core_size: int = 0) -> None:
        if part.out_weight is None:
            raise InputError("shortest paths need weights, and this part has none", fix="partition a weighted graph")
        self.part, self.sync = part, sync
        self._delta, self._core_size = delta, core_size
        self._worker: _Worker | None = None

    def search(
        self, root: int, outside: Outside | None = None, *, withhold_core: bool = False
    ) -> Generator[Any, Any, SsspOutcome]:
        """Shortest paths from an internal id. A core solver takes part only where every weight is more than 0."""
        if self._worker is None:
            self._worker = yield from _prepare(self.part, self._delta, self._core_size)
        worker, part, statistics = self._worker, self.part, RankStatistics()
        for phase in worker.field.phases:
            phase.statistics = PhaseStatistics()
        worker.start(root, statistics, outside, withhold_core)
        if self.sync == "basp":
            report = yield from basp_rounds(worker, worker.field, Termination(part.part, part.layout.parts))
        else:
            report = yield from _bsp_by_limits(worker)
        worker.account()
        statistics.take(report, worker.field)
        parents = yield from ask_recorded(part, worker.recorded_parents(), statistics)
        if outside is not None:
            yield from _explain(worker, root, parents, statistics)
        return SsspOutcome(worker.masters_distance(), parents, worker.delta, statistics)


def _explain(worker: _Worker, root: int, parents: np.ndarray, statistics: RankStatistics) -> Generator[Any, Any, None]:
    """Find parents of the masters whose values came from the core solver: any arc that gives the value is one.

    Every weight is more than 0, so a parent is nearer than its child, and parents form a tree.
    """
    part = worker.part
    unexplained = (parents < 0) & (worker.values[: part.masters] != worker.most)
    unexplained[part.internal_of[: part.masters] == root] = False
    peers = [q for q in range(part.layout.parts) if q != part.part]
    askers = tuple(q for q in peers if part.mirrors_with_in[q].size)
    wishes = {q: unexplained[part.masters_written_at[q]] for q in peers if part.masters_written_at[q].size}
    wanted: np.ndarray = np.full(part.size, worker.most, worker.dtype)
    wanted[: part.masters][unexplained] = worker.values[: part.masters][unexplained]
    questions = {
        q: np.concatenate((np.packbits(wish), wanted[part.masters_written_at[q][wish]].view(np.uint8)))
        for q, wish in wishes.items()
    }
    asked = yield from exchange_parents(WISHES, questions, askers, "bitset", statistics)
    places = {}
    for q, question in asked.items():
        mirrors = part.mirrors_with_in[q]
        bits = (mirrors.size + 7) // 8
        places[q] = mirrors[np.unpackbits(question[:bits], count=mirrors.size).view(np.bool_)]
        wanted[places[q]] = question[bits:].copy().view(worker.dtype)
    found = np.full(part.size, -1, np.int32)
    if (wanted != worker.most).any():
        kernel.find_tight_arcs_step(worker.all_rows, worker.values, worker.most, wanted, found)
    names = np.where(found >= 0, part.internal_of[found], np.int32(-1)).astype(np.int32)
    answers = {q: names[mirrors].view(np.uint8) for q, mirrors in places.items()}
    replies = yield from exchange_parents(ANSWERS, answers, tuple(wishes), "ids", statistics)
    parents[unexplained] = names[: part.masters][unexplained]
    for q, message in replies.items():
        masters = part.masters_written_at[q][wishes[q]]
        parents[masters] = np.maximum(parents[masters], message.view(np.int32))


def _prepare(part: Part, delta: float | None, core_size: int) -> Generator[Any, Any, _Worker]:
    """Agree on the type of distances and on delta: by the largest and the mean weight of the whole graph."""
    weight = part.out_weight
    assert weight is not None
    floats = weight.dtype == np.float64
    lowest, highest = (weight.min(), weight.max()) if weight.size else (weight.dtype.type(0), weight.dtype.type(0))
    wrong = bool(weight.size) and not (lowest >= 0 and (not floats or np.isfinite(highest)))
    # The bits of a float that is not negative order it as an integer.
    key = int(np.abs(highest).view(np.int64)) if floats and not wrong else int(highest)
    weightless = bool(weight.size) and not lowest > 0
    largest = yield AllReduce(np.array([0 if wrong else key, wrong, weightless], np.int64), "max")
    if largest[1]:
        raise InputError("shortest paths need weights that are finite and not negative", fix="correct the weights")
    most = float(largest[:1].view(np.float64)[0]) if floats else int(largest[0])
    share = float(np.sum(weight / most, dtype=np.float64)) if most > 0 else 0.0  # the sum itself may be infinite
    total = yield AllReduce(np.array([round(share * _FIXED_POINT)], np.int64))
    mean = float(total[0]) / _FIXED_POINT * most / max(part.m, 1)
    dtype: type = np.float64
    if not floats:
        longest = int(most) * max(part.n - 1, 1)
        if longest > _NOTHING_WAITS // 2:
            raise InputError(
                "ranks cannot rule out distances that do not fit into 64 bits: this weight, at every vertex but one",
                value=int(most),
                fix="run on one rank (--set ranks=1), or divide all weights by a common factor",
            )
        dtype = np.uint32 if longest < 1 << 31 else np.int64
    begun = DELTA_FACTOR * mean * part.n / max(part.m, 1) if delta is None else delta
    width = begun if floats else max(1, round(begun))
    return _Worker(part, dtype, width, core_size, adaptive=delta is None, weightless=bool(largest[2]))


class _Worker:
    """The local side; satisfies ``comm.rounds.Worker`` and ``ranks.outside.Host``."""

    def __init__(
        self, part: Part, dtype: type, delta: float, core_size: int, *, adaptive: bool, weightless: bool
    ) -> None:
        size = part.size
        self._adaptive, self._width, self._thin, self._opened_at = adaptive, delta, 0, 0
        assert part.out_weight is not None
        self.part, self.delta, self.dtype = part, delta, dtype
        self.most = dtype(np.inf) if dtype is np.float64 else np.iinfo(dtype).max
        self.values: np.ndarray = np.empty(size, dtype)
        self.parent = np.empty(size, np.int32)
        self._changes = ChangeList(size, part.masters)
        self._state = np.zeros(kernel.STATE, np.int64)
        self._waiting: np.ndarray = np.zeros(3, dtype)
        self._near = kernel.Near(
            self.values, self.parent, self._changes.mark, np.empty(max(size, 1), np.int32), np.empty(size, np.int32),
            np.empty(size, np.int32), self._state, self._waiting,
        )  # fmt: skip
        self.all_rows = self._rows = self._outside_core = _rows(part, dtype)
        self._core = np.flatnonzero(part.internal_of < core_size).astype(np.int32)  # masters and mirrors
        if core_size:
            self._outside_core = self.all_rows._replace(
                begin=skip_core_of_part_step(
                    part.out_offsets, part.out_targets, self._core, part.internal_of, core_size
                )
            )
        self._outside: Outside | None = None
        self._sent = kernel.Changes(part.masters, self._changes.vertices, self._changes.counts)
        self.field = Sync(part, DISTANCE_PUSHED, phases=partial(SparsePhase, dtype=dtype))
        self._phases = [phase for phase in self.field.phases if isinstance(phase, SparsePhase)]
        for phase in self._phases:
            phase.follow(self._changes)
        self._statistics = RankStatistics()
        self._limits = kernel.Limits(0, 0)
        self._offering = weightless and len(self._phases) == 2
        offered = size if self._offering else 0
        self._offers = kernel.Offers(
            np.uint64(part.masters if self._offering else size), np.empty(offered, dtype), np.empty(offered, np.int32)
        )  # fmt: skip
        if self._offering:
            self._phases[0].send(self._offers.value)
            self._phases[0].answer_all()

    def start(self, root: int, statistics: RankStatistics, outside: Outside | None, withhold_core: bool) -> None:
        self._statistics, self._outside = statistics, outside
        self._rows = self._outside_core if withhold_core else self.all_rows
        if outside is not None:
            assert self.dtype is np.uint32, "a core solver takes distances of 32 bits"
            outside.bind(self)
        self.field.start()
        self._changes.start()
        self.values.fill(self.most)
        self.parent.fill(-1)
        self._offers.value.fill(self.most)
        self._state[:] = 0
        self._waiting[:] = self.most, self.most, 0
        self._limits = kernel.Limits(self._typed(0), self._typed(0))
        self._width, self._thin, self._opened_at = self.delta, 0, 0
        self.open_bucket(self.dtype(0))
        here = local_id(self.part, root)
        if here is not None:
            self.values[here] = 0
            self.activate(np.array([here], np.int32), self.part.part)
            self.parent[here] = here

    def open_bucket(self, nearest: Any) -> None:
        """What is below ``nearest`` plus the width of a bucket becomes near."""
        near_below = self._beyond(nearest, self._width)
        middle_below = self._limits.middle
        if near_below > middle_below or self._waiting[0] == self.most:
            middle_below = self._beyond(nearest, MIDDLE_BUCKETS * self._width)
        self._limits = kernel.Limits(near_below, middle_below)
        for phase in self._phases:
            phase.limit = self.most if self._offering and phase.name == "reduce" else near_below
        kernel.open_bucket_step(self._near, self._limits, self.most, self._sent)

    def work(self) -> int:
        """Arcs relaxed since this was last asked."""
        before, self._opened_at = self._opened_at, int(self._state[kernel.EDGES])
        return self._opened_at - before

    def adapt(self, arcs: int) -> None:
        """Make buckets wider while they hold little, as in road networks; narrower again when they hold much.

        ``arcs``: what the busiest rank had to do in the last one.
        """
        if not self._adaptive:
            return
        self._thin = self._thin + 1 if arcs < THIN_ARCS else 0
        if self._thin >= THIN_BUCKETS:
            self._width, self._thin = 2 * self._width, 0
        elif arcs > THICK_ARCS:
            self._width = max(self.delta, self._width / 4 if self.dtype is np.float64 else self._width // 4)

    def _beyond(self, nearest: Any, width: Any) -> Any:
        if self.dtype is np.float64:
            return max(nearest + width, np.nextafter(nearest, np.inf))
        return self._typed(min(int(nearest) + int(width), int(self.most)))

    def _typed(self, limit: Any) -> Any:
        return _LIMIT_TYPES[self.dtype](limit)

    def nearest(self) -> Any:
        """The smallest value that waits, or less: 0 if near ones do; None if nothing waits."""
        if self._state[kernel.SIZE]:
            return self.dtype(0)
        smallest = self._waiting[:2].min()
        return None if smallest == self.most else smallest

    def relax(self, quantum: int) -> bool:
        """Relax near vertices; whether any are left."""
        taken, edges = self._state[kernel.TAKEN], self._state[kernel.EDGES]
        with self._statistics.computing():
            kernel.relax_near_step(self._rows, self._near, self._limits, quantum, self._sent, self._offers)
            done, looked = int(self._state[kernel.TAKEN] - taken), int(self._state[kernel.EDGES] - edges)
            self._statistics.expanded("push", done, looked)
        return bool(self._state[kernel.SIZE])

    def compute(self) -> bool:
        """For basp: a quantum of the nearest bucket that is here."""
        nearest = self.nearest()
        if nearest is None:
            return False
        if not self._state[kernel.SIZE]:
            self.adapt(self.work())
            self.open_bucket(nearest)
        self.relax(QUANTUM)
        return self.nearest() is not None

    def activate(self, local_ids: np.ndarray, peer: int) -> None:
        kernel.notice_step(local_ids, peer, self._near, self._limits, self._sent)

    def adopt_unexplained(self, vertices: np.ndarray) -> None:
        self.activate(vertices, self.part.part)
        self.parent[vertices] = -1

    def take_core_back(self) -> None:
        self._rows = self.all_rows
        known = self._core[self.values[self._core] != self.most]
        parent = self.parent[known].copy()
        self.activate(known, self.part.part)
        self.parent[known] = parent

    def can_step(self) -> bool:
        return self.nearest() is not None

    def awaits_core(self) -> bool:
        """Whether a core solver may still lower a value."""
        return self._outside is not None and not self._outside.idle()

    def idle(self) -> bool:
        return not self.can_step() and not self.awaits_core()

    def outside(self) -> list[Message]:
        return [] if self._outside is None else self._outside.outgoing()

    def from_outside(self, message: Message) -> None:
        if self._outside is not None:
            self._outside.arrived(message)

    def peers(self) -> tuple[int, ...]:
        return peers_of(self.part, self._outside)

    def account(self) -> None:
        """After a search: how many vertices were taken more than once."""
        reached = int(np.count_nonzero(self.values != self.most))
        self._statistics.redundant_relaxations = max(0, self._statistics.relaxations - reached)

    def recorded_parents(self) -> np.ndarray:
        """Local ids: of the vertices that lowered a master's value here, or a mirror's value that was sent."""
        if self._offering:
            self.parent[self.part.masters :] = self._offers.parent[self.part.masters :]
        return self.parent

    def masters_distance(self) -> np.ndarray:
        mine = self.values[: self.part.masters]
        if self.dtype is np.float64:
            return mine.copy()
        return np.where(mine == self.most, -1, mine.astype(np.int64))


def _rows(part: Part, dtype: type) -> kernel.Arcs:
    """The part's out-arcs as relax_near_step takes them: short weights beside their targets."""
    targets, weight = part.out_targets.view(np.uint32), part.out_weight
    assert weight is not None
    begin, end = part.out_offsets[:-1], part.out_offsets[1:]
    if dtype is not np.uint32:
        return kernel.Arcs(begin, end, targets, np.ascontiguousarray(weight, dtype=dtype))
    arcs = weight.astype(np.uint64)
    arcs <<= np.uint64(32)
    arcs |= targets
    return kernel.Arcs(begin, end, arcs, None)


def _bsp_by_limits(worker: _Worker) -> Generator[Any, Any, RoundsReport]:
    """Rounds: relax what is near, send it, and agree on the smallest value that waits anywhere."""
    report, clock, arcs = RoundsReport(), time.perf_counter, 0
    while True:
        report.rounds += 1
        begin = clock()
        worker.relax(_NOTHING_WAITS)
        report.note("compute", begin, clock())
        for phase in worker.field.phases:
            came = yield from trade(phase, worker.values, report)
            begin = clock()
            for peer, payload in came.items():
                changed = phase.apply(peer, payload, worker.values)
                worker.activate(changed, peer)
                report.changes += int(changed.size)
            report.note("unpack", begin, clock())
        peers = worker.peers()
        if peers:
            answer = yield Exchange(TAG_OUTSIDE_ROUND, join_messages(worker.outside(), peers), peers)
            for peer, payload in answer.items():
                for message in split_messages(peer, payload):
                    worker.from_outside(message)
        else:
            worker.outside()
        arcs += worker.work()
        mine = [_as_key(worker.nearest()), -arcs, -int(worker.awaits_core())]
        agreed = yield from agree(np.array(mine, np.int64), "min", report)
        if agreed[0] == _NOTHING_WAITS:
            if not agreed[2]:
                return report
        elif agreed[0]:
            begin, arcs = clock(), 0
            worker.adapt(-int(agreed[1]))
            worker.open_bucket(worker.dtype(agreed.view(np.float64)[0] if worker.dtype is np.float64 else agreed[0]))
            report.note("compute", begin, clock())


def _as_key(nearest: Any) -> int:
    """An int64 that is ordered as the values are; the largest for none."""
    if nearest is None:
        return int(_NOTHING_WAITS)
    return int(nearest.view(np.int64)) if nearest.dtype == np.float64 else int(nearest)
