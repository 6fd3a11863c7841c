"""The core solver beside many ranks: core values travel between their masters and the rank that drives a solver.

``CoreOnRanks`` is for values that only fall: BFS, shortest paths, components. ``SumsOnRanks`` is for PageRank, which
has the core's own arcs added up, and ``LevelsOnRanks`` for batches of searches; rank 0 alone drives a solver for these.

Falling values: one rank per machine, its first, drives a worker (source 003). It holds the whole core's values; all
ranks send it what their core masters have gained, and receive what the worker has found. The layout says which rank
owns which core vertex, so both sides hold the same list and values travel in its order, without ids. All of it happens
between two quanta of the engine (cpu_engine/ranks/outside.py), and its messages count for termination like any other.
Invariant: a value only ever falls. While the core's edges are withheld, the search cannot end before every worker that
lives has closed the core under its own edges; once none is left, every rank takes its core edges back.
"""

from __future__ import annotations

import time

import numpy as np

from cpu_engine.comm.collectives import RankInfo, gather
from cpu_engine.comm.encoding import AgreedList, Room, pack_improved, unpack_min
from cpu_engine.comm.requests import FIRST_OUTSIDE_TAG, AllReduce, Driver, Exchange, Message
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.outside import Host, core_masters
from hybrid.offload.rounds import MOST_ROUNDS, Rounds
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import Answer, CoreSolver

TAG_UP = FIRST_OUTSIDE_TAG  # core values, from their masters to a machine's first rank
TAG_DOWN = FIRST_OUTSIDE_TAG + 1  # and back, once a worker has improved them
TAG_LOST = FIRST_OUTSIDE_TAG + 2  # a machine's worker is gone; the payload says why
TAG_ANSWER = FIRST_OUTSIDE_TAG + 3  # of rounds in step, from rank 0 to every other

_MOST = np.uint32(0xFFFFFFFF)
_RACE_LEVELS = 2  # levels of a batch that mode race makes before it asks the solver
RawEvent = tuple[str, float, float, dict[str, object]]


class _Asking:
    """One rank's side of the rounds, made once per job: only a rank that is given a solver sends any."""

    def __init__(self, info: RankInfo, solver: CoreSolver | None, max_rounds: float) -> None:
        self._info, self.solver, self._max_rounds = info, solver, max_rounds  # the solver was asked last
        self._rounds: Rounds | None = None
        self._events = RankEvents()

    @property
    def tally(self) -> Tally | None:
        """What passed between this rank's solver and the job in this run; None on other ranks."""
        return None if self._rounds is None else self._rounds.tally

    @property
    def events(self) -> list[RawEvent]:
        """The rounds of this run, for the trace."""
        return self._events.raw

    def begin(self, *, withhold_core: bool, solver: CoreSolver | None = None) -> None:
        """A new run; all ranks have agreed whether the core's edges are the solvers'. ``solver``: another one."""
        self._events = RankEvents()
        if self.solver is not None:
            self.solver = solver or self.solver
            mode = "share" if withhold_core else "race"
            self._rounds = Rounds(self.solver, mode, self._events, self._max_rounds)

    def end(self) -> None:
        """The run is over; what the solver still does is not needed."""
        if self._rounds is not None:
            self._rounds.close()


class CoreOnRanks(_Asking):
    """Falling values; ``solver`` is given on the machine's first rank. Satisfies ``Outside``.

    ``complete``: a round is only sent once every core vertex has a value.
    """

    def __init__(
        self, info: RankInfo, part: Part, sync: str, core_size: int, solver: CoreSolver | None,
        max_rounds: int = MOST_ROUNDS, *, complete: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(info, solver, max_rounds)
        self._host: Host
        self._leaders = tuple(sorted({info.hosts.index(host) for host in info.hosts}))
        masters = core_masters(part, core_size)
        self._mine = AgreedList.of(np.arange(masters, dtype=np.int32))
        self._told = {leader: np.empty(masters, np.uint32) for leader in self._leaders if leader != info.rank}
        self._room = Room(max(1, core_size))
        self._lost: dict[int, str] = {}
        self._withheld = False
        self._in_step = sync == "bsp"
        self._lead = None if solver is None else _Lead(info, part, core_size, complete)

    def bind(self, host: Host) -> None:
        self._host = host
        if self._lead is not None:
            self._lead.host = host

    def begin(self, *, withhold_core: bool, solver: CoreSolver | None = None) -> None:
        super().begin(withhold_core=withhold_core, solver=solver)
        self._withheld, self._lost = withhold_core, {}
        for told in self._told.values():
            told.fill(_MOST)
        if self._lead is not None:
            assert self._rounds is not None
            self._lead.begin(self._rounds)

    # ------------------------------------------------------------------------- what comm.rounds asks

    def outgoing(self) -> list[Message]:
        values = self._host.values
        messages = []
        for leader, told in self._told.items():
            packed = pack_improved(self._mine, values, told, self._room)
            if packed.count:
                messages.append(Message(leader, TAG_UP, packed.payload))
        if self._lead is not None:
            messages += self._lead.serve()
            if self._in_step and not messages:
                self._lead.wait_if_stuck()
            if self._lead.lost and self._info.rank not in self._lost:
                reason = np.frombuffer(self._lead.lost.encode(), np.uint8)
                messages += [Message(rank, TAG_LOST, reason) for rank in self._info.others]
                self._lose(self._info.rank, self._lead.lost)
        return messages

    def arrived(self, message: Message) -> None:
        if message.tag == TAG_UP:
            assert self._lead is not None
            self._lead.hear(message)
        elif message.tag == TAG_DOWN:
            changed = unpack_min(message.payload, self._mine, self._host.values, self._room)
            self._host.adopt_unexplained(changed)
        else:
            self._lose(message.peer, message.payload.tobytes().decode(errors="replace"))

    def idle(self) -> bool:
        return self._lead is None or self._lead.idle()

    def _lose(self, leader: int, reason: str) -> None:
        self._lost[leader] = reason
        if self._withheld and len(self._lost) == len(self._leaders):
            self._withheld = False
            self._host.take_core_back()


class RankEvents(Trace):
    """The events of a rank's rounds, on the process's own clock; the engine itself counts waiting."""

    def now(self) -> float:
        return time.perf_counter()

    @property
    def raw(self) -> list[RawEvent]:
        common = ("t0", "t1", "actor", "kind", "source")
        rounds = [event for event in self.events if event["kind"] == "round"]
        return [
            ("round", event["t0"], event["t1"], {name: fact for name, fact in event.items() if name not in common})
            for event in rounds
        ]


class _Lead:
    """What a machine's first rank does in addition: gather the core's values, ask its solver, pass on answers."""

    rounds: Rounds
    host: Host

    def __init__(self, info: RankInfo, part: Part, core_size: int, complete: bool) -> None:
        self._rank, self._complete = info.rank, complete
        self._core = np.full(core_size, _MOST, np.uint32)
        self._owned = {q: AgreedList.of(ids) for q, ids in enumerate(core_by_rank(part, core_size))}
        self._known = {q: np.empty(owned.total, np.uint32) for q, owned in self._owned.items()}
        self._room = Room(max(1, core_size))
        self._closed = np.full(core_size, -1, np.int32)
        self._answered = False
        self.lost = ""

    def begin(self, rounds: Rounds) -> None:
        self.rounds, self._answered = rounds, False
        self._core.fill(_MOST)
        self._closed.fill(-1)
        for known in self._known.values():
            known.fill(_MOST)
        self.lost = "" if rounds.solver.usable else rounds.solver.failure or "it was lost before"

    def hear(self, message: Message) -> None:
        """What core masters of another rank have gained."""
        changed = unpack_min(message.payload, self._owned[message.peer], self._core, self._room)
        places = np.searchsorted(self._owned[message.peer].local_ids(), changed)
        self._known[message.peer][places] = self._core[changed]

    def serve(self) -> list[Message]:
        """Take an answer if there is one, pass on what it improved, send a new round if there is news.

        A rank that has nothing to do does nothing here either, whatever the worker does: termination relies on it that
        only a message wakes a rank up.
        """
        self._hear_own()
        if self.idle() and not self.host.can_step():
            return []
        self._take_answer()
        messages = self._pass_on() if self._answered else []
        rounds, values = self.rounds, self._core.view(np.int32)
        ready = not self._complete or bool((self._core != _MOST).all())
        if rounds.can_send and ready and not np.array_equal(values, self._closed):
            rounds.send(values.copy())
        if not rounds.solver.usable and not self.lost:
            self.lost = rounds.solver.failure or "it ended"
        return messages

    def idle(self) -> bool:
        """In mode race the search does not wait for the solver."""
        solver = self.rounds.solver
        if not self.rounds.sharing or not solver.usable:
            return True
        return not solver.busy and bool(np.array_equal(self._core.view(np.int32), self._closed))

    def wait_if_stuck(self) -> None:
        """Nothing is left but the answer: in bulk-synchronous rounds it is better awaited than polled."""
        if not self.idle() and self.rounds.solver.busy and not self.host.can_step():
            self.rounds.solver.wait()

    def _take_answer(self) -> None:
        answer = self.rounds.take()
        if answer is None:
            return
        t0, theirs = time.perf_counter(), answer.values.view(np.uint32)
        improved = int(np.count_nonzero(theirs < self._core))
        np.minimum(self._core, theirs, out=self._core)
        self._closed = answer.values.copy()
        self._answered = True
        self.rounds.merge(answer, t0, improved)

    def _pass_on(self) -> list[Message]:
        self._answered = False
        messages = []
        for q, owned in self._owned.items():
            if q == self._rank:
                mine, values = self._core[owned.local_ids()], self.host.values[: owned.total]
                better = np.flatnonzero(mine < values).astype(np.int32)
                values[better] = mine[better]
                self.host.adopt_unexplained(better)
                continue
            packed = pack_improved(owned, self._core, self._known[q], self._room)
            if packed.count:
                messages.append(Message(q, TAG_DOWN, packed.payload))
        return messages

    def _hear_own(self) -> None:
        owned = self._owned[self._rank].local_ids()
        self._core[owned] = np.minimum(self._core[owned], self.host.values[: owned.size])


def core_by_rank(part: Part, core_size: int) -> list[np.ndarray]:
    """The core vertices that each rank owns, ascending: the order of its core masters."""
    owner_of = part.layout.owner_of[:core_size]
    return [np.flatnonzero(owner_of == q).astype(np.int32) for q in range(part.layout.parts)]


class _AtRankZero(_Asking):
    """What rounds in step have in common: rank 0 collects the core masters' values, asks, and hands out answers."""

    def __init__(
        self, info: RankInfo, part: Part, core_size: int, solver: CoreSolver | None, max_rounds: float
    ) -> None:
        super().__init__(info, solver if info.rank == 0 else None, max_rounds)
        self._core_size, self._owned = core_size, core_by_rank(part, core_size)

    def _agree(self, mine: int) -> Driver[int]:
        """Rank 0's number, at every rank; rank 0 may have to wait for the solver first."""
        agreed = yield AllReduce(np.array([mine], np.int64), "max", patient=True)
        return int(agreed[0])

    def _hand_out(self, values: np.ndarray | None, dtype: type, rows: int) -> Driver[np.ndarray]:
        """Rank 0's ``values`` [rows, core vertices]: at every rank those of its core masters."""
        if values is not None:
            slices: list[np.ndarray] = [np.ascontiguousarray(values[:, ids], dtype) for ids in self._owned]
            outgoing = {q: slices[q].reshape(-1).view(np.uint8) for q in self._info.others}
            yield Exchange(TAG_ANSWER, outgoing, ())
            return slices[0]
        answer = yield Exchange(TAG_ANSWER, {}, (0,))
        mine: np.ndarray = answer[0].copy().view(dtype).reshape(rows, -1)
        return mine


class SumsOnRanks(_AtRankZero):
    """PageRank's side of it: contributions go up, the sums over the core's own arcs come down. ``CoreSums``."""

    def send(self, contributions: np.ndarray) -> Driver[bool]:
        can = yield from self._agree(self._rounds is not None and self._rounds.can_send)
        if not can:
            return False
        gathered = yield from gather(self._info, contributions.astype(np.float32).view(np.uint8))
        if gathered is not None:
            assert self._rounds is not None
            values = np.empty(self._core_size, np.float32)
            for ids, payload in zip(self._owned, gathered, strict=True):
                values[ids] = payload.view(np.float32)
            self._rounds.send(values)
        return True

    def receive(self) -> Driver[np.ndarray | None]:
        sums = None
        if self._rounds is not None:
            answer = self._rounds.receive()
            if answer is not None:
                sums = answer.values.reshape(1, -1)
                self._rounds.merge(answer, self._events.now(), int(sums.size))
        if not (yield from self._agree(sums is not None)):
            return None
        mine: np.ndarray = yield from self._hand_out(sums, np.float64, 1)
        return mine.reshape(-1)


class LevelsOnRanks(_AtRankZero):
    """A batch's side of it: which core vertices were reached goes up, when the others will be comes down.

    Satisfies ``CoreLevels``.

    Invariant: while the core's edges are withheld, the values handed out are closed under them for all known levels.
    """

    _NOTHING, _NEW, _LOST = 0, 1, 2

    def start(self, width: int, withhold_core: bool) -> Driver[bool]:
        self._values = np.full((width, self._core_size), -1, np.int32)
        self._closed = np.full((width, self._core_size), _MOST)
        self._out: tuple[np.ndarray, int] | None = None  # in mode race: the roots of a round under way, sent when
        usable = self._rounds is not None and self._rounds.solver.usable
        self._withheld = bool((yield from self._agree(withhold_core and usable)))
        return self._withheld

    def close(self, words: np.ndarray, level: int) -> Driver[tuple[np.ndarray | None, bool]]:
        gathered = yield from gather(self._info, words.view(np.uint8))
        state = self._NOTHING
        if gathered is not None and self._rounds is not None:
            for ids, payload in zip(self._owned, gathered, strict=True):
                bits = np.unpackbits(payload.reshape(-1, 8), axis=1, bitorder="little")[:, : self._values.shape[0]].T
                known = self._values[:, ids]
                self._values[:, ids] = np.where(bits.view(np.bool_), level, known)
            state = self._ask(self._rounds, level)
        state = yield from self._agree(state)
        self._withheld = self._withheld and state != self._LOST
        if state != self._NEW:
            return None, self._withheld
        mine = yield from self._hand_out(None if gathered is None else self._closed, np.uint32, self._values.shape[0])
        return mine, self._withheld

    def _ask(self, rounds: Rounds, level: int) -> int:
        """At rank 0: have the solver close the roots whose core values differ from its last answer."""
        if self._withheld:
            answered = False
            while (rows := self._stale(rounds)).size:
                answer = rounds.receive() if rounds.send(self._values[rows]) else None
                if answer is None or not self._merge(rounds, answer, rows, level):
                    return self._LOST
                answered = True
            return self._NEW if answered else self._NOTHING
        if self._out is None and level >= _RACE_LEVELS and (rows := self._stale(rounds)).size:
            self._out = (rows, level) if rounds.send(self._values[rows]) else None
            return self._NOTHING
        answer = None if self._out is None else rounds.take()
        if answer is None or self._out is None:
            return self._NOTHING
        asked, self._out = self._out, None
        return self._NEW if self._merge(rounds, answer, *asked) else self._NOTHING

    def _stale(self, rounds: Rounds) -> np.ndarray:
        """The roots whose core values differ from the last answer for them, as many as a round may carry."""
        values = self._values.view(np.uint32)
        told = ((values != _MOST) & (values != self._closed)).any(axis=1)
        return np.flatnonzero(told)[: max(1, rounds.solver.largest_batch)]

    def _merge(self, rounds: Rounds, answer: Answer, rows: np.ndarray, level: int) -> bool:
        """Merge the answer for these roots, asked for after this level; False if it contradicts final levels."""
        t0, sent = self._events.now(), self._values[rows]
        sent[sent > level] = -1  # reached since, in mode race
        theirs = np.ascontiguousarray(answer.values, np.int32)
        final = (sent >= 0) | (theirs >= 0) & (theirs <= level)  # all up to this level are known
        false = int(np.count_nonzero(final & (theirs != sent)))
        closed = np.where(sent >= 0, sent, theirs).view(np.uint32)
        adopted = int(np.count_nonzero(closed < self._closed[rows]))
        self._closed[rows] = closed
        rounds.merge(answer, t0, adopted, false, "against levels that are final")
        return not false
