"""The transport over MPI: numpy buffers only, nothing is pickled once a run has begun.

An MPI tag carries, besides the driver's tag, whether this is a notice of a payload too long for one message (8 bytes:
its length; the pieces follow) or such a piece, and for ``Progress`` the number of the run modulo 32: a rank that is
still in the last run keeps what others send in the next one until it gets there.

Invariants: ``Exchange`` and ``Progress`` each have a communicator of their own; a buffer that is being sent is kept
until MPI is done with it; a run is over here only when all that it sent has left. Importing this module starts MPI.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from cpu_engine.comm.errors import CommError
from cpu_engine.comm.requests import LAST_TAG, AllReduce, Driver, Exchange, Message, Progress, Request

T = TypeVar("T")
CHUNK_BYTES = 1 << 30  # MPI counts with 31 bits
WAIT_S = 1e-3
_NOTICE, _PIECE = 1 << 8, 1 << 9
_RUN_SHIFT, _RUNS = 10, 32  # the standard promises tags up to 32,767
_EAGER_BYTES = 4096  # up to here a message has come whole when it is seen; a longer one may need its sender once more
_YIELDS = 200  # turns offered to others before sleeping: about a quarter of a millisecond
_SHORTEST_SLEEP_S, _LONGEST_SLEEP_S = 20e-6, 200e-6
_ROOM_BYTES = 1 << 16
_KEPT_BYTES = 8 << 20  # a larger room, as partitioning needs, is given back with the next message
_OPS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}


@dataclass(slots=True)
class Traffic:
    """Of one tag; ``wait_s`` is the time that exchanges took, from the first payload sent to the last one received."""

    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    bytes_received: int = 0
    wait_s: float = 0.0


@dataclass(slots=True)
class TransportStatistics:
    """Since the transport was made."""

    all_reduces: int = 0
    all_reduce_s: float = 0.0
    idle_s: float = 0.0  # in Progress with nothing to do but wait
    by_tag: dict[int, Traffic] = field(default_factory=dict)

    def of(self, tag: int) -> Traffic:
        traffic = self.by_tag.get(tag)
        if traffic is None:
            traffic = self.by_tag[tag] = Traffic()
        return traffic


class MpiTransport:
    """This rank's end of a communicator. Making one is collective, as it duplicates the communicator twice."""

    def __init__(self, comm: MPI.Intracomm | None = None, chunk_bytes: int = CHUNK_BYTES) -> None:
        world = MPI.COMM_WORLD if comm is None else comm
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self.host = MPI.Get_processor_name()
        self.statistics = TransportStatistics()
        self._chunk_bytes = chunk_bytes
        self._exchanges, self._messages = world.Dup(), world.Dup()
        self._status = MPI.Status()
        self._rooms: dict[int, np.ndarray] = {}
        self._sending: list[tuple[MPI.Request, np.ndarray]] = []
        self._receiving: list[tuple[list[MPI.Request], int, Message]] = []
        self._early: list[tuple[int, Message]] = []
        self._run = 0
        self._pause = _Pause()

    def close(self) -> None:
        """Give the communicators back; collective."""
        self._exchanges.Free()
        self._messages.Free()

    def finalize(self) -> None:
        """The end of MPI for this process: returns when every rank has come as far."""
        MPI.Finalize()

    def abort(self, code: int) -> None:
        """End all ranks at once; after ``finalize`` they end by themselves."""
        if not MPI.Is_finalized():
            MPI.COMM_WORLD.Abort(code)

    def run(self, driver: Driver[T]) -> T:
        """Answer the driver's requests until it returns; what it returned."""
        self._run = (self._run + 1) % _RUNS
        answer: Any = None
        try:
            while True:
                answer = self._answer(driver.send(answer))
        except StopIteration as stop:
            result: T = stop.value
        finally:
            driver.close()  # what it holds is let go, whatever ended it
        self._pause.until(self._nothing_leaving)
        return result

    def _answer(self, request: Request) -> Any:
        if isinstance(request, Progress):
            return self._progress(request)
        if isinstance(request, Exchange):
            return self._exchange(request)
        return self._all_reduce(request)

    # ------------------------------------------------------------------------------ together

    def _exchange(self, request: Exchange) -> dict[int, np.ndarray]:
        begin = time.perf_counter()
        traffic = self.statistics.of(request.tag)
        leaving: list[MPI.Request] = []
        notices = []
        for peer, payload in request.outgoing.items():
            traffic.messages_sent += 1
            traffic.bytes_sent += payload.size
            if payload.size > self._chunk_bytes:
                notices.append(np.array([payload.size], np.int64))
                leaving.append(self._exchanges.Isend(notices[-1], peer, request.tag | _NOTICE))
                leaving += [self._exchanges.Isend(piece, peer, request.tag | _PIECE) for piece in self._pieces(payload)]
            else:
                leaving.append(self._exchanges.Isend(payload, peer, request.tag))
        answer = {}
        for peer in request.expect:
            payload = answer[peer] = self._receive(peer, request.tag, request.patient)
            traffic.messages_received += 1
            traffic.bytes_received += payload.size
        MPI.Request.Waitall(leaving)
        traffic.wait_s += time.perf_counter() - begin
        return answer

    def _receive(self, peer: int, tag: int, patient: bool) -> np.ndarray:
        """One payload of an exchange, in this peer's room: valid until the next exchange with it."""
        status = self._status
        if patient:
            found = self._pause.until(lambda: self._exchanges.Improbe(peer, MPI.ANY_TAG, status))
        else:
            found = self._exchanges.Mprobe(peer, MPI.ANY_TAG, status)
        came, length = status.Get_tag(), status.Get_count(MPI.BYTE)
        if came & LAST_TAG != tag:
            raise CommError(
                f"rank {self.rank} expects tag {tag} from rank {peer}, which sent tag {came & LAST_TAG}",
                fix="let every rank make the same sequence of requests",
            )
        if not came & _NOTICE:
            room = self._room(peer, length)
            found.Recv((room, length, MPI.BYTE), status)
            return room[:length]
        notice = np.empty(1, np.int64)
        found.Recv(notice, status)
        room = self._room(peer, int(notice[0]))[: int(notice[0])]
        for piece in self._pieces(room):
            self._exchanges.Recv(piece, peer, tag | _PIECE, status)
        return room

    def _room(self, peer: int, length: int) -> np.ndarray:
        room = self._rooms.get(peer)
        oversized = room is not None and room.size > _KEPT_BYTES >= length
        if room is None or room.size < length or oversized:
            room = self._rooms[peer] = np.empty(max(_ROOM_BYTES, length + length // 2), np.uint8)
        return room

    def _pieces(self, payload: np.ndarray) -> list[np.ndarray]:
        return [payload[at : at + self._chunk_bytes] for at in range(0, payload.size, self._chunk_bytes)]

    def _all_reduce(self, request: AllReduce) -> np.ndarray:
        begin = time.perf_counter()
        values = np.ascontiguousarray(request.values, np.int64)
        result = np.empty_like(values)
        if request.patient:
            waiting = self._exchanges.Iallreduce(values, result, _OPS[request.op])
            self._pause.until(waiting.Test)
        else:
            self._exchanges.Allreduce(values, result, _OPS[request.op])
        self.statistics.all_reduces += 1
        self.statistics.all_reduce_s += time.perf_counter() - begin
        return result

    # ------------------------------------------------------------------------------ alone

    def _progress(self, request: Progress) -> list[Message]:
        for message in request.outgoing:
            self._send(message)
        arrived = self._take_early() if self._early else []
        self._take_arrived(arrived)
        if arrived or not request.wait:
            if arrived:
                self._pause.end()
            return arrived
        begin = time.perf_counter()
        while not arrived and time.perf_counter() - begin < WAIT_S:
            self._pause.once()
            self._take_arrived(arrived)
        if arrived:
            self._pause.end()
        self.statistics.idle_s += time.perf_counter() - begin
        return arrived

    def _send(self, message: Message) -> None:
        traffic = self.statistics.of(message.tag)
        traffic.messages_sent += 1
        traffic.bytes_sent += message.payload.size
        tag = message.tag | self._run << _RUN_SHIFT
        if message.payload.size <= self._chunk_bytes:
            self._launch(message.payload, message.peer, tag)
            return
        self._launch(np.array([message.payload.size], np.int64), message.peer, tag | _NOTICE)
        for piece in self._pieces(message.payload):
            self._launch(piece, message.peer, tag | _PIECE)

    def _launch(self, buffer: np.ndarray, peer: int, tag: int) -> None:
        request = self._messages.Isend(buffer, peer, tag)
        if not request.Test():
            self._sending.append((request, buffer))

    def _nothing_leaving(self) -> bool:
        self._sending = [entry for entry in self._sending if not entry[0].Test()]
        return not self._sending

    def _take_arrived(self, arrived: list[Message]) -> None:
        """Append what has come; go on with what is coming and leaving."""
        status = self._status
        while True:
            found = self._messages.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            if found is None:
                break
            self._accept(found, status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE), arrived)
        if self._receiving:
            coming = self._receiving
            self._receiving = []
            for entry in coming:
                requests, tag, message = entry
                if MPI.Request.Testall(requests):
                    self._deliver(message, tag, arrived)
                else:
                    self._receiving.append(entry)
        if self._sending:
            self._nothing_leaving()

    def _accept(self, found: MPI.Message, peer: int, tag: int, length: int, arrived: list[Message]) -> None:
        if tag & _NOTICE:
            notice = np.empty(1, np.int64)
            found.Recv(notice)
            message = Message(peer, tag & LAST_TAG, np.empty(int(notice[0]), np.uint8))
            # Posted before the next look around, so no piece is ever taken for a message of its own.
            requests = [
                self._messages.Irecv(piece, peer, tag & ~_NOTICE | _PIECE) for piece in self._pieces(message.payload)
            ]
            self._receiving.append((requests, tag, message))
            return
        message = Message(peer, tag & LAST_TAG, np.empty(length, np.uint8))
        if length <= _EAGER_BYTES:
            found.Recv(message.payload)
            self._deliver(message, tag, arrived)
        else:
            self._receiving.append(([found.Irecv(message.payload)], tag, message))

    def _deliver(self, message: Message, tag: int, arrived: list[Message]) -> None:
        traffic = self.statistics.of(message.tag)
        traffic.messages_received += 1
        traffic.bytes_received += message.payload.size
        run = tag >> _RUN_SHIFT
        if run == self._run:
            arrived.append(message)
            return
        if (run - self._run) % _RUNS >= _RUNS // 2:
            raise CommError(
                f"rank {self.rank} got a message of tag {message.tag} from rank {message.peer} after its run was over",
                fix="end a run only when nothing is under way, as Termination does",
            )
        self._early.append((run, message))

    def _take_early(self) -> list[Message]:
        now = [message for run, message in self._early if run == self._run]
        self._early = [entry for entry in self._early if entry[0] != self._run]
        return now


class _Pause:
    """Waiting without burning a core: first give the core away, then sleep, longer and longer."""

    def __init__(self) -> None:
        self._turns = 0
        self._sleep_s = _SHORTEST_SLEEP_S

    def once(self) -> None:
        if self._turns < _YIELDS:
            self._turns += 1
            os.sched_yield()
            return
        time.sleep(self._sleep_s)
        self._sleep_s = min(2 * self._sleep_s, _LONGEST_SLEEP_S)

    def end(self) -> None:
        """Something came: be quick the next time."""
        self._turns, self._sleep_s = 0, _SHORTEST_SLEEP_S

    def until(self, look: Callable[[], Any]) -> Any:
        """The first true answer."""
        while not (found := look()):
            self.once()
        self.end()
        return found
