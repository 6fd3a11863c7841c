"""A small client of the service: standard library only, problems as exceptions, results as arrays.

>>> from hybrid.client import Client  # doctest: +SKIP
>>> tandem = Client("http://127.0.0.1:8080")  # doctest: +SKIP
>>> tandem.distance("kronecker-s16-ef16-seed1", 5, 77)  # doctest: +SKIP
3
"""

from __future__ import annotations

import io
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.graph.store.npy import read_npy

_OVER = ("done", "failed", "cancelled")


class ServiceError(Exception):
    """What the service refused: status, detail and fix."""

    def __init__(self, status: int, detail: str, fix: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{detail}. Fix: {fix}")
        self.status, self.detail, self.fix, self.retry_after_s = status, detail, fix, retry_after_s


class Client:
    """One service. A request that is told to come later does so, until ``patience_s`` is over."""

    def __init__(
        self, address: str = "http://127.0.0.1:8080", *, token: str | None = None, timeout_s: float = 90.0,
        patience_s: float = 30.0,
    ) -> None:  # fmt: skip
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"not an address of a service: {address!r}; it begins with http://")
        self.address = address.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._timeout_s, self._patience_s = timeout_s, patience_s

    # ---------------------------------------------------------------------------------------- graphs

    def graphs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._json("GET", "/v1/graphs")["graphs"]
        return found

    def graph(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._json("GET", f"/v1/graphs/{name}")
        return found

    def open(self, path: str, *, id: str | None = None, directed: bool | None = None) -> str:
        """Open a file below a data root of the service; the graph's id, when it is ready."""
        return self._ready(self._json("POST", "/v1/graphs", {"path": path, "id": id, "directed": directed}))

    def generate(self, kind: str = "kronecker", *, id: str | None = None, **options: int) -> str:
        """Have a graph generated; its id, when it is ready."""
        return self._ready(self._json("POST", "/v1/graphs", {"generator": {"kind": kind, **options}, "id": id}))

    def upload(self, file: str | PathLike[str], id: str, *, directed: bool | None = None) -> str:
        """Send a graph file; the graph's id, when it is ready."""
        query = {"id": id} | ({} if directed is None else {"directed": str(directed).lower()})
        content = Path(file).read_bytes()
        return self._ready(
            json.loads(self._send("POST", "/v1/graphs/upload", query, content, "application/octet-stream"))
        )

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
        told = self._ask(graph, "neighbours", source=source, hops=hops, limit=limit)
        return dict(zip(told["vertex"], told["distance"], strict=True))

    def levels(self, graph: str, source: int) -> list[int]:
        """How many vertices are at distance 0, 1, 2, ..."""
        found: list[int] = self._ask(graph, "levels", source=source)["sizes"]
        return found

    # ------------------------------------------------------------------------------------------ jobs

    def submit(
        self, graph: str, algorithm: str, *, source: Any = None, deadline_s: float | None = None, **options: Any
    ) -> str:
        """Submit a job; its id. ``pagerank__iterations=20`` is the option pagerank.iterations."""
        body = {
            "graph": graph, "algorithm": algorithm, "source": source, "deadline_s": deadline_s,
            "options": {name.replace("__", "."): value for name, value in options.items()},
        }  # fmt: skip
        job: str = self._json("POST", "/v1/jobs", body)["id"]
        return job

    def job(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self._json("GET", f"/v1/jobs/{job}")
        return found

    def wait(self, job: str, timeout_s: float = 3600.0) -> dict[str, Any]:
        """The job when it is over; ServiceError if it failed or was cancelled, TimeoutError if it is not in time."""
        end = time.monotonic() + timeout_s
        while True:
            left = max(0.0, min(30.0, end - time.monotonic()))
            told = json.loads(self._send("GET", f"/v1/jobs/{job}", {"wait_s": f"{left:.3f}"}))
            if told["state"] in _OVER:
                break
            if not left:
                raise TimeoutError(f"job {job} is {told['state']} after {timeout_s:g} s")
        if told["state"] != "done":
            problem = told["problem"] or {}
            raise ServiceError(
                409, problem.get("detail", f"job {job} is {told['state']}"), problem.get("fix", "submit it again")
            )
        found: dict[str, Any] = told
        return found

    def cancel(self, job: str) -> None:
        self._send("POST", f"/v1/jobs/{job}/cancel")

    def result(self, job: str, run: int = 0) -> dict[str, np.ndarray]:
        """``vertex`` and the arrays of a done job."""
        names = ["vertex", *self.job(job)["summary"]["columns"]]
        return {name: self._array(job, name, run) for name in names}

    def events(self, job: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """(kind, data) of what happens, as it happens."""
        request = self._request("GET", "/v1/events", {} if job is None else {"job": job})
        with urllib.request.urlopen(request, timeout=self._timeout_s) as stream:  # noqa: S310 - __init__ takes http and https alone
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

    def _array(self, job: str, name: str, run: int) -> np.ndarray:
        content = self._send("GET", f"/v1/jobs/{job}/result/{name}.npy", {"run": str(run)})
        return read_npy(io.BytesIO(content))

    def _ready(self, told: dict[str, Any]) -> str:
        name = told["id"]
        while told["state"] in ("waiting", "loading"):
            told = json.loads(self._send("GET", f"/v1/graphs/{name}", {"wait_s": "30"}))
        if told["state"] != "ready":
            raise ServiceError(422, told["problem"]["detail"], told["problem"]["fix"])
        return str(name)

    def _ask(self, graph: str, what: str, **query: int) -> Any:
        return json.loads(self._send("GET", f"/v1/graphs/{graph}/{what}", {k: str(v) for k, v in query.items()}))

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        return json.loads(self._send(method, path, {}, content, "application/json"))

    def _send(
        self, method: str, path: str, query: dict[str, str] | None = None, content: bytes | None = None, kind: str = ""
    ) -> bytes:
        end = time.monotonic() + self._patience_s
        while True:
            try:
                return self._once(method, path, query, content, kind)
            except ServiceError as error:
                if error.retry_after_s is None or time.monotonic() + error.retry_after_s > end:
                    raise
                time.sleep(error.retry_after_s)

    def _once(
        self, method: str, path: str, query: dict[str, str] | None = None, content: bytes | None = None, kind: str = ""
    ) -> bytes:
        request = self._request(method, path, query or {}, content, kind)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:  # noqa: S310 - __init__ takes http and https alone
                found: bytes = answer.read()
                return found
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            try:
                problem = json.loads(text)
            except ValueError:
                problem = {}
            later = error.headers.get("Retry-After")
            raise ServiceError(
                error.code, problem.get("detail", error.reason), problem.get("fix", "see the service's log"),
                None if later is None else float(later),
            ) from None  # fmt: skip

    def _request(
        self, method: str, path: str, query: dict[str, str], content: bytes | None = None, kind: str = ""
    ) -> urllib.request.Request:
        url = self.address + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        headers = {**self._headers, **({"Content-Type": kind} if content is not None else {})}
        return urllib.request.Request(url, data=content, method=method, headers=headers)  # noqa: S310 - __init__ takes http and https alone
