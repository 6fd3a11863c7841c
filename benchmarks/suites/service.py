"""``bench service``: the resident service - start to ready, one client's overhead, many clients in a closed loop.

The service is a process of its own, the clients are another; both share the machine, over loopback. Every answer is
certified, with batching and without, and compared with what a search in this process says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.rounds import FIX
from benchmarks.contest.workload import config_of, set_threads
from benchmarks.output import Report
from exchange.isolated import isolated_command
from hybrid.errors import NotCertified
from hybrid.graphs.opening import open_graph
from hybrid.results.trace import Trace
from hybrid.service.queue.searches import Searcher, level_sizes
from hybrid.terminal import note, seconds, table

_START_S = 60.0
_ASKED_ALONE = 200
_DIFFERENT = 256  # sources that clients ask about, in turns


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    opened = open_graph(config_of(options).graph, Trace())
    graph, name = opened.graph, opened.name
    drawn = np.random.default_rng(1).permutation(graph.n)[:_DIFFERENT]
    ids = [int(v) for v in graph.user_ids[graph.user_position[drawn]]]
    searcher = Searcher(graph)
    expected = {}
    for first in range(0, drawn.size, 64):
        some = np.sort(drawn[first : first + 64])
        for root, counts in zip(some, level_sizes(searcher.together(some)), strict=True):
            expected[int(graph.user_ids[graph.user_position[root]])] = np.trim_zeros(counts[1:], "b").tolist()
    near = searcher.alone(int(drawn[0]))[drawn].tolist()
    rows: list[dict[str, Any]] = []
    for batching in (True, False):
        with _service(options, batching=batching) as (port, ready_s):
            row: dict[str, Any] = {"batching": batching, "ready_seconds": ready_s}
            if batching:
                row |= _ask_alone(port, name, ids, near)
            row |= asyncio.run(_closed_loop(port, name, ids, expected, options.clients, options.seconds))
            row["resident_bytes"] = _metric(port, "tandem_resident_memory_bytes")
            rows.append(row)
        if row["wrong"]:
            raise NotCertified(f"{row['wrong']} of {row['answers']} timed answers are wrong", fix=FIX)
        note(f"batching {'on' if batching else 'off'}: {row['per_second']:.0f} answers a second")
    gain = rows[0]["per_second"] / max(1e-9, rows[1]["per_second"])
    report = Report("service", {"graph": name, "clients": options.clients, "ways": rows, "times_as_fast": gain})
    cells = [
        [
            "on" if row["batching"] else "off", f"{row['per_second']:.0f}", seconds(row["p50"]), seconds(row["p99"]),
            str(row["errors"]), str(row["wrong"]), f"{row['mean_batch']:.1f}",
        ]
        for row in rows
    ]  # fmt: skip
    batched = rows[0]
    report.lines += [
        f"{name}: {options.clients} clients in a closed loop, {options.seconds:g} s each way; every answer certified",
        "",
        table(["batching", "answers/s", "median", "p99", "errors", "wrong", "queries/pass"], cells),
        "",
        f"batching answers {gain:.1f}x as many",
        f"start to ready {seconds(batched['ready_seconds'])} (without {seconds(rows[1]['ready_seconds'])})",
        f"one client, distance: {seconds(batched['alone_mean'])} (median {seconds(batched['alone_median'])}, p99 "
        f"{seconds(batched['alone_p99'])}); of it the engine {seconds(batched['engine_mean'])}, so that HTTP and "
        f"scheduling take {seconds(batched['overhead'])}",
    ]
    return report


@contextmanager
def _service(options: argparse.Namespace, *, batching: bool) -> Iterator[tuple[int, float]]:
    """A service with the graph in memory; its port, and seconds from start to ready."""
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
        graph = config_of(options).graph
        sets = [f"service.journal_dir={folder}/journal", f"service.batching={str(batching).lower()}"]
        if graph.path is not None:
            sets.append(f"graph.path={graph.path}")
        keys = ("kind", "scale", "edge_factor", "seed", "rows", "cols")
        sets += [f"graph.generator.{key}={getattr(graph.generator, key)}" for key in keys]
        command = [*isolated_command("hybrid"), "serve", "--port", "0"]
        for one in [*sets, f"threads={options.threads}"]:
            command += ["--set", one]
        began = time.perf_counter()
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ.copy())
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            while not _ready(port):
                if process.poll() is not None or time.perf_counter() - began > _START_S:
                    raise RuntimeError((Path(folder) / "log").read_text())
                time.sleep(0.01)
            yield port, time.perf_counter() - began
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        content: bytes = answer.read()
        return content


def _ready(port: int) -> bool:
    try:
        return bool(json.loads(_get(port, "/readyz"))["ready"])
    except OSError:
        return False


def _metric(port: int, name: str) -> float:
    for line in _get(port, "/metrics").decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    return 0.0


def _ask_alone(port: int, graph: str, ids: list[int], near: list[int]) -> dict[str, Any]:
    """One client, one question after the other; the engine's own time is what the service measured of the same."""

    async def ask(times: int) -> list[float]:
        client = await _Client.connect(port)
        spent = []
        for i in range(times):
            path = f"/v1/graphs/{graph}/distance?source={ids[0]}&target={ids[i % len(ids)]}"
            began = time.perf_counter()
            status, body = await client.get(path)
            spent.append(time.perf_counter() - began)
            assert status == 200, status
            expected = near[i % len(ids)]
            if json.loads(body)["distance"] != (None if expected < 0 else expected):
                raise NotCertified(f"a timed answer is wrong: {path}", fix=FIX)
        client.close()
        return spent

    asyncio.run(ask(20))
    before = _metric(port, "tandem_batch_seconds_sum")
    spent = np.array(asyncio.run(ask(_ASKED_ALONE)))
    engine = (_metric(port, "tandem_batch_seconds_sum") - before) / _ASKED_ALONE
    return {
        "alone_mean": float(spent.mean()), "alone_median": float(np.median(spent)),
        "alone_p99": float(np.quantile(spent, 0.99)), "engine_mean": engine, "overhead": float(spent.mean()) - engine,
    }  # fmt: skip


class _Client:
    """One connection that stays; just enough HTTP to leave the machine to the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @staticmethod
    async def connect(port: int) -> _Client:
        return _Client(*await asyncio.open_connection("127.0.0.1", port))

    async def get(self, path: str) -> tuple[int, bytes]:
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at : head.index(b"\r\n", at)])
        return status, await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


async def _closed_loop(
    port: int, graph: str, ids: list[int], expected: dict[int, list[int]], clients: int, duration_s: float
) -> dict[str, Any]:
    spent: list[float] = []
    answers: list[bytes] = []
    errors = 0
    end = 0.0

    async def ask_on(number: int) -> None:
        nonlocal errors
        client = await _Client.connect(port)
        at = number * 7
        while (began := time.perf_counter()) < end:
            status, body = await client.get(f"/v1/graphs/{graph}/levels?source={ids[at % len(ids)]}")
            spent.append(time.perf_counter() - began)
            answers.append(body)
            errors += status != 200
            at += 1
        client.close()

    end = time.perf_counter() + 1.0  # a second to get going
    await asyncio.gather(*(ask_on(i) for i in range(clients)))
    spent.clear()
    answers.clear()
    passes = _metric(port, "tandem_batch_queries_count")
    began = time.perf_counter()
    end = began + duration_s
    await asyncio.gather(*(ask_on(i) for i in range(clients)))
    took = time.perf_counter() - began
    passes = _metric(port, "tandem_batch_queries_count") - passes
    answered = [json.loads(body) for body in answers]
    wrong = sum(one.get("sizes") != expected.get(one.get("source", -1)) for one in answered)
    return {
        "answers": len(spent), "per_second": len(spent) / took, "p50": float(np.quantile(spent, 0.5)),
        "p99": float(np.quantile(spent, 0.99)), "errors": errors, "wrong": wrong,
        "mean_batch": len(spent) / max(1.0, passes),
    }  # fmt: skip
