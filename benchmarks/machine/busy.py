"""``bench busy``: how much longer does work take while other programs keep the processors busy?

Two processes that only count are started once; they are stopped for the quiet half of a turn and go on for the other,
so both halves see the same machine. A search is timed whole: traversal, certificate, levels and parents in the user's
ids. Fair sharing alone makes work on all processors take twice as long beside as many busy processes.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks.contest.proof import Proofs, require_handed_over, require_search
from benchmarks.contest.workload import config_of, open_workload, set_threads
from benchmarks.output import Report
from benchmarks.plot import Bar, draw_bars
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.graph.graph import Graph
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.algorithms.bfs import make_engine
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.graphs.sources import Source
from hybrid.offload.traverse import traverse_alone
from hybrid.terminal import count, progress, seconds, table

ALLOWED = 3  # times the quiet time
ALGORITHMS = ("sssp", "wcc", "pagerank", "cdlp", "kcore", "triangles")
_COUNT = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(100_000):\n        pass\n"
_MOST = 400  # runs of one kind in half a turn

Run = Callable[[int], Callable[[], None]]  # from a start vertex: what it found, as a proof to be called off the clock


class BusyProcesses:
    """Processes that count as long as they may; they begin stopped."""

    def __init__(self, number: int) -> None:
        self._started = [
            subprocess.Popen([sys.executable, "-S", "-c", _COUNT], stdin=subprocess.DEVNULL) for _ in range(number)
        ]
        self.stop()

    def stop(self) -> None:
        for one in self._started:
            one.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        for one in self._started:
            one.send_signal(signal.SIGCONT)

    def end(self) -> None:
        for one in self._started:
            one.kill()
            one.wait()


@contextmanager
def busy_processes(number: int) -> Iterator[BusyProcesses]:
    others = BusyProcesses(number)
    try:
        yield others
    finally:
        others.end()


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    workload = open_workload(config_of(options))
    graph, roots = workload.graph, [root.internal for root in workload.roots]
    runs = all_runs(graph, options.only)
    for run in runs.values():  # compiles, and prepares what is made once per graph
        for root in roots[:2]:
            run(root)()
    times: dict[str, dict[str, list[float]]] = {name: {"quiet": [], "busy": []} for name in runs}
    with busy_processes(options.busy) as others, progress("measuring", "turn") as bar:
        for turn in range(options.rounds):
            for name, run in runs.items():
                others.stop()
                times[name]["quiet"] += measure(run, roots, options)
                others.go_on()
                times[name]["busy"] += measure(run, roots, options)
            bar(turn + 1, options.rounds)
    return report_of(graph, workload.as_dict()["name"], times, options)


def all_runs(graph: Graph, only: list[str]) -> dict[str, Run]:
    """What is timed, by name."""
    split, proofs = CoreSplit(graph), Proofs()
    engines: tuple[Literal["level", "async"], ...] = ("level", "async")
    runs: dict[str, Run] = {f"bfs {name}": partial(_search, graph, make_engine(name, split)) for name in engines}
    configs = {name: load_config(None, [f"algorithm={name}"]) for name in ALGORITHMS}
    runs |= {name: partial(_run, graph, algorithm_named(name), configs[name], proofs) for name in ALGORITHMS}
    return {name: run for name, run in runs.items() if not only or name in only or name.split()[0] in only}


def measure(run: Run, roots: list[int], options: argparse.Namespace) -> list[float]:
    """Seconds of each run for ``options.seconds``; each result is proven before the next run, off the clock."""
    times: list[float] = []
    until = time.perf_counter() + options.seconds
    while not times or (time.perf_counter() < until and len(times) < _MOST):
        root = roots[len(times) % len(roots)]
        began = time.perf_counter()
        prove = run(root)
        times.append(time.perf_counter() - began)
        prove()
        time.sleep(options.pause)
    return times


def _search(graph: Graph, engine: Traversal, root: int) -> Callable[[], None]:
    found = traverse_alone(engine, root)
    certify(graph, found.level, found.parent, root)
    level, parent = graph.to_user_search(found.level, found.parent)

    def prove() -> None:
        require_search(graph, found.level, found.parent, root, engine.name)
        require_handed_over(graph, found.level, found.parent, level, parent, engine.name)

    return prove


def _run(graph: Graph, algorithm: Algorithm, config: Config, proofs: Proofs, root: int) -> Callable[[], None]:
    task = Task(graph, config, Source(int(graph.user_id_of[root]), root))
    found = algorithm.run(task)
    return lambda: proofs.require(algorithm, task, found)


def report_of(graph: Graph, name: str, times: dict[str, dict[str, list[float]]], options: argparse.Namespace) -> Report:
    rows: list[dict[str, Any]] = []
    for what, halves in times.items():
        quiet, busy = (np.array(halves[half]) for half in ("quiet", "busy"))
        rows.append(
            {
                "what": what, "runs": (quiet.size, busy.size), "quiet_s": float(np.median(quiet)),
                "busy_s": float(np.median(busy)), "ratio": float(np.median(busy) / np.median(quiet)),
                "busy_mean_s": float(busy.mean()), "busy_slowest_s": float(busy.max()),
            }
        )  # fmt: skip
    worst = max(rows, key=lambda row: row["ratio"])
    verdict = (
        f"beside {options.busy} busy processes the median run takes at most {worst['ratio']:.2f} times as long "
        f"({worst['what']}); allowed: {ALLOWED}"
    )
    report = Report("busy", {"graph": name, "threads": options.threads, "rows": rows, "verdict": verdict})
    cells = [
        [row["what"], count(sum(row["runs"])), seconds(row["quiet_s"]), seconds(row["busy_s"]), f"{row['ratio']:.2f}x",
         seconds(row["busy_mean_s"]), seconds(row["busy_slowest_s"])]
        for row in rows
    ]  # fmt: skip
    head = ["what", "runs", "quiet", "busy", "busy / quiet", "busy, mean", "busy, slowest"]
    report.lines += [f"{name}: {count(graph.m)} arcs, {options.threads} threads; medians", "", table(head, cells)]
    report.lines += ["", verdict]
    bars = [Bar(row["what"], row["ratio"], f"{row['ratio']:.2f}x") for row in rows]
    report.charts.append(draw_bars("beside busy processes", "times the quiet median", bars))
    return report
