"""Two state machines, without I/O: events in, actions out. They own every decision of the exchange.

Coordinator: at most one round is outstanding; a round is delivered at most once and only if it is the outstanding one;
once closed, no round is ever written again and ``reason`` says why. Worker: one round at a time, lowest number first;
``CreateOk`` is only ever asked for after ``DataWritten`` of the same round; after ``Exit`` nothing is asked for.

The caller carries out the actions in order and feeds what happened back as events. Events that do not fit the state
(late, repeated, foreign) are ignored: they return no actions.
"""

from __future__ import annotations

from typing import Literal

from exchange.protocol import layout
from exchange.protocol.messages import (
    AbandonRound,
    Compute,
    Computed,
    ComputeFailed,
    CoordinatorAction,
    CoordinatorEvent,
    CreateOk,
    DataBad,
    DataRead,
    DataWritten,
    Deliver,
    Distrust,
    Exit,
    GiveUp,
    Loaded,
    LoadFailed,
    LoadRound,
    OkSeen,
    ReadData,
    Reject,
    RoundAbandoned,
    RoundSeen,
    SkipRound,
    Stop,
    StopSeen,
    Submit,
    Tick,
    Withdraw,
    WorkerAction,
    WorkerEvent,
    WorkerLost,
    WorkerReady,
    WriteData,
    WriteFailed,
    WriteRound,
    WriteStop,
)

__all__ = [
    "AbandonRound",
    "Compute",
    "ComputeFailed",
    "Computed",
    "CoordinatorAction",
    "CoordinatorEvent",
    "CoordinatorProtocol",
    "CreateOk",
    "DataBad",
    "DataRead",
    "DataWritten",
    "Deliver",
    "Distrust",
    "Exit",
    "GiveUp",
    "LoadFailed",
    "LoadRound",
    "Loaded",
    "OkSeen",
    "ReadData",
    "Reject",
    "RoundAbandoned",
    "RoundSeen",
    "SkipRound",
    "Stop",
    "StopSeen",
    "Submit",
    "Tick",
    "Withdraw",
    "WorkerAction",
    "WorkerEvent",
    "WorkerLost",
    "WorkerProtocol",
    "WorkerReady",
    "WriteData",
    "WriteFailed",
    "WriteRound",
    "WriteStop",
]

# --------------------------------------------------------------------------------------- coordinator


class CoordinatorProtocol:
    """idle -> (Submit) waiting -> (DataRead) idle ...; any failure or Stop -> closed, for good."""

    def __init__(self, token: str, round_timeout_s: float, start_timeout_s: float) -> None:
        if not layout.is_token(token):
            raise ValueError(f"a token is 8 hexadecimal digits, not {token!r}")
        self.token = token
        self._round_timeout_s = round_timeout_s
        self._start_timeout_s = start_timeout_s
        self._state: Literal["idle", "waiting", "closed"] = "idle"
        self._round: str | None = None
        self._reading = False
        self._seq = 0
        self._ready = False
        self._deadline_s: float | None = None
        self._reason: str | None = None

    @property
    def state(self) -> Literal["idle", "waiting", "closed"]:
        return self._state

    @property
    def round_id(self) -> str | None:
        """The outstanding round, or None."""
        return self._round

    @property
    def rounds_written(self) -> int:
        """How many rounds were asked to be written so far."""
        return self._seq

    @property
    def deadline_s(self) -> float | None:
        """When the outstanding round times out, on the clock of the events; None when nothing is timed."""
        return self._deadline_s

    @property
    def reason(self) -> str | None:
        """Why the exchange is closed; None while it is open."""
        return self._reason

    def handle(self, event: CoordinatorEvent) -> list[CoordinatorAction]:
        """Take one event, return what is to be done now, in order."""
        if self._state == "closed":
            return []
        match event:
            case Submit(now_s):
                return self._submit(now_s)
            case OkSeen(round_id) if round_id == self._round and not self._reading:
                self._reading = True
                return [ReadData(round_id)]
            case DataRead(round_id, header_round) if round_id == self._round and self._reading:
                return self._data_read(round_id, header_round)
            case DataBad(round_id, reason) if round_id == self._round and self._reading:
                return [Reject(round_id, reason), *self._give_up(f"bad answer in {round_id}: {reason}")]
            case WriteFailed(round_id, reason) if round_id == self._round:
                return self._give_up(f"{round_id} could not be written: {reason}")
            case Tick(now_s):
                return self._tick(now_s)
            case WorkerReady() if not self._ready:
                self._ready = True
                # This event carries no time: the next Tick starts the round's own clock, so that the worker gets
                # the whole of round_timeout_s after its start-up.
                self._deadline_s = None
                return []
            case WorkerLost(cause):
                return self._abandon_and_give_up(cause)
            case Distrust(reason):
                return self._abandon_and_give_up(f"the worker is not trusted any more: {reason}")
            case Withdraw(reason) if self._round is not None:
                withdrawn = AbandonRound(self._round, reason)
                self._state = "idle"
                self._forget_round()
                return [withdrawn]
            case Stop():
                return self._stop()
        return []

    def _submit(self, now_s: float) -> list[CoordinatorAction]:
        if self._state != "idle":
            return []
        self._seq += 1
        self._round = layout.round_id(self._seq, self.token)
        self._reading = False
        self._state = "waiting"
        self._deadline_s = now_s + (self._round_timeout_s if self._ready else self._start_timeout_s)
        return [WriteRound(self._round)]

    def _data_read(self, round_id: str, header_round: str | None) -> list[CoordinatorAction]:
        if header_round is not None and header_round != round_id:
            reason = f"the answer belongs to {header_round}"
            return [Reject(round_id, reason), *self._give_up(f"bad answer in {round_id}: {reason}")]
        self._ready = True
        self._state = "idle"
        self._forget_round()
        return [Deliver(round_id)]

    def _tick(self, now_s: float) -> list[CoordinatorAction]:
        if self._state != "waiting":
            return []
        if self._deadline_s is None:
            self._deadline_s = now_s + self._round_timeout_s
        if now_s < self._deadline_s:
            return []
        if self._ready:
            return self._abandon_and_give_up(f"no answer to {self._round} within {self._round_timeout_s:g} s")
        return self._abandon_and_give_up(f"the worker was not ready within {self._start_timeout_s:g} s")

    def _stop(self) -> list[CoordinatorAction]:
        reason = "the job needs no more rounds"
        actions: list[CoordinatorAction] = [] if self._round is None else [AbandonRound(self._round, reason)]
        self._close(reason)
        return [*actions, WriteStop()]

    def _abandon_and_give_up(self, reason: str) -> list[CoordinatorAction]:
        actions: list[CoordinatorAction] = [] if self._round is None else [AbandonRound(self._round, reason)]
        return [*actions, *self._give_up(reason)]

    def _give_up(self, reason: str) -> list[CoordinatorAction]:
        self._close(reason)
        return [GiveUp(reason), WriteStop()]

    def _close(self, reason: str) -> None:
        self._state = "closed"
        self._reason = reason
        self._forget_round()

    def _forget_round(self) -> None:
        self._round = None
        self._reading = False
        self._deadline_s = None


# -------------------------------------------------------------------------------------------- worker


class WorkerProtocol:
    """idle -> loading -> computing -> writing -> idle ...; StopSeen -> stopped, for good."""

    def __init__(self) -> None:
        self._state: Literal["idle", "loading", "computing", "writing", "stopped"] = "idle"
        self._round: str | None = None
        self._queue: set[str] = set()
        # Rounds that were answered or skipped: seeing them again (a failed one stays announced) starts nothing.
        self._finished: set[str] = set()

    @property
    def state(self) -> Literal["idle", "loading", "computing", "writing", "stopped"]:
        return self._state

    @property
    def round_id(self) -> str | None:
        """The round in work, or None."""
        return self._round

    def handle(self, event: WorkerEvent) -> list[WorkerAction]:
        """Take one event, return what is to be done now, in order."""
        if self._state == "stopped":
            return []
        match event:
            case RoundSeen(round_id, answered):
                return self._round_seen(round_id, answered)
            case RoundAbandoned(round_id):
                return self._skip(round_id, "the coordinator abandoned it")
            case Loaded(round_id) if self._is_at(round_id, "loading"):
                self._state = "computing"
                return [Compute(round_id)]
            case LoadFailed(round_id, reason) if self._is_at(round_id, "loading"):
                return self._skip(round_id, reason)
            case Computed(round_id) if self._is_at(round_id, "computing"):
                self._state = "writing"
                return [WriteData(round_id)]
            case ComputeFailed(round_id, reason) if self._is_at(round_id, "computing"):
                return self._skip(round_id, reason)
            case DataWritten(round_id) if self._is_at(round_id, "writing"):
                return [CreateOk(round_id), *self._finish(round_id)]
            case WriteFailed(round_id, reason) if self._is_at(round_id, "writing"):
                return self._skip(round_id, reason)
            case StopSeen():
                self._state = "stopped"
                self._round = None
                self._queue.clear()
                return [Exit()]
        return []

    def _is_at(self, round_id: str, state: str) -> bool:
        return round_id == self._round and state == self._state

    def _round_seen(self, round_id: str, answered: bool) -> list[WorkerAction]:
        if round_id in self._finished or round_id == self._round or layout.parse_round_id(round_id) is None:
            return []
        if answered:
            self._queue.discard(round_id)
            self._finished.add(round_id)
            return []
        self._queue.add(round_id)
        return self._next() if self._state == "idle" else []

    def _skip(self, round_id: str, reason: str) -> list[WorkerAction]:
        if round_id != self._round and round_id not in self._queue:
            return []
        return [SkipRound(round_id, reason), *self._finish(round_id)]

    def _finish(self, round_id: str) -> list[WorkerAction]:
        self._finished.add(round_id)
        self._queue.discard(round_id)
        if round_id == self._round:
            self._round = None
            self._state = "idle"
        return self._next() if self._state == "idle" else []

    def _next(self) -> list[WorkerAction]:
        if not self._queue:
            return []
        # Lowest number first: the coordinator has one round outstanding, so an older one is at most a leftover, and
        # serving it costs less than a rule that a foreign coordinator might not share.
        self._round = min(self._queue, key=lambda name: (layout.parse_round_id(name), name))
        self._queue.discard(self._round)
        self._state = "loading"
        return [LoadRound(self._round)]
