"""The two ways to alternate between local work and messages: in rounds together (BSP), or each rank alone (BASP).

Both end only when nothing is left anywhere: BSP when a round changed nothing on any rank, BASP when ``Termination``
says so. There is no cap on rounds. Values only ever become smaller, so messages may be late, repeated by later ones or
reordered; broadcasts are applied by minimum, too, as they may be stale.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from cpu_engine.comm.framing import join_messages, split_messages
from cpu_engine.comm.requests import (
    FIRST_OUTSIDE_TAG,
    NO_BYTES,
    TAG_CONTROL,
    TAG_OUTSIDE_ROUND,
    AllReduce,
    Driver,
    Exchange,
    Message,
    Progress,
)
from cpu_engine.comm.substrate import Phase, Sync
from cpu_engine.comm.termination import Termination

MOST_SPANS = 20_000


class Worker(Protocol):
    """What does the local work. All ids are local."""

    @property
    def values(self) -> np.ndarray:
        """uint32 by local id, smaller is better."""

    def compute(self) -> bool:
        """Do a bounded amount of local work; whether more is left that can be done at once."""

    def activate(self, local_ids: np.ndarray, peer: int) -> None:
        """The values of these were lowered by a message from ``peer``. The array is valid during the call only."""

    def idle(self) -> bool:
        """Whether nothing is left to do here and nothing is awaited from outside (from a worker process, say)."""

    def outside(self) -> list[Message]:
        """Messages to other ranks about things outside the substrate, tags FIRST_OUTSIDE_TAG and up."""

    def from_outside(self, message: Message) -> None:
        """Such a message came. Its payload is valid during the call only."""


@dataclass(slots=True)
class RoundsReport:
    """What one rank did in a run. ``spans``: (kind, begin, end) by time.perf_counter, to draw ranks over time."""

    rounds: int = 0  # BSP: rounds; BASP: quanta of local work
    changes: int = 0  # values lowered by messages
    sent: int = 0
    received: int = 0
    compute_s: float = 0.0
    pack_s: float = 0.0
    unpack_s: float = 0.0
    wait_s: float = 0.0  # until the transport answered
    waves: int = 0  # of termination detection, known to rank 0
    spans: list[tuple[str, float, float]] = field(default_factory=list)

    def note(self, kind: str, begin: float, end: float) -> float:
        """Add a span; return its end, where the next one begins."""
        seconds = end - begin
        if kind == "compute":
            self.compute_s += seconds
        elif kind == "wait":
            self.wait_s += seconds
        elif kind == "pack":
            self.pack_s += seconds
        else:
            self.unpack_s += seconds
        if len(self.spans) < MOST_SPANS:
            self.spans.append((kind, begin, end))
        return end


def trade(phase: Phase, values: np.ndarray, report: RoundsReport) -> Driver[dict[int, np.ndarray]]:
    """One phase of a round: send what is new, wait for the others; what came and is not empty, in their order.

    For algorithms with rounds of their own; the caller applies what came, and notes the time as unpacking.
    """
    begin = time.perf_counter()
    payloads = phase.messages(values)
    outgoing = {peer: payloads.get(peer, NO_BYTES) for peer in phase.send_to}
    now = report.note("pack", begin, time.perf_counter())
    answer: dict[int, np.ndarray] = yield Exchange(phase.tag, outgoing, phase.receive_from)
    report.note("wait", now, time.perf_counter())
    report.sent += len(outgoing)
    report.received += len(answer)
    return {peer: payload for peer, payload in answer.items() if payload.size}


def agree(values: np.ndarray, op: Literal["sum", "max", "min"], report: RoundsReport) -> Driver[np.ndarray]:
    """A reduction over all ranks that counts as waiting."""
    begin = time.perf_counter()
    agreed: np.ndarray = yield AllReduce(values, op)
    report.note("wait", begin, time.perf_counter())
    return agreed


def bsp_rounds(
    worker: Worker, sync: Sync, outside_to: tuple[int, ...] = (), outside_from: tuple[int, ...] = ()
) -> Driver[RoundsReport]:
    """Rounds in step: compute until nothing is left here, reduce, broadcast, and agree whether anything changed.

    ``outside_to`` and ``outside_from`` are the ranks with which this one exchanges messages of the hybrid hook in every
    round: if r is in ``outside_to`` of s, then s is in ``outside_from`` of r.
    """
    report = RoundsReport()
    sync.start()
    clock = time.perf_counter
    now = clock()
    while True:
        report.rounds += 1
        while worker.compute():
            pass
        now = report.note("compute", now, clock())
        changes = 0
        for phase in sync.phases:
            payloads = phase.messages(worker.values)
            outgoing = {peer: payloads.get(peer, NO_BYTES) for peer in phase.send_to}
            now = report.note("pack", now, clock())
            answer = yield Exchange(phase.tag, outgoing, phase.receive_from)
            now = report.note("wait", now, clock())
            for peer, payload in answer.items():
                if payload.size:
                    changes += _apply(worker, phase.apply(peer, payload, worker.values), peer)
            report.sent += len(outgoing)
            report.received += len(answer)
            now = report.note("unpack", now, clock())
        from_here = worker.outside()
        if outside_to or outside_from:
            messages = join_messages(from_here, outside_to)
            answer = yield Exchange(TAG_OUTSIDE_ROUND, messages, outside_from)
            for peer, payload in answer.items():
                for message in split_messages(peer, payload):
                    worker.from_outside(message)
        report.changes += changes
        busy = yield AllReduce(np.array([changes, not worker.idle()], np.int64))
        now = report.note("wait", now, clock())
        if not busy.any():
            return report


def basp_rounds(worker: Worker, sync: Sync, termination: Termination) -> Driver[RoundsReport]:
    """No rounds: take what has arrived, work a while on what is there, send what is new, never wait for another rank.

    Nothing empty is sent. A rank without work waits for messages, and with all ranks waiting and nothing under way
    ``termination`` ends the run.
    """
    report = RoundsReport()
    sync.start()
    phases = {phase.tag: phase for phase in sync.phases}
    clock = time.perf_counter
    now = clock()
    outgoing: list[Message] = []
    more, arrivals = True, True
    while True:
        if more or arrivals or not worker.idle():
            more = worker.compute()
            report.rounds += 1
            now = report.note("compute", now, clock())
            for phase in sync.phases:
                for peer, payload in phase.messages(worker.values).items():
                    outgoing.append(Message(peer, phase.tag, payload))
                    report.sent += 1
            now = report.note("pack", now, clock())
        for message in worker.outside():
            outgoing.append(message)
            report.sent += 1
        if more or not worker.idle():
            termination.active()
        else:
            outgoing += termination.passive(report.sent, report.received)
        if termination.over and not outgoing:
            report.waves = termination.waves
            # No rank begins another run before all have left this one: its messages would be taken for this one's.
            yield AllReduce(np.zeros(1, np.int64))
            report.note("wait", now, clock())
            return report
        arrived: list[Message] = yield Progress(outgoing, wait=not more and not termination.over)
        now = report.note("wait", now, clock())
        outgoing, arrivals = [], False
        for message in arrived:
            if message.tag == TAG_CONTROL:
                outgoing += termination.handle(message)
                continue
            termination.active()
            report.received += 1
            arrivals = True
            if message.tag >= FIRST_OUTSIDE_TAG:
                worker.from_outside(message)
            else:
                phase = phases[message.tag]
                report.changes += _apply(
                    worker, phase.apply(message.peer, message.payload, worker.values), message.peer
                )
        if arrived:
            now = report.note("unpack", now, clock())


def _apply(worker: Worker, changed: np.ndarray, peer: int) -> int:
    if changed.size:
        worker.activate(changed, peer)
    return int(changed.size)
