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
from hybrid.cli.terminal import plural
from hybrid.offload.traverse import STILL_STARTING, NpuTally, Partner
from hybrid.ranks.collectives import Seat

TAG_UP = FIRST_OUTSIDE_TAG  # core values, from their masters to a machine's first rank
TAG_DOWN = FIRST_OUTSIDE_TAG + 1  # and back, once a worker has improved them
TAG_LOST = FIRST_OUTSIDE_TAG + 2  # a machine's worker is gone; the payload says why

_MOST = np.uint32(0xFFFFFFFF)
RawEvent = tuple[str, float, float, dict[str, object]]


class CoreOnRanks:
    """One rank's side, made once per job; ``partner`` is given on the machine's first rank. Satisfies ``Outside``."""

    def __init__(
        self, seat: Seat, engine: RankEngine, core_size: int, partner: Partner | None, max_rounds: int = 1000
    ) -> None:
        assert engine.worker is not None, "only the asynchronous engine takes values from outside"
        self._seat, self._worker, self._core_size = seat, engine.worker, core_size
        self._leaders = tuple(sorted({seat.hosts.index(host) for host in seat.hosts}))
        masters = engine.split.core_size
        self._mine = AgreedList.of(np.arange(masters, dtype=np.int32))
        self._told = {leader: np.empty(masters, np.uint32) for leader in self._leaders if leader != seat.rank}
        self._room = Room(max(1, core_size))
        self._lost: dict[int, str] = {}
        self._withheld = False
        self._in_step = engine.sync == "bsp"
        self._lead = None if partner is None else _Lead(seat, engine, core_size, partner, max_rounds)

    @property
    def tally(self) -> NpuTally | None:
        """What passed between this machine's worker and the job in this search; None on other ranks."""
        return None if self._lead is None else self._lead.tally

    @property
    def events(self) -> list[RawEvent]:
        """The rounds of this search, for the trace."""
        return [] if self._lead is None else self._lead.events

    def begin(self, *, withhold_core: bool) -> None:
        """A new search; all ranks have agreed whether the core's edges are the workers'."""
        self._withheld, self._lost = withhold_core, {}
        for told in self._told.values():
            told.fill(_MOST)
        if self._lead is not None:
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


class _Lead:
    """What a machine's first rank does besides: gather the core's values, hand them to its worker, pass on answers."""

    def __init__(self, seat: Seat, engine: RankEngine, core_size: int, partner: Partner, max_rounds: int) -> None:
        assert engine.worker is not None
        self._seat, self._worker, self._partner, self._max_rounds = seat, engine.worker, partner, max_rounds
        owner_of = engine.part.layout.owner_of[:core_size]
        self._core = np.full(core_size, _MOST, np.uint32)
        self._owned = {q: AgreedList.of(np.flatnonzero(owner_of == q).astype(np.int32)) for q in range(seat.size)}
        self._known = {q: np.empty(owned.total, np.uint32) for q, owned in self._owned.items()}
        self._room = Room(max(1, core_size))
        self._closed = np.full(core_size, -1, np.int32)
        self._answered = self._sharing = False
        self._sent_at, self._sent = 0.0, 0
        self.lost = ""
        self.tally = NpuTally()
        self.events: list[RawEvent] = []

    def begin(self, sharing: bool) -> None:
        self._sharing, self._answered = sharing, False
        self._core.fill(_MOST)
        self._closed.fill(-1)
        for known in self._known.values():
            known.fill(_MOST)
        self.tally, self.events = NpuTally(), []
        self._partner.begin()
        self.lost = "" if self._partner.usable else self._partner.failure or "it was lost before"

    def hear(self, message: Message) -> None:
        """What core masters of another rank have gained."""
        changed = unpack_min(message.payload, self._owned[message.peer], self._core, self._room)
        places = np.searchsorted(self._owned[message.peer].local_ids(), changed)
        self._known[message.peer][places] = self._core[changed]

    def serve(self) -> list[Message]:
        """Take an answer if there is one, pass on what it improved, submit a new round if there is news.

        A rank that has nothing to do does nothing here either, whatever the worker does: termination counts on it that
        only a message can wake it up.
        """
        self._hear_own()
        if self.idle() and not self._worker.engine.can_step():
            return []
        self._take_answer()
        messages = self._pass_on() if self._answered else []
        self._submit_if_news()
        if not self._partner.usable and not self.lost:
            self.lost = self._partner.failure or "it ended"
            self._note_round(self.lost)
        return messages

    def idle(self) -> bool:
        """In mode race the search does not wait for the worker."""
        if not self._sharing or not self._partner.usable:
            return True
        return not self._partner.busy and bool(np.array_equal(self._core.view(np.int32), self._closed))

    def wait_if_stuck(self) -> None:
        """Nothing is left but the worker's answer: in bulk-synchronous rounds it is better awaited than polled."""
        if not self.idle() and self._partner.busy and not self._worker.engine.can_step():
            self._partner.wait()

    def end(self) -> None:
        tally, partner = self.tally, self._partner
        if partner.busy:
            partner.abandon()
            self._note_round("not needed: the CPU had converged")
        if not partner.usable:
            tally.outcome = partner.failure
        elif tally.rounds_merged:
            tally.outcome = f"merged {tally.rounds_merged} of {plural(tally.rounds_sent, 'round')}"
        elif tally.rounds_sent:
            tally.outcome = "the CPU converged before the worker answered"
        elif partner.starting:
            tally.outcome = STILL_STARTING
        else:
            tally.outcome = "not needed: no core vertex got a value before the CPU converged"

    def _take_answer(self) -> None:
        answer = self._partner.poll()
        if answer is None:
            return
        theirs = answer.values.view(np.uint32)
        improved = int(np.count_nonzero(theirs < self._core))
        np.minimum(self._core, theirs, out=self._core)
        self._closed = answer.values.copy()
        self._answered = True
        tally = self.tally
        tally.rounds_merged += 1
        tally.values_received += answer.received
        tally.values_adopted += improved
        self._note_round("merged", round=answer.round_id, values_received=answer.received, values_adopted=improved)

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

    def _submit_if_news(self) -> None:
        partner, values = self._partner, self._core.view(np.int32)
        if not partner.usable or partner.busy or np.array_equal(values, self._closed):
            return
        if partner.starting and not self._sharing:
            return
        if self.tally.rounds_sent >= self._max_rounds:
            partner.distrust(f"no end after {plural(self._max_rounds, 'round')} (npu.max_rounds)")
            return
        self._sent_at = time.perf_counter()
        self._sent = int(np.count_nonzero(values >= 0))
        partner.submit(values.copy())
        self.tally.rounds_sent += 1
        self.tally.values_sent += self._sent

    def _note_round(self, outcome: str, **details: object) -> None:
        if self._sent:
            facts = {"outcome": outcome, "values_sent": self._sent, **details}
            self.events.append(("round", self._sent_at, time.perf_counter(), facts))
            self._sent = 0
