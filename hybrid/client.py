"""A small client of the service: standard library only, problems as exceptions, results as arrays.

>>> from hybrid.client import Client  # doctest: +SKIP
>>> tandem = Client("http://127.0.0.1:8080")  # doctest: +SKIP
>>> tandem.distance("kronecker-s16-ef16-seed1", 5, 77)  # doctest: +SKIP
3
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import select
import time
import weakref
from collections import deque
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection, RemoteDisconnected
from os import PathLike
from typing import Any, BinaryIO
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import numpy as np

from cpu_engine.graph.store.npy import read_npy

_OVER = ("done", "failed", "cancelled")
_PIECE_BYTES = 1 << 18  # of an upload


class ServiceError(Exception):
    """What the service refused: status, detail and fix."""

    def __init__(self, status: int, detail: str, fix: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{detail}. Fix: {fix}")
        self.status, self.detail, self.fix, self.retry_after_s = status, detail, fix, retry_after_s


class Client:
    """One service. A request that is refused for now (429, 503) is sent again, until ``patience_s`` is over.

    Connections stay open for the next request, until ``close`` or the end of the client; threads may share a client.
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8080", *, token: str | None = None, timeout_s: float = 90.0,
        patience_s: float = 30.0,
    ) -> None:  # fmt: skip
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"not an address of a service: {address!r}; it begins with http://")
        self.address = address.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._patience_s = patience_s
        self._connections = _Connections(self.address, timeout_s)
        weakref.finalize(self, self._connections.close)

    def close(self) -> None:
        """Close the connections that are kept; a later request opens new ones."""
        self._connections.close()

    # ---------------------------------------------------------------------------------------- graphs

    def graphs(self) -> list[dict[str, Any]]:
        return list(self._json("GET", "/v1/graphs")["graphs"])

    def graph(self, name: str) -> dict[str, Any]:
        return self._json("GET", f"/v1/graphs/{name}")

    def open(self, path: str, *, id: str | None = None, directed: bool | None = None) -> str:
        """Open a file below a data root of the service; the graph's id, when it is ready."""
        return self._ready(self._json("POST", "/v1/graphs", {"path": path, "id": id, "directed": directed}))

    def generate(self, kind: str = "kronecker", *, id: str | None = None, **options: int) -> str:
        """Have a graph generated; its id, when it is ready."""
        return self._ready(self._json("POST", "/v1/graphs", {"generator": {"kind": kind, **options}, "id": id}))

    def upload(self, file: str | PathLike[str], id: str, *, directed: bool | None = None) -> str:
        """Send a graph file; the graph's id, when it is ready."""
        query = {"id": id} | ({} if directed is None else {"directed": str(directed).lower()})
        with open(file, "rb") as content:
            answer = self._send("POST", "/v1/graphs/upload", query, content, "application/octet-stream")
        return self._ready(json.loads(answer))

    def unload(self, name: str) -> None:
        self._send("DELETE", f"/v1/graphs/{name}")

    # --------------------------------------------------------------------------------------- queries

    def distance(self, graph: str, source: int, target: int) -> int | None:
        """Edges between two vertices; None if there is no path."""
        found: int | None = self._ask(graph, "distance", source=source, target=target)["distance"]
        return found

    def path(self, graph: str, source: int, target: int) -> list[int] | None:
        found: list[int] | None = self._ask(graph, "path", source=source, target=target)["path"]
        return found

    def neighbours(self, graph: str, source: int, hops: int = 1, *, limit: int = 10000) -> dict[int, int]:
        """Vertex to distance, within so many edges, nearest first."""
        near = self._ask(graph, "neighbours", source=source, hops=hops, limit=limit)
        return dict(zip(near["vertex"], near["distance"], strict=True))

    def levels(self, graph: str, source: int) -> list[int]:
        """How many vertices are at distance 0, 1, 2, ..."""
        return list(self._ask(graph, "levels", source=source)["sizes"])

    # ------------------------------------------------------------------------------------------ jobs

    def submit(
        self, graph: str, algorithm: str, *, source: Any = None, deadline_s: float | None = None, **options: Any
    ) -> str:
        """Submit a job; its id. ``pagerank__iterations=20`` is the option pagerank.iterations."""
        body = {
            "graph": graph, "algorithm": algorithm, "source": source, "deadline_s": deadline_s,
            "options": {name.replace("__", "."): value for name, value in options.items()},
        }  # fmt: skip
        return str(self._json("POST", "/v1/jobs", body)["id"])

    def job(self, job: str) -> dict[str, Any]:
        return self._json("GET", f"/v1/jobs/{job}")

    def wait(self, job: str, timeout_s: float = 3600.0) -> dict[str, Any]:
        """The job when it is over; ServiceError if it failed or was cancelled, TimeoutError if it is not in time."""
        end = time.monotonic() + timeout_s
        while True:
            left = max(0.0, min(30.0, end - time.monotonic()))
            found = self._json("GET", f"/v1/jobs/{job}", query={"wait_s": f"{left:.3f}"})
            state = found["state"]
            if state in _OVER:
                break
            if not left:
                raise TimeoutError(f"job {job} is {state} after {timeout_s:g} s")
        if state != "done":
            problem = {"detail": f"job {job} is {state}", "fix": "submit it again", **(found["problem"] or {})}
            raise ServiceError(409, problem["detail"], problem["fix"])
        return found

    def cancel(self, job: str) -> None:
        self._send("POST", f"/v1/jobs/{job}/cancel")

    def result(self, job: str, run: int = 0) -> dict[str, np.ndarray]:
        """``vertex`` and the arrays of a done job."""
        found = {}
        for name in ("vertex", *self.job(job)["summary"]["columns"]):
            content = self._send("GET", f"/v1/jobs/{job}/result/{name}.npy", {"run": run})
            found[name] = read_npy(io.BytesIO(content))
        return found

    def events(self, job: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """(kind, data) of what happens, as it happens."""
        with self._answer("GET", "/v1/events", {} if job is None else {"job": job}) as stream:
            kind = ""
            for line in stream:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    def ready(self) -> bool:
        """Whether every graph of the service can be asked."""
        try:
            return bool(json.loads(self._once("GET", "/readyz"))["ready"])
        except (ServiceError, OSError):
            return False

    # ------------------------------------------------------------------------------------------ wire

    def _ready(self, graph: dict[str, Any]) -> str:
        name = graph["id"]
        while graph["state"] in ("waiting", "loading"):
            graph = self._json("GET", f"/v1/graphs/{name}", query={"wait_s": 30})
        if graph["state"] != "ready":
            raise ServiceError(422, graph["problem"]["detail"], graph["problem"]["fix"])
        return str(name)

    def _ask(self, graph: str, what: str, **query: int) -> dict[str, Any]:
        return self._json("GET", f"/v1/graphs/{graph}/{what}", query=query)

    def _json(self, method: str, path: str, body: Any = None, query: Any = None) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        found: dict[str, Any] = json.loads(self._send(method, path, query, content, "application/json"))
        return found

    def _send(self, *request: Any) -> bytes:
        end = time.monotonic() + self._patience_s
        while True:
            try:
                return self._once(*request)
            except ServiceError as error:
                if error.retry_after_s is None or time.monotonic() + error.retry_after_s > end:
                    raise
                time.sleep(error.retry_after_s)

    def _once(self, *request: Any) -> bytes:
        with self._answer(*request) as answer:
            return answer.read()

    @contextlib.contextmanager
    def _answer(
        self, method: str, path: str, query: dict[str, Any] | None = None, content: bytes | BinaryIO | None = None,
        kind: str = "",
    ) -> Iterator[HTTPResponse]:  # fmt: skip
        headers = self._headers | ({"Content-Type": kind} if content is not None else {})
        if content is not None and not isinstance(content, bytes):
            content.seek(0)
            headers["Content-Length"] = str(os.fstat(content.fileno()).st_size)
        target = path + (f"?{urlencode(query)}" if query else "")
        connection, answer = self._connections.request(method, target, content, headers)
        try:
            if answer.status >= 300:
                raise _refusal(answer)
            yield answer
        finally:
            self._connections.keep(connection, answer)


class _Connections:
    """Connections to one service, directly or through the proxy that the environment names."""

    def __init__(self, address: str, timeout_s: float) -> None:
        parts = urlsplit(address)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._timeout_s, self._prefix = timeout_s, parts.path
        self._idle: deque[HTTPConnection] = deque()
        self._proxy, self._to_proxy = None, {}
        proxy = getproxies().get(parts.scheme)
        if proxy and not proxy_bypass(parts.netloc):
            self._proxy = urlsplit(proxy if "//" in proxy else f"//{proxy}")
            if self._proxy.username:
                who = f"{self._proxy.username}:{self._proxy.password or ''}"
                self._to_proxy = {"Proxy-Authorization": f"Basic {base64.b64encode(who.encode()).decode()}"}
            self._prefix = parts.path if self._secure else address

    def request(
        self, method: str, target: str, content: bytes | BinaryIO | None, headers: dict[str, str]
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """Send a request; the connection goes back to ``keep``."""
        headers = headers if self._secure else headers | self._to_proxy
        while True:
            connection, used = self._take()
            try:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # an answer may have come early
                    connection.request(method, self._prefix + target, content, headers)
                return connection, connection.getresponse()
            except RemoteDisconnected:
                connection.close()
                if not (used and method == "GET"):  # else the service closed it when we were about to ask again
                    raise
            except BaseException:
                connection.close()
                raise

    def keep(self, connection: HTTPConnection, answer: HTTPResponse) -> None:
        """Take a connection back; one whose answer was not read to its end is closed."""
        if answer.isclosed() and not answer.will_close:
            self._idle.append(connection)
        else:
            answer.close()
            connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> tuple[HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with contextlib.suppress(IndexError):
            while connection := self._idle.pop():
                waiting = select.poll()
                waiting.register(connection.sock, select.POLLIN)
                if not waiting.poll(0):
                    return connection, True
                connection.close()  # what came in between two requests is the end: the service has closed it
        host, port = (self._host, self._port) if self._proxy is None else (self._proxy.hostname or "", self._proxy.port)
        new = HTTPSConnection if self._secure else HTTPConnection
        connection = new(host, port, timeout=self._timeout_s, blocksize=_PIECE_BYTES)
        if self._proxy is not None and self._secure:
            connection.set_tunnel(self._host, self._port, self._to_proxy)
        return connection, False


def _refusal(answer: HTTPResponse) -> ServiceError:
    if answer.status < 400:
        return ServiceError(answer.status, "the service is elsewhere", f"ask at {answer.headers.get('Location')}")
    try:
        problem = json.loads(answer.read())
    except ValueError:
        problem = {}
    detail, fix = problem.get("detail", answer.reason), problem.get("fix", "see the service's log")
    later = answer.headers.get("Retry-After")
    return ServiceError(answer.status, detail, fix, None if later is None else float(later))
