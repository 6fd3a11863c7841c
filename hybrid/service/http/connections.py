"""Connections: how many are open, how long a request may take to arrive, and how large its head may be.

All of it holds before a token is looked at. Invariant: fewer connections are open than the process may have files, and
a new one is always taken in: for it the one goes that has waited longest without a whole request. Where all are busy,
some more are taken in, on which only /healthz and /readyz are answered.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from functools import partial
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hybrid.config.schema import ServiceConfig
from hybrid.service.http.access import STRANGER, UPLOAD, answer_with, is_loopback
from hybrid.service.http.problems import Problem

MOST_HEADERS = 100
MOST_HEAD_BYTES = 32 << 10  # of a request line and headers together, or of anything else outside of a body
MOST_WAITING = 16  # requests of a connection behind the one that is answered: each takes memory
FRAMING = 8  # bytes around one byte of a body that comes in the smallest chunks
SLOWEST_UPLOAD = 16 << 10  # bytes per second
STALLED_S = 60.0  # a client that takes nothing of its answer for so long is given up
KEEP_ALIVE_S = 75
RESERVED = 32  # connections beyond the most, for those who ask whether the service lives
OTHER_FILES = 256  # that the process needs beside its connections, some bursts of accepted ones included
BURST = 32  # asyncio accepts so many in a turn; some turns pass until one is looked at and the one it replaces closed
FEWEST = 16
NEWEST = 8  # connections that may not have been read yet
SWEEP_S = 0.25
_ALWAYS_ANSWERED = (b"/healthz", b"/readyz")


class Connections:
    def __init__(self, settings: ServiceConfig, files: int | None = None) -> None:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if files is None else files
        self.most = max(FEWEST, min(settings.max_connections, files - OTHER_FILES - RESERVED))
        self.most_per_client = max(FEWEST, self.most // 2)  # not of this machine's own, which all have one address
        self.request_s = settings.request_s
        self.open: dict[Connection, None] = {}
        self._silent: dict[Connection, None] = {}  # without a whole request so far, the oldest first
        self._idle: dict[Connection, None] = {}  # between two requests, or of a stranger who is answered
        self._of_client: Counter[str] = Counter()
        self.turned_away = 0

    def admit(self, connection: Connection) -> bool:
        """Whether a new connection may stay; another may have to go for it."""
        client = connection.address
        one_too_many = self._of_client[client] >= self.most_per_client and not is_loopback(client)
        if one_too_many or (len(self.open) >= self.most and not self._make_room()):
            self.turned_away += 1
            return False
        self.open[connection] = self._silent[connection] = None
        self._of_client[client] += 1
        return True

    def _make_room(self) -> bool:
        """Whether there is a place for one more: an old silent or an idle connection's, a reserved one, a silent one's.

        The newest silent connections come last: the loop may accept several before it reads what the first has sent.
        """
        if len(self._silent) > NEWEST:
            return self._close_first(self._silent)
        return (
            self._close_first(self._idle)
            or len(self.open) < self.most + RESERVED
            or self._close_first(self._silent)
        )  # fmt: skip

    def _close_first(self, waiting: dict[Connection, None]) -> bool:
        for oldest in waiting:
            self.forget(oldest)
            oldest.transport.abort()
            self.turned_away += 1
            return True
        return False

    def forget(self, connection: Connection) -> None:
        if connection in self.open:
            del self.open[connection]
            self.begin(connection)
            self._of_client[connection.address] -= 1
            if not self._of_client[connection.address]:
                del self._of_client[connection.address]

    def begin(self, connection: Connection) -> None:
        """A whole request is there, or none will come: it waits for nothing."""
        self._silent.pop(connection, None)
        self._idle.pop(connection, None)

    def rest(self, connection: Connection) -> None:
        """A request was answered, or needs no token: a client that reads slowly keeps no other out."""
        if connection in self.open:
            self._idle[connection] = None

    @property
    def crowded(self) -> bool:
        """Whether more requests are under way than there should be connections."""
        return len(self.open) - len(self._silent) - len(self._idle) > self.most

    def gauges(self) -> dict[str, tuple[str, float]]:
        return {
            "connections": ("open connections", len(self.open)),
            "connections_turned_away_total": ("closed for others, or not taken in", self.turned_away),
        }

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            for connection in list(self.open):
                connection.look(loop.time())


class Connection(HttpToolsProtocol):
    """One connection. ``deadline``: by when the head, or the body, of the request that comes must be there."""

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(**settings)
        self._all, self._served = connections, self.app
        self.address = ""
        self.deadline: float | None = None
        self._outside = 0  # bytes that came since the last request and are in no body
        self._in_body = self._refused = False
        self._stalled: tuple[int, float] = (0, 0.0)  # bytes that wait to be sent, and since when there are as many

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.deadline = self.loop.time() + self._all.request_s
        if not self._all.admit(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self.deadline is None:
            self.deadline = self.loop.time() + self._all.request_s
        self._outside += len(data)
        super().data_received(data)
        if self._refused or self._outside > MOST_HEAD_BYTES:
            most = f"at most {MOST_HEADERS} headers, {MOST_HEAD_BYTES} bytes"
            self.refuse(Problem(431, "the head of the request is too large", most))

    def on_message_begin(self) -> None:
        if self._refused:
            raise ConnectionError("refused")  # ends the parsing of what came in the same piece
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._refused:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:  # a trailer: nothing here needs one
            return
        self._refused = self._refused or len(self.headers) >= MOST_HEADERS
        if not self._refused:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        head = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        self._refused = self._refused or head > MOST_HEAD_BYTES or len(self.pipeline) >= MOST_WAITING
        if self._refused:
            return
        self._outside, self._in_body = 0, True
        self.deadline = self.loop.time() + self._all.request_s
        self._all.begin(self)
        self.scope[STRANGER] = partial(self._all.rest, self)  # type: ignore[literal-required]
        always = self.url.partition(b"?")[0] in _ALWAYS_ANSWERED
        self.app = _refuse_crowd if self._all.crowded and not always else self._served
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._refused:
            return
        self._outside -= (1 + FRAMING) * len(body)
        if self.deadline is not None and self.scope["path"] == UPLOAD and not self.cycle.response_complete:
            self.deadline += len(body) / SLOWEST_UPLOAD
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._refused:
            return
        self._outside, self._in_body = 0, False
        self.deadline = self.loop.time() + KEEP_ALIVE_S if self.cycle.response_complete else None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body:  # answered before all of it was there: the rest is read for a while and thrown away
            self.deadline = self.loop.time() + self._all.request_s
        if self.cycle.response_complete:
            self._all.rest(self)

    def look(self, now: float) -> None:
        """Close the connection if its request is late, or its answer is not taken."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._stalled[0]:
            self._stalled = (unsent, now)
        elif unsent and now - self._stalled[1] > STALLED_S:
            self.transport.abort()
            return
        if self.deadline is None or now < self.deadline or self.transport.is_closing():
            return
        if self.flow.read_paused:  # the service is what is slow
            self.deadline = now + self._all.request_s
        elif self._outside == 0 and not self._in_body:
            self.transport.close()  # of which nothing has come
        else:
            self.refuse(Problem(408, "the request took too long to arrive", "send it at once (service.request_s)"))

    def send_400_response(self, msg: str) -> None:
        if not self._refused:
            self.refuse(Problem(400, "this is not HTTP/1.1 as it should be", "use a common client"))

    def refuse(self, problem: Problem) -> None:
        """Answer outside of any route, unless an answer is under way, and close."""
        self._refused = True
        self._all.rest(self)
        if self.transport.is_closing():
            return
        answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not answering and not self.pipeline:
            answer = answer_with(problem)
            lines = [b"%s: %s\r\n" % header for header in (*answer.raw_headers, (b"connection", b"close"))]
            self.transport.write(b"".join((STATUS_LINE[problem.status], *lines, b"\r\n", bytes(answer.body))))
        self.transport.close()


async def _refuse_crowd(scope: Scope, receive: Receive, send: Send) -> None:
    problem = Problem(503, "too many requests are under way", "ask again soon", retry_after_s=2)
    await answer_with(problem)(scope, receive, send)
