"""Measures this machine: the worker's device, rounds through the exchange directory, the CPU engines' edge rates.

Everything is the real thing - a worker process with MindSpore, files, our engines on a generated graph. What counts is
the best of the repeats (over several roots, the median of each one's best): other load only ever makes a figure
worse. Invariant: nothing stays behind but built graphs in the cache; a worker that fails is an error, never a number.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TypeVar

import numba
import numpy as np

from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.many.engine import ManyBfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from exchange.isolated import isolated_command
from hybrid import __version__
from hybrid.algorithms.bfs import make_engine
from hybrid.config.schema import Config, GeneratorConfig, GraphConfig
from hybrid.devices.model import Sample
from hybrid.devices.profiles import parse_device
from hybrid.errors import EnvironmentProblem
from hybrid.graphs.opening import open_graph
from hybrid.job.warm_up import warm_up
from hybrid.offload.traverse import traverse_alone
from hybrid.planning.calibration import VERSION, Calibration, CpuRates, DeviceRates, RoundTime, SearchTime
from hybrid.planning.plan import count_core_edges
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import Answer
from hybrid.worker.solver import WorkerSolver

SCALES = (16, 18)  # one that fits into a cache and one that does not
CORES = (256, 1024, 4096)
FORMATS = ("text", "binary")
BATCH = 64  # roots at once
LEVELS = 512  # of the path on which an empty level is measured
_ROOTS, _REPEATS, _ROUNDS = 5, 12, 15
_THICK_EDGES = 4096  # steps with fewer edges show the cost of a level, not of an edge
_DEVICE_TIMEOUT_S = 120
T = TypeVar("T")
_FIX = "run `python run.py doctor`, which starts a worker and names what is missing"


def measure(config: Config, report: Callable[[str], None] = lambda text: None) -> Calibration:
    """All of it; ``report`` is called with what is measured next."""
    began = time.perf_counter()
    cpus = len(os.sched_getaffinity(0))
    busy = os.getloadavg()[0] / cpus
    if parse_device(config.npu.device) is not None:
        config = _with_npu(config, device="auto")
    report("the worker's device")
    device = measure_device(config)
    report("building the graphs")
    graphs = {scale: _generated(config, kind="kronecker", scale=scale) for scale in SCALES}
    report("rounds through the exchange directory")
    rounds = measure_rounds(config, graphs[max(SCALES)])
    report("the CPU engines")
    cpu = measure_cpu(graphs, _generated(config, kind="grid", rows=1, cols=LEVELS))
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    host, spent = socket.gethostname(), time.perf_counter() - began
    return Calibration(VERSION, __version__, host, cpus, busy, when, spent, device, rounds, cpu)


def measure_device(config: Config) -> DeviceRates:
    """Launches and products, by a worker process that serves nothing else."""
    command = [*isolated_command("npu_engine"), "--calibrate", "--device", config.npu.device]
    command += ["--device-id", str(config.npu.device_id), "--threads", str(config.npu.threads)]
    command += ["--parent", str(os.getpid())]
    with tempfile.TemporaryDirectory(prefix="tandem-calibrate-") as scratch:  # a killed worker leaves its own in it
        environment = {**os.environ, "TMPDIR": scratch}
        try:
            done = subprocess.run(  # noqa: S603 - our own module
                command, capture_output=True, text=True, timeout=_DEVICE_TIMEOUT_S, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            raise EnvironmentProblem(f"the worker did not measure within {_DEVICE_TIMEOUT_S} s", fix=_FIX) from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EnvironmentProblem(f"the worker could not measure: {said.partition('error: ')[2] or said}", fix=_FIX)
    found = json.loads(lines[-1])
    same = {name: found[name] for name in ("device", "why", "mindspore", "dtype", "cell_bytes", "memory_bytes")}
    products = tuple(Sample(one["k"], one["batch"], one["seconds"]) for one in found["products"])
    launch_s = found["launch"]["seconds"]
    return DeviceRates(**same, threads=config.npu.threads, launch_s=launch_s, products=products)


# ----------------------------------------------------------------------------------------------------- rounds


def measure_rounds(config: Config, graph: Graph) -> tuple[RoundTime, ...]:
    """Rounds on cores of several sizes, in text and in binary, each with a worker of its own."""
    level = traverse_alone(make_engine("level", CoreSplit(graph)), _roots(graph, 1)[0]).level
    rows: list[RoundTime] = []
    for format in FORMATS:
        own = dataclasses.replace(config.exchange, dir=None, keep=False, format=format)
        trial = dataclasses.replace(_with_npu(config, worker="launch", mode="share"), exchange=own)
        with tempfile.TemporaryDirectory(prefix="tandem-calibrate-") as scratch:
            solver = WorkerSolver(trial, Path(scratch) / "worker.log", Trace())
            try:
                solver.start()
                small = min(16, graph.n)  # until the worker has served one small round
                solver.publish_edges(graph.out_offsets, graph.out_targets, small)
                _round(solver, np.zeros(small, np.int32))
                rows += [_time_rounds(solver, graph, format, first_values(level, k)) for k in CORES if k <= graph.n]
            finally:
                solver.close()
    return tuple(rows)


def first_values(level: np.ndarray, k: int) -> np.ndarray:
    """What a search knows of the core when it first knows anything: the vertices nearest to its root."""
    core = level[:k]
    if not (core >= 0).any():
        core = np.where(np.arange(k) == 0, 0, -1)
    nearest = core[core >= 0].min()
    return np.where(core == nearest, core, -1).astype(np.int32)


def _time_rounds(solver: WorkerSolver, graph: Graph, format: str, values: np.ndarray) -> RoundTime:
    k = values.size
    t0 = time.perf_counter()
    solver.publish_edges(graph.out_offsets, graph.out_targets, k)
    published = time.perf_counter() - t0
    first_s, _ = _round(solver, values)
    best, answer = min((_round(solver, values) for _ in range(_ROUNDS)), key=lambda one: one[0])
    edges, sent = count_core_edges(CoreSplit(graph, k)), int(np.count_nonzero(values >= 0))
    compute_s, iterations = float(answer.facts["compute_s"]), int(answer.facts["iterations"])
    return RoundTime(format, k, edges, sent, published, first_s, best, compute_s, iterations)


def _round(solver: WorkerSolver, values: np.ndarray) -> tuple[float, Answer]:
    t0 = time.perf_counter()
    solver.submit(values)
    while (answer := solver.poll()) is None:
        if not solver.usable:
            raise EnvironmentProblem(f"the worker could not be measured: {solver.failure}", fix=_FIX)
        solver.wait()
    return time.perf_counter() - t0, answer


# ---------------------------------------------------------------------------------------------------- the CPU


def measure_cpu(graphs: dict[int, Graph], path: Graph) -> CpuRates:
    """Searches by our engines alone, and the rates of their steps."""
    for engine in ("async", "level"):
        warm_up(engine)
    searches: list[SearchTime] = []
    for scale, graph in graphs.items():
        name = f"kronecker-s{scale}"
        searches += [_time_search(graph, name, engine) for engine in ("async", "level")]
        searches.append(_time_many(graph, name))
    push, pull = (_edge_rate(graphs[max(graphs)], strategy) for strategy in ("push", "pull"))
    # What a level costs that holds one vertex: steps down a path, one level each.
    found, spent = _best_of(partial(traverse_alone, LevelBfs(CoreSplit(path), "push"), path.n - 1))
    level_s = spent / max(1, found.steps)
    return CpuRates(numba.get_num_threads(), push, pull, level_s, tuple(searches))


def _time_search(graph: Graph, name: str, engine_name: str) -> SearchTime:
    engine = make_engine(engine_name, CoreSplit(graph))
    best = [_best_of(partial(traverse_alone, engine, root)) for root in _roots(graph, _ROOTS)]
    seconds, steps, edges = zip(*((spent, found.steps, found.edges_looked_at) for found, spent in best), strict=True)
    return SearchTime(
        name, graph.n, graph.m, engine_name, "auto", 1, statistics.median(seconds),
        round(statistics.median(steps)), round(statistics.median(edges)),
    )  # fmt: skip


def _time_many(graph: Graph, name: str) -> SearchTime:
    engine, roots = ManyBfs(graph), np.array(_roots(graph, BATCH), np.int64)
    found, spent = _best_of(lambda: engine.run(roots))
    work = found.levels_run, found.edges_looked_at
    return SearchTime(name, graph.n, graph.m, "many", "auto", roots.size, spent, *work)


def _best_of(run: Callable[[], T]) -> tuple[T, float]:
    """The last result of several runs, and the seconds of the fastest."""
    best = math.inf
    for _ in range(_REPEATS):
        t0 = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - t0)
    return found, best


def _edge_rate(graph: Graph, strategy: str) -> float:
    """Edges looked at per second in steps that have many."""
    engine = LevelBfs(CoreSplit(graph), strategy)
    rates = []
    for root in _roots(graph, _ROOTS):
        best = 0.0
        for _ in range(_REPEATS):
            edges, spent = 0, 0.0
            engine.start(root, withhold_core=False)
            while engine.can_step():
                t0 = time.perf_counter()
                step = engine.step()
                if step.edges >= _THICK_EDGES:
                    spent += time.perf_counter() - t0
                    edges += step.edges
                engine.settle()
            if edges:
                best = max(best, edges / spent)
        rates.append(best)
    return statistics.median(rates)


def _roots(graph: Graph, count: int) -> list[int]:
    drawn: list[int] = np.random.default_rng(1).permutation(graph.n)[:count].tolist()
    return drawn


def _generated(config: Config, **generator: object) -> Graph:
    made = GeneratorConfig(**generator)  # type: ignore[arg-type]
    place = GraphConfig(cache=config.graph.cache, cache_dir=config.graph.cache_dir, generator=made)
    return open_graph(place, Trace()).graph


def _with_npu(config: Config, **changes: object) -> Config:
    return dataclasses.replace(config, npu=dataclasses.replace(config.npu, **changes))  # type: ignore[arg-type]
