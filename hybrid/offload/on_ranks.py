"""The worker beside many ranks: core values travel between their masters and the rank that drives a worker.

One rank per machine, its first, drives a worker (source 003). It holds the whole core's values; all ranks tell it what
their core masters have gained, and are told what the worker has found. Who owns which core vertex follows from the
layout, so both sides hold the same list and values travel in its order, without ids. All of it happens between two
quanta of the engine (``ranks_async.Outside``), and its messages count for termination like any other.
Invariant: a value only ever falls. While the core's edges are withheld, the search cannot end before every worker that
lives has closed the core under its own edges; once none is left, every rank takes its core edges back.
"""

from __future__ import annotations

import time

import numpy as np

from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.encoding import AgreedList, Room, pack_improved, unpack_min
from cpu_engine.comm.requests import FIRST_OUTSIDE_TAG, Message
from hybrid.offload.rounds import MOST_ROUNDS, Rounds
from hybrid.ranks.collectives import RankInfo
from hybrid.results.tally import Tally
from hybrid.worker.core_solver import CoreSolver

TAG_UP = FIRST_OUTSIDE_TAG  # core values, from their masters to a machine's first rank
TAG_DOWN = FIRST_OUTSIDE_TAG + 1  # and back, once a worker has improved them
TAG_LOST = FIRST_OUTSIDE_TAG + 2  # a machine's worker is gone; the payload says why

_MOST = np.uint32(0xFFFFFFFF)
RawEvent = tuple[str, float, float, dict[str, object]]


class CoreOnRanks:
    """One rank's side, made once per job; ``solver`` is given on the machine's first rank. Satisfies ``Outside``."""

    def __init__(
        self,
        info: RankInfo,
        engine: RankEngine,
        core_size: int,
        solver: CoreSolver | None,
        max_rounds: int = MOST_ROUNDS,
    ) -> None:
        assert engine.worker is not None, "only the asynchronous engine takes values from outside"
        self._seat, self._worker, self._core_size = info, engine.worker, core_size
        self._leaders = tuple(sorted({info.hosts.index(host) for host in info.hosts}))
        masters = engine.split.core_size
        self._mine = AgreedList.of(np.arange(masters, dtype=np.int32))
        self._told = {leader: np.empty(masters, np.uint32) for leader in self._leaders if leader != info.rank}
        self._room = Room(max(1, core_size))
        self._lost: dict[int, str] = {}
        self._withheld = False
        self._in_step = engine.sync == "bsp"
        self._lead = None if solver is None else _Lead(info, engine, core_size, solver, max_rounds)

    @property
    def tally(self) -> Tally | None:
        """What passed between this machine's worker and the job in this search; None on other ranks."""
        return None if self._lead is None else self._lead.tally

    @property
    def events(self) -> list[RawEvent]:
        """The rounds of this search, for the trace."""
        return [] if self._lead is None else self._lead.events.raw

    @property
    def solver(self) -> CoreSolver | None:
        """Who was asked last; None on other ranks."""
        return None if self._lead is None else self._lead.solver

    def begin(self, *, withhold_core: bool, solver: CoreSolver | None = None) -> None:
        """A new search; all ranks have agreed whether the core's edges are the workers'. ``solver``: another one."""
        self._withheld, self._lost = withhold_core, {}
        for told in self._told.values():
            told.fill(_MOST)
        if self._lead is not None:
            self._lead.solver = solver or self._lead.solver
            self._lead.begin(withhold_core)

    def end(self) -> None:
        """The search is over; what the worker still does is not needed."""
        if self._lead is not None:
            self._lead.end()

    # ------------------------------------------------------------------------- what comm.rounds asks

    def outgoing(self) -> list[Message]:
        values = self._worker.values
        messages = []
        for leader, told in self._told.items():
            packed = pack_improved(self._mine, values, told, self._room)
            if packed.count:
                messages.append(Message(leader, TAG_UP, packed.payload))
        if self._lead is not None:
            messages += self._lead.serve()
            if self._in_step and not messages:
                self._lead.wait_if_stuck()
            if self._lead.lost and self._seat.rank not in self._lost:
                reason = np.frombuffer(self._lead.lost.encode(), np.uint8)
                messages += [Message(rank, TAG_LOST, reason) for rank in self._seat.others]
                self._lose(self._seat.rank, self._lead.lost)
        return messages

    def arrived(self, message: Message) -> None:
        if message.tag == TAG_UP:
            assert self._lead is not None
            self._lead.hear(message)
        elif message.tag == TAG_DOWN:
            changed = unpack_min(message.payload, self._mine, self._worker.values, self._room)
            self._worker.adopt_unexplained(changed)
        else:
            self._lose(message.peer, message.payload.tobytes().decode(errors="replace"))

    def idle(self) -> bool:
        return self._lead is None or self._lead.idle()

    def _lose(self, leader: int, reason: str) -> None:
        self._lost[leader] = reason
        if self._withheld and len(self._lost) == len(self._leaders):
            self._withheld = False
            self._worker.engine.take_core_back()


class RankEvents:
    """The events of a rank's rounds, on the process's own clock: what ``Rounds`` records there."""

    def __init__(self) -> None:
        self.raw: list[RawEvent] = []

    def now(self) -> float:
        return time.perf_counter()

    def add(self, actor: str, kind: str, t0: float, t1: float | None = None, **facts: object) -> None:
        if kind == "round":
            self.raw.append((kind, t0, self.now() if t1 is None else t1, facts))

    def extend(self, actor: str, kind: str, t0: float, **facts: object) -> None:
        """Waiting is counted by the engine."""


class _Lead:
    """What a machine's first rank does besides: gather the core's values, hand them to its solver, pass on answers."""

    def __init__(self, info: RankInfo, engine: RankEngine, core_size: int, solver: CoreSolver, max_rounds: int) -> None:
        assert engine.worker is not None
        self._seat, self._worker, self.solver, self._max_rounds = info, engine.worker, solver, max_rounds
        owner_of = engine.part.layout.owner_of[:core_size]
        self._core = np.full(core_size, _MOST, np.uint32)
        self._owned = {q: AgreedList.of(np.flatnonzero(owner_of == q).astype(np.int32)) for q in range(info.size)}
        self._known = {q: np.empty(owned.total, np.uint32) for q, owned in self._owned.items()}
        self._room = Room(max(1, core_size))
        self._closed = np.full(core_size, -1, np.int32)
        self._answered = self._sharing = False
        self.lost = ""
        self._rounds: Rounds | None = None
        self.tally, self.events = Tally(), RankEvents()

    def begin(self, sharing: bool) -> None:
        self._sharing, self._answered = sharing, False
        self._core.fill(_MOST)
        self._closed.fill(-1)
        for known in self._known.values():
            known.fill(_MOST)
        self.events = RankEvents()
        self._rounds = Rounds(self.solver, "share" if sharing else "race", self.events, self._max_rounds)
        self.tally = self._rounds.tally
        self.lost = "" if self.solver.usable else self.solver.failure or "it was lost before"

    def hear(self, message: Message) -> None:
        """What core masters of another rank have gained."""
        changed = unpack_min(message.payload, self._owned[message.peer], self._core, self._room)
        places = np.searchsorted(self._owned[message.peer].local_ids(), changed)
        self._known[message.peer][places] = self._core[changed]

    def serve(self) -> list[Message]:
        """Take an answer if there is one, pass on what it improved, send a new round if there is news.

        A rank that has nothing to do does nothing here either, whatever the worker does: termination counts on it that
        only a message can wake it up.
        """
        self._hear_own()
        if self.idle() and not self._worker.engine.can_step():
            return []
        self._take_answer()
        messages = self._pass_on() if self._answered else []
        assert self._rounds is not None
        values = self._core.view(np.int32)
        if self._rounds.can_send and not np.array_equal(values, self._closed):
            self._rounds.send(values.copy())
        if not self.solver.usable and not self.lost:
            self.lost = self.solver.failure or "it ended"
        return messages

    def idle(self) -> bool:
        """In mode race the search does not wait for the solver."""
        if not self._sharing or not self.solver.usable:
            return True
        return not self.solver.busy and bool(np.array_equal(self._core.view(np.int32), self._closed))

    def wait_if_stuck(self) -> None:
        """Nothing is left but the answer: in bulk-synchronous rounds it is better awaited than polled."""
        if not self.idle() and self.solver.busy and not self._worker.engine.can_step():
            self.solver.wait()

    def end(self) -> None:
        assert self._rounds is not None
        self._rounds.close()

    def _take_answer(self) -> None:
        assert self._rounds is not None
        answer = self._rounds.take()
        if answer is None:
            return
        t0, theirs = time.perf_counter(), answer.values.view(np.uint32)
        improved = int(np.count_nonzero(theirs < self._core))
        np.minimum(self._core, theirs, out=self._core)
        self._closed = answer.values.copy()
        self._answered = True
        self._rounds.merge(answer, t0, improved)

    def _pass_on(self) -> list[Message]:
        self._answered = False
        messages = []
        for q, owned in self._owned.items():
            if q == self._seat.rank:
                mine, values = self._core[owned.local_ids()], self._worker.values[: owned.total]
                better = np.flatnonzero(mine < values).astype(np.int32)
                values[better] = mine[better]
                self._worker.adopt_unexplained(better)
                continue
            packed = pack_improved(owned, self._core, self._known[q], self._room)
            if packed.count:
                messages.append(Message(q, TAG_DOWN, packed.payload))
        return messages

    def _hear_own(self) -> None:
        owned = self._owned[self._seat.rank].local_ids()
        self._core[owned] = np.minimum(self._core[owned], self._worker.values[: owned.size])
