"""P drivers in one process, without MPI: deterministic, and in any order of events that a chooser can think of.

Invariants: a message given to ``Progress`` is delivered exactly once, to a driver that asks for progress; fairness is
kept whatever the chooser says (after ``FAIRNESS`` steps a message that can be delivered is, and a driver that can go on
does), so that what ends under MPI ends here; what can never go on is an error that names which driver waits for what.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from cpu_engine.comm.errors import CommError
from cpu_engine.comm.requests import AllReduce, Driver, Exchange, Message, Progress, Request

T = TypeVar("T")
Chooser = Callable[[int], int]
FAIRNESS = 200  # steps
IDLE_LIMIT = 100_000  # times in a row that a waiting driver was woken and nothing came of it
_PATIENT_TURNS = 1_000  # so many of them at once; then time passes between them, for a worker process to answer in
_PAUSE_S = 0.001

_REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
}


def run_loopback(drivers: Sequence[Driver[T]], chooser: Chooser | None = None, idle_limit: int = IDLE_LIMIT) -> list[T]:
    """Run the drivers, the i-th as rank i, to their ends; return what each returned.

    ``chooser(k)`` picks 0..k-1 wherever there is a choice; without it drivers take turns and messages arrive in order.
    """
    ring = _Ring(list(drivers), chooser, idle_limit)
    try:
        return ring.run()
    finally:
        for driver in drivers:
            driver.close()


class _Ring:
    """The state of all drivers and of what is under way between them."""

    def __init__(self, drivers: list[Driver[Any]], chooser: Chooser | None, idle_limit: int) -> None:
        self.drivers, self.chooser, self.idle_limit = drivers, chooser, idle_limit
        size = len(drivers)
        self.requests: list[Request | None] = [None] * size
        self.results: list[Any] = [None] * size
        self.live = set(range(size))
        self.posted: dict[tuple[int, int], deque[tuple[int, np.ndarray]]] = defaultdict(deque)
        self.in_flight: list[list[tuple[int, Message]]] = [[] for _ in drivers]  # by receiver, with its step of sending
        self.reduced: dict[int, np.ndarray] = {}
        self.last_run = [0] * size
        self.step = self.idle_turns = 0
        self.turn = -1

    def run(self) -> list[Any]:
        for rank in range(len(self.drivers)):
            self._advance(rank, None)
        while self.live:
            self.step += 1
            rank = self._pick()
            self._advance(rank, self._answer(rank))
        return self.results

    def _advance(self, rank: int, answer: Any) -> None:
        """Give the driver its answer and take its next request."""
        self.last_run[rank] = self.step
        try:
            request = self.drivers[rank].send(answer)
        except StopIteration as stop:
            self._end(rank, stop.value)
            return
        self.requests[rank] = request
        if isinstance(request, Exchange):
            for peer, payload in request.outgoing.items():
                # A copy, because the sender may reuse its buffer once its own expectations are met.
                self.posted[rank, self._checked(rank, peer)].append((request.tag, payload.copy()))
        elif isinstance(request, Progress):
            for message in request.outgoing:
                self._checked(rank, message.peer)
                sent = Message(rank, message.tag, message.payload)
                self.in_flight[message.peer].append((self.step, sent))
                self.idle_turns = 0
        else:
            self._reduce_if_all_ask()

    def _end(self, rank: int, result: Any) -> None:
        self.live.discard(rank)
        self.requests[rank], self.results[rank] = None, result
        if self.in_flight[rank]:
            _, lost = self.in_flight[rank][0]
            raise self._stuck(f"rank {rank} ended before a message of tag {lost.tag} from rank {lost.peer} reached it")

    def _checked(self, rank: int, peer: int) -> int:
        if peer in self.live:
            return peer
        known = 0 <= peer < len(self.drivers)
        raise self._stuck(f"rank {rank} sends to rank {peer}, which {'has ended' if known else 'does not exist'}")

    # ------------------------------------------------------------------------------ which driver goes on

    def _pick(self) -> int:
        ready = [rank for rank in sorted(self.live) if self._can_go_on(rank)]
        if ready:
            self.idle_turns = 0
        else:
            ready = [rank for rank in sorted(self.live) if isinstance(self.requests[rank], Progress)]
            self.idle_turns += 1
            if not ready or self.idle_turns > self.idle_limit:
                raise self._stuck("no driver can go on")
            if self.idle_turns > _PATIENT_TURNS:
                time.sleep(_PAUSE_S)
        starved = [rank for rank in ready if self.step - self.last_run[rank] > FAIRNESS]
        if starved:
            return min(starved, key=lambda rank: self.last_run[rank])  # the first would starve those after it
        if self.chooser is not None:
            return ready[self.chooser(len(ready))] if len(ready) > 1 else ready[0]
        self.turn = next((rank for rank in ready if rank > self.turn), ready[0])
        return self.turn

    def _can_go_on(self, rank: int) -> bool:
        """Without time passing; a driver that merely waits for a message is woken when no other can do anything."""
        request = self.requests[rank]
        if isinstance(request, Exchange):
            return all(self.posted[peer, rank] for peer in request.expect)
        if isinstance(request, Progress):
            return not request.wait or bool(self.in_flight[rank])
        return rank in self.reduced

    # ------------------------------------------------------------------------------ answers

    def _answer(self, rank: int) -> Any:
        request = self.requests[rank]
        if isinstance(request, Exchange):
            return {peer: self._take_posted(request, peer, rank) for peer in request.expect}
        if isinstance(request, Progress):
            return self._deliver(rank, request.wait)
        return self.reduced.pop(rank)

    def _take_posted(self, request: Exchange, peer: int, rank: int) -> np.ndarray:
        tag, payload = self.posted[peer, rank].popleft()
        if tag != request.tag:
            raise self._stuck(f"rank {rank} expects tag {request.tag} from rank {peer}, which sent tag {tag}")
        return payload

    def _deliver(self, rank: int, wait: bool) -> list[Message]:
        """All that is under way without a chooser, any part of it in any order with one."""
        waiting = self.in_flight[rank]
        if self.chooser is None:
            self.in_flight[rank] = []
            return [message for _, message in waiting]
        arrived = [message for sent, message in waiting if self.step - sent > FAIRNESS]
        waiting[:] = [entry for entry in waiting if self.step - entry[0] <= FAIRNESS]
        while waiting:
            must = 1 if wait and not arrived else 0
            choice = self.chooser(len(waiting) + 1 - must) - 1 + must
            if choice < 0:
                break
            arrived.append(waiting.pop(choice)[1])
        return arrived

    def _reduce_if_all_ask(self) -> None:
        asked = [request for request in self.requests if isinstance(request, AllReduce)]
        if len(asked) < len(self.drivers) or self.reduced:
            return
        if len({(request.op, request.values.shape) for request in asked}) > 1:
            raise self._stuck("ranks ask for different reductions")
        result = _REDUCTIONS[asked[0].op](np.stack([request.values for request in asked]), axis=0)
        self.reduced = {rank: result.astype(np.int64) for rank in range(len(self.drivers))}

    # ------------------------------------------------------------------------------ errors

    def _stuck(self, reason: str) -> CommError:
        waits = "; ".join(f"rank {rank} {self._wish(rank)}" for rank in range(len(self.drivers)))
        return CommError(f"{reason} ({waits})", fix="let every rank make the same sequence of requests")

    def _wish(self, rank: int) -> str:
        request = self.requests[rank]
        if isinstance(request, Exchange):
            missing = [peer for peer in request.expect if not self.posted[peer, rank]]
            return f"waits for tag {request.tag} from {missing}" if missing else f"is answered (tag {request.tag})"
        if isinstance(request, Progress):
            return f"waits for a message, {len(self.in_flight[rank])} under way"
        if isinstance(request, AllReduce):
            return f"waits for all to reduce ({request.op} of {request.values.size})"
        return "has ended"
