"""``bench start``: does a worker that is starting delay the CPU engine?

The real thing: a worker process that loads MindSpore while searches go on, as in a job with ``npu.mode: race``.
Searches alone, then beside a starting worker, several times in turns; waiting for the CPU shows in the mean and in the
slowest. On a machine whose cores the engine keeps busy, the worker takes longer to start instead.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.proof import require_search
from benchmarks.contest.workload import set_threads
from benchmarks.output import Report
from benchmarks.plot import Bar, draw_bars
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.bfs import make_engine
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.graphs.opening import open_graph
from hybrid.job.warm_up import warm_up
from hybrid.offload.traverse import Traversed, traverse_alone, traverse_together
from hybrid.planning.plan import make_plan
from hybrid.results.trace import Trace
from hybrid.terminal import count, progress, seconds, table
from hybrid.worker.solver import WorkerSolver

ALONE, BESIDE = "alone", "beside a starting worker"
_ROOT_SEED = 1


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    warm_up(options.engine)
    config = load_config(
        None,
        options={"npu.mode": "race", "npu.device": options.device, "engine": options.engine,
                 "graph.generator.scale": options.scale},
    )  # fmt: skip
    graph = open_graph(config.graph, Trace()).graph
    roots = np.random.default_rng(_ROOT_SEED).permutation(graph.n).tolist()
    times: dict[str, list[np.ndarray]] = {ALONE: [], BESIDE: []}
    started: list[float | None] = []
    with progress("measuring", "turn") as bar:
        for turn in range(options.repeats):
            bar(turn, options.repeats)
            times[ALONE].append(search_alone(graph, config, roots, options.seconds))
            beside, start_s = search_beside(graph, config, roots, options.seconds)
            times[BESIDE].append(beside)
            started.append(start_s)
    return report_of(graph, times, started, options)


def search_alone(graph: Graph, config: Config, roots: list[int], for_s: float) -> np.ndarray:
    engine = make_engine(config.engine, CoreSplit(graph), config.bfs.strategy)
    return _search(graph, lambda root: traverse_alone(engine, root, Trace()), roots, for_s, lambda: True)


def search_beside(graph: Graph, config: Config, roots: list[int], for_s: float) -> tuple[np.ndarray, float | None]:
    """Search while a worker starts, until it is there; the seconds that took, None if it was not there in time."""
    plan = make_plan(graph, config)
    engine = make_engine(config.engine, plan.split, config.bfs.strategy)
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as scratch:
        solver = WorkerSolver(config, Path(scratch) / "worker.log", Trace())
        try:
            solver.start()
            solver.publish_edges(graph.out_offsets, graph.out_targets, plan.core_size)
            times = _search(
                graph, lambda root: traverse_together(engine, root, "race", solver, Trace()),
                roots, for_s, lambda: solver.starting,
            )  # fmt: skip
            return times, solver.start_seconds
        finally:
            solver.close()


def _search(
    graph: Graph, search: Callable[[int], Traversed], roots: list[int], for_s: float, goes_on: Callable[[], bool]
) -> np.ndarray:
    """The seconds of each search; what it found is proven before the next one begins, off the clock."""
    search(roots[0])  # the engine's arrays are touched for the first time
    times: list[float] = []
    until = time.perf_counter() + for_s
    while goes_on() and time.perf_counter() < until:
        root = roots[len(times) % len(roots)]
        began = time.perf_counter()
        found = search(root)
        times.append(time.perf_counter() - began)
        require_search(graph, found.level, found.parent, root, "start")
    return np.array(times)


def report_of(
    graph: Graph, times: dict[str, list[np.ndarray]], started: list[float | None], options: argparse.Namespace
) -> Report:
    rows: list[dict[str, Any]] = []
    for way, turns in times.items():
        for turn, one in enumerate(turns):
            rows.append({"way": way, "turn": turn, "searches": one.size, **_spread(one)})
    together = {way: _spread(np.concatenate(turns)) for way, turns in times.items()}
    ratio = together[BESIDE]["mean_s"] / together[ALONE]["mean_s"]
    there = [one for one in started if one is not None]
    verdict = (
        f"beside a starting worker a search takes {ratio:.2f} times as long in the mean, "
        f"{together[BESIDE]['median_s'] / together[ALONE]['median_s']:.2f} times in the median; the worker was ready "
        f"in {len(there)} of {len(started)} turns"
        + (f", after {seconds(min(there))} to {seconds(max(there))}" if there else "")
    )
    data = {"threads": options.threads, "scale": options.scale, "rows": rows, "start_seconds": started}
    report = Report("start", {**data, "mean_ratio": ratio, "verdict": verdict})
    head = ["searches", "turn", "number", "median", "95 %", "99 %", "slowest", "mean"]
    names = ("median_s", "p95_s", "p99_s", "slowest_s", "mean_s")
    cells = [
        [row["way"], str(row["turn"] + 1), count(row["searches"]), *(seconds(row[n]) for n in names)] for row in rows
    ]
    report.lines += [f"{count(graph.m)} edges, engine {options.engine}, {options.threads} threads", ""]
    report.lines += [table(head, cells), "", verdict]
    bars = [Bar(way, one["mean_s"], seconds(one["mean_s"])) for way, one in together.items()]
    report.charts.append(draw_bars("a search while a worker starts", "mean time", bars))
    return report


def _spread(times: np.ndarray) -> dict[str, float]:
    if not times.size:
        return dict.fromkeys(("median_s", "p95_s", "p99_s", "slowest_s", "mean_s"), 0.0)
    median, p95, p99 = np.quantile(times, [0.5, 0.95, 0.99])
    return {
        "median_s": float(median), "p95_s": float(p95), "p99_s": float(p99), "slowest_s": float(times.max()),
        "mean_s": float(times.mean()),
    }  # fmt: skip
