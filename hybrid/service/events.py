"""Live events: from any thread to every open stream, in order; a slow reader loses events and gets a gap event."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hybrid.results.trace import Event, Trace, plain_number
from hybrid.service.http.problems import Problem

Published = tuple[str, dict[str, Any]]  # kind and data
_BEAT_S = 15.0  # a comment this often keeps proxies from closing a silent stream
_MOST_WAITING = 2000
_MOST_EVENTS = 20000


class Listener:
    def __init__(self, job: str | None) -> None:
        self.job = job
        self.waiting: deque[Published] = deque(maxlen=_MOST_WAITING)
        self.lost = 0
        self.news = asyncio.Event()

    def take(self, kind: str, data: dict[str, Any]) -> None:
        if self.job is not None and data.get("job", data.get("id")) != self.job:
            return
        self.lost += len(self.waiting) == _MOST_WAITING  # the oldest goes
        self.waiting.append((kind, data))
        self.news.set()


class EventBus:
    """Publish from any thread; listeners live on the loop."""

    def __init__(self, max_listeners: int) -> None:
        self._max = max_listeners
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh: deque[Published] = deque()
        self._lock = threading.RLock()  # the computing thread may be interrupted while it publishes
        self._scheduled = self.closed = False
        self.listeners: list[Listener] = []

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        if self._loop is None or not self.listeners:
            return
        with self._lock:
            self._fresh.append((kind, data))
            if self._scheduled:
                return
            self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop has ended
            self._scheduled = False

    def close(self) -> None:
        """End every stream, and who waits for something; on the loop."""
        self.closed = True
        for listener in self.listeners:
            listener.news.set()

    def _deliver(self) -> None:
        with self._lock:
            self._scheduled = False
            fresh = list(self._fresh)
            self._fresh.clear()
        for kind, data in fresh:
            for listener in self.listeners:
                listener.take(kind, data)

    def listen(self, job: str | None) -> Listener:
        """A new listener, until it leaves; Problem 429 if there are too many."""
        if len(self.listeners) >= self._max:
            raise Problem(429, f"{len(self.listeners)} event streams are open", "close one", retry_after_s=5)
        listener = Listener(job)
        self.listeners.append(listener)
        return listener


class EventStream(StreamingResponse):
    """Server-sent events as a response: what is known now, then what happens.

    Counts from when it is made, so that no two requests take the last place, until the response ends.
    """

    def __init__(self, bus: EventBus, job: str | None, first: list[Published]) -> None:
        self._bus, self._listener = bus, bus.listen(job)
        super().__init__(self._pieces(first), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._bus.listeners.remove(self._listener)

    async def _pieces(self, first: list[Published]) -> AsyncIterator[bytes]:
        listener = self._listener
        for kind, data in first:
            yield as_sse(kind, data)
        while not self._bus.closed:
            listener.news.clear()  # first: what comes while something is sent is news
            while listener.waiting:  # at once: a reader that has left is noticed between two pieces
                pieces = [as_sse(*event) for event in listener.waiting]
                listener.waiting.clear()
                yield b"".join(pieces)
            if listener.lost:
                yield as_sse("gap", {"lost": listener.lost})
                listener.lost = 0
            try:
                await asyncio.wait_for(listener.news.wait(), _BEAT_S)
            except asyncio.TimeoutError:
                yield b": still here\n\n"


def as_sse(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data, default=plain_number)}\n\n".encode()


class LiveTrace(Trace):
    """A job's trace whose events are seen while they happen."""

    def __init__(self, bus: EventBus, job: str) -> None:
        super().__init__()
        self._bus, self._job = bus, job

    def add(self, actor: str, kind: str, t0: float, t1: float | None = None, **facts: Any) -> Event:
        event = super().add(actor, kind, t0, t1, **facts)
        if len(self.events) > _MOST_EVENTS:  # a job of very many steps keeps its latest
            del self.events[0]
        self._bus.publish("trace", {"job": self._job, **event})
        return event
