"""The clients of ``bench soak``, a thread each: questions, jobs, graphs that come and go, nonsense, listeners.

Invariant: a client checks every answer; what it cannot explain it blames. A connection may break only while the
service is down on purpose.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.soak.check import check_query, check_run
from benchmarks.soak.reference import Reference
from benchmarks.soak.service import SoakService
from benchmarks.soak.tally import DONE, LOST, OVER, Accepted, Spec, Tally, fate_of
from benchmarks.soak.workload import Guest, Refused, Subject

_TIMEOUT_S = 90.0
_PATIENCE_S = 60.0  # with a service that says "later"
_LONGEST_JOB_S = 120.0
_TOGETHER = 4  # jobs of one client
_BINARY = {"Content-Type": "application/octet-stream"}
_LATER = (429, 503)
_PARSING = (
    threading.Lock()
)  # NumPy has heads parsed as Python: cpu_engine/graph/store/npy.py says why not by two threads at once


class Unreachable(Exception):
    """No answer, as expected: the service is being started again."""


@dataclass(eq=False)
class Soak:
    """What all clients share."""

    service: SoakService
    subjects: list[Subject]
    guests: list[Guest]
    refused: list[Refused]
    tally: Tally = field(default_factory=Tally)
    stop: threading.Event = field(default_factory=threading.Event)
    down: threading.Event = field(default_factory=threading.Event)  # on purpose
    fresh_start: int = 0

    def reference(self, name: str) -> Reference:
        known = [*(one.reference for one in self.subjects), *(one.reference for one in self.guests)]
        return next(one for one in known if one.name == name)


class Caller:
    """One connection that stays as long as it can."""

    def __init__(self, soak: Soak) -> None:
        self._soak = soak
        self._connection = self._new()

    def _new(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._soak.service.port, timeout=_TIMEOUT_S)

    def close(self) -> None:
        self._connection.close()

    def once(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """One request, one answer."""
        soak, starts = self._soak, self._soak.fresh_start
        soak.tally.count("requests")
        try:
            self._connection.request(method, path, body, headers or {})
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = self._new()
            if not soak.down.is_set() and soak.fresh_start == starts:
                soak.tally.blame("broken connections", f"{method} {path}: {error!r}")
            else:
                soak.tally.count("unreachable during the restart")
            while soak.down.is_set() and not soak.stop.is_set():
                time.sleep(0.05)
            raise Unreachable from error
        soak.tally.count(f"status {answer.status}")
        if answer.status == 500:
            soak.tally.blame("status 500", f"{method} {path}: {content[:300]!r}")
        return answer.status, content

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """The same; a client that is asked to come later does so."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            status, content = self.once(method, path, body, headers)
            if status not in _LATER or time.monotonic() > until:
                return status, content
            self._soak.tally.count("asked to come later")
            time.sleep(0.1)

    def json(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        status, answer = self.ask(method, path, content, {"Content-Type": "application/json"} if content else None)
        return status, json.loads(answer) if answer else None


def run_client(soak: Soak, turn: Callable[[Soak, Caller, random.Random], None], seed: int) -> None:
    """One thread: turns until the end. What a turn raises is a defect of service or benchmark, and is recorded."""
    caller, draw = Caller(soak), random.Random(seed)
    try:
        while not soak.stop.is_set():
            try:
                turn(soak, caller, draw)
            except Unreachable:
                continue
            except Exception as error:
                soak.tally.blame("clients that failed", f"{turn.__name__}: {error!r}")
                time.sleep(0.2)
    finally:
        caller.close()


# ---------------------------------------------------------------------------------------------- questions


def ask_questions(soak: Soak, caller: Caller, draw: random.Random) -> None:
    """A point query; one in 25 with a deadline that may be too short."""
    subject = draw.choice(soak.subjects)
    ask_one(soak, caller, draw, subject.name, subject.reference, subject.sources)
    time.sleep(draw.random() * 0.02)


def ask_one(
    soak: Soak, caller: Caller, draw: random.Random, graph: str, reference: Reference, sources: list[int]
) -> None:
    kind = draw.choice(("distance", "path", "neighbours", "levels"))
    asked = {"source": draw.choice(sources)}
    if kind == "neighbours":
        asked |= {"hops": draw.choice((0, 1, 1, 2, 9)), "offset": draw.choice((0, 0, 5)), "limit": 500}
    elif kind != "levels":
        asked["target"] = int(draw.choice(reference.ids))
    hurried = draw.random() < 0.04
    query = "&".join(f"{name}={value}" for name, value in asked.items()) + ("&deadline_s=0.002" if hurried else "")
    status, answer = caller.json("GET", f"/v1/graphs/{graph}/{kind}?{query}")
    if status == 200:
        soak.tally.count("questions")
        soak.tally.judge(f"{kind} {graph} {asked}", check_query(reference, kind, asked, answer))
    elif status == 504 and hurried:
        soak.tally.count("questions past their own deadline")
    else:
        soak.tally.blame("unexpected statuses", f"{kind} {graph} {asked}: {status} {answer}")


# --------------------------------------------------------------------------------------------------- jobs


def run_jobs(soak: Soak, caller: Caller, draw: random.Random) -> None:
    """A few jobs at once; some are cancelled, some have a deadline."""
    jobs = []
    for _ in range(draw.randint(1, _TOGETHER)):
        if (job := submit(soak, caller, draw, draw.choice(draw.choice(soak.subjects).specs))) is not None:
            jobs.append(job)
    for job in jobs:
        if draw.random() < 0.2:
            time.sleep(draw.random() ** 2)
            cancel(soak, caller, job)
    for job in jobs:
        follow(soak, caller, draw, job)


def submit(soak: Soak, caller: Caller, draw: random.Random, spec: Spec, *, plain: bool = False) -> Accepted | None:
    body = spec.body()
    hurried = not plain and draw.random() < 0.08
    if hurried:
        body["deadline_s"] = round(0.003 + 0.4 * draw.random() ** 2, 4)
    status, answer = caller.json("POST", "/v1/jobs", body)
    if status != 202:
        soak.tally.blame("unexpected statuses", f"submit {spec}: {status} {answer}")
        return None
    job = Accepted(answer["id"], spec, deadline=hurried)
    soak.tally.accept(job)
    return job


def cancel(soak: Soak, caller: Caller, job: Accepted) -> None:
    job.cancelled = True
    status, answer = caller.json("POST", f"/v1/jobs/{job.id}/cancel")
    if status not in (202, 409):  # 409: it was over already
        soak.tally.blame("unexpected statuses", f"cancel {job.spec}: {status} {answer}")
    soak.tally.count("cancels" if status == 202 else "cancels that came too late")


def follow(soak: Soak, caller: Caller, draw: random.Random, job: Accepted, limit_s: float = _LONGEST_JOB_S) -> None:
    """Wait for a job, through restarts, and check what it found."""
    until = time.monotonic() + limit_s
    while True:
        try:
            status, answer = caller.json("GET", f"/v1/jobs/{job.id}?wait_s=20")
            if status == 404:
                soak.tally.settle(job, LOST, "404")
                return
            if status == 200 and answer["state"] in OVER:
                fate = fate_of(job, answer)
                if fate == DONE and not _check_result(soak, caller, draw, job, answer):
                    continue
                soak.tally.settle(job, fate, str(answer["problem"]))
                return
        except Unreachable:
            until += 1.0
        if time.monotonic() > until:
            soak.tally.settle(job, LOST, f"not over after {limit_s:g} s")
            return


def _check_result(soak: Soak, caller: Caller, draw: random.Random, job: Accepted, answer: dict[str, Any]) -> bool:
    """Fetch and check a done job; whether that was possible."""
    spec, summary = job.spec, answer["summary"]
    reference = soak.reference(spec.graph)
    whole_only = spec.algorithm == "louvain" or spec.options.get("pagerank.definition") == "gap"
    by_pages = not whole_only and draw.random() < 0.3
    if summary["certified"] is not True:
        soak.tally.judge(f"{job.id} {spec}", "it is not certified")
    for run, source in enumerate(summary["sources"] or [None]):
        rows = slice(None)
        if by_pages:
            first = draw.randrange(reference.n)
            rows = slice(first, first + 700)
            status, page = caller.json("GET", f"/v1/jobs/{job.id}/result?run={run}&offset={first}&limit=700")
            if status == 200:
                arrays = {"vertex": np.array(page["vertex"]), **{k: np.array(v) for k, v in page["columns"].items()}}
        else:
            arrays = {}
            for name in ("vertex", *summary["columns"]):
                status, content = caller.ask("GET", f"/v1/jobs/{job.id}/result/{name}.npy?run={run}")
                if status != 200:
                    break
                with _PARSING:
                    arrays[name] = np.load(io.BytesIO(content), allow_pickle=False)
        if status != 200:
            soak.tally.blame("unexpected statuses", f"result of {job.id} {spec}: {status}")
            return True
        complaint = check_run(reference, spec.algorithm, spec.options, source, rows, arrays, summary["facts"])
        soak.tally.judge(f"{job.id} {spec} run {run}", complaint)
    soak.tally.count("jobs on the ranks", bool(summary.get("ranks")))
    soak.tally.count("jobs given again to new ranks", bool(summary.get("losses")))
    soak.tally.count("jobs with rounds of the worker", bool((summary.get("npu") or {}).get("rounds_merged")))
    return True


# ------------------------------------------------------------------------------------------------- graphs


def bring_graphs(soak: Soak, caller: Caller, draw: random.Random) -> None:
    """Upload or generate a graph, ask it, run a job, unload it; now and then a file that is none."""
    guest = draw.choice(soak.guests)
    name, reference = guest.reference.name, guest.reference
    unload(soak, caller, name, (204, 404))  # from before a restart
    if draw.random() < 0.2:
        _bring_nonsense(soak, caller, draw)
    if guest.upload is not None:
        path = f"/v1/graphs/upload?id={name}&directed=false"
        status, _ = caller.ask("POST", path, guest.upload, _BINARY)
    else:
        status, answer = caller.json("POST", "/v1/graphs", {"id": name, "generator": guest.generator})
    if status != 202:
        soak.tally.blame("unexpected statuses", f"bring {name}: {status}")
        return
    soak.tally.count("graphs brought")
    status, answer = caller.json("GET", f"/v1/graphs/{name}?wait_s=30")
    if status != 200 or answer["state"] != "ready":
        soak.tally.blame("unexpected statuses", f"{name} is not ready: {status} {answer}")
        return
    soak.tally.judge(name, "" if answer["vertices"] == reference.n else f"{answer['vertices']} vertices")
    sources = [int(one) for one in reference.ids[:: max(1, reference.n // 8)]]
    for _ in range(draw.randint(1, 8)):
        ask_one(soak, caller, draw, name, reference, sources)
    algorithm = draw.choice(("wcc", "kcore", "bfs", "cdlp", "lcc", "pagerank"))
    spec = Spec(name, algorithm, {}, sources[0] if algorithm == "bfs" else None)
    job = submit(soak, caller, draw, spec, plain=True)
    if job is not None:
        follow(soak, caller, draw, job)
    unload(soak, caller, name, (204,))


def unload(soak: Soak, caller: Caller, name: str, statuses: tuple[int, ...]) -> None:
    status, answer = caller.json("DELETE", f"/v1/graphs/{name}")
    if status not in statuses:
        soak.tally.blame("unexpected statuses", f"unload {name}: {status} {answer}")
    soak.tally.count("graphs unloaded", status == 204)


def _bring_nonsense(soak: Soak, caller: Caller, draw: random.Random) -> None:
    """An upload that is accepted, and then is no graph."""
    content = draw.choice((b"0 1\nx y\n", b"\x1f\x8b broken", bytes(range(256)), b"0 1 2 3 4 5 6\n"))
    status, _ = caller.ask("POST", "/v1/graphs/upload?id=nonsense", content, _BINARY)
    if status == 202:
        _, answer = caller.json("GET", "/v1/graphs/nonsense?wait_s=30")
        soak.tally.judge("nonsense", "" if answer["state"] == "failed" else f"it is {answer['state']}")
        unload(soak, caller, "nonsense", (204,))
    elif status != 422:
        soak.tally.blame("unexpected statuses", f"nonsense: {status}")


# ----------------------------------------------------------------------------------------- bad manners


def misbehave(soak: Soak, caller: Caller, draw: random.Random) -> None:
    """Requests that must be refused, connections that are no HTTP or end too early."""
    time.sleep(draw.random() * 0.2)
    if draw.random() < 0.2:
        _speak_badly(soak, draw)
        return
    wanted = draw.choice(soak.refused)
    status, content = caller.once(wanted.method, wanted.path, wanted.body, dict(wanted.headers))
    later = status == 503 and soak.down.is_set()
    if status in wanted.statuses:
        soak.tally.count("refused as expected")
        if b'"fix"' not in content:
            soak.tally.blame("refused without a fix", f"{wanted.method} {wanted.path}: {content[:200]!r}")
    elif not later:
        soak.tally.blame("unexpected statuses", f"{wanted}: {status} {content[:200]!r}")


def _speak_badly(soak: Soak, draw: random.Random) -> None:
    graph = draw.choice(soak.subjects)
    question = f"GET /v1/graphs/{graph.name}/levels?source={graph.sources[0]} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    upload = b"POST /v1/graphs/upload?id=half HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n0 1\n"
    said = draw.choice((b"\x16\x03\x01 hello\r\n\r\n", question[:40].encode(), question.encode() * 3, upload))
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", soak.service.port), timeout=5) as line:
        line.sendall(said)
        time.sleep(draw.random() * 0.02)
    soak.tally.count("connections left early or not HTTP")


def listen(soak: Soak, caller: Caller, draw: random.Random) -> None:
    """An event stream for a while; of everything, or of one job."""
    connection = http.client.HTTPConnection("127.0.0.1", soak.service.port, timeout=2)
    starts = soak.fresh_start
    until = time.monotonic() + draw.random() * 4
    open_jobs = soak.tally.open_jobs()
    path = "/v1/events" + (f"?job={draw.choice(open_jobs).id}" if open_jobs and draw.random() < 0.5 else "")
    events = 0
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        while answer.status == 200 and time.monotonic() < until and not soak.stop.is_set():
            line = answer.readline()
            if not line:
                break
            if line.startswith(b"data: "):
                json.loads(line[6:])
                events += 1
        if answer.status not in (200, 404, 429):
            soak.tally.blame("unexpected statuses", f"{path}: {answer.status}")
    except TimeoutError:
        pass  # silence
    except (OSError, http.client.HTTPException) as error:
        if not soak.down.is_set() and starts == soak.fresh_start:
            soak.tally.blame("broken connections", f"{path}: {error!r}")
        time.sleep(0.2)
    finally:
        connection.close()
    soak.tally.count("event streams")
    soak.tally.count("events heard", events)
