"""``bench exchange``: how long a round takes through the exchange directory, worker warm, and where the time goes.

The real thing: a worker process with MindSpore, files, the coordinator's core solver. A round is timed from the values
in the engine's array to the answer merged into it: written, noticed, read, computed, written, noticed, read, checked,
merged. The values are those a search knows of the core when it first knows any, a root for every vector of the batch.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.proof import core_answer, require_close
from benchmarks.contest.workload import set_threads
from benchmarks.output import Report, memory_text
from benchmarks.plot import Bar, draw_bars
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.bfs import make_engine
from hybrid.config import load_config
from hybrid.errors import EnvironmentProblem
from hybrid.experiments.calibrate import first_values
from hybrid.graphs.opening import open_graph
from hybrid.offload.traverse import traverse_alone
from hybrid.planning.plan import count_core_edges
from hybrid.results.trace import Trace
from hybrid.terminal import count, progress, seconds, table
from hybrid.worker.core_solver import Answer
from hybrid.worker.solver import WorkerSolver

INDEX = "index"
_FIX = "run `python run.py doctor`, which starts a worker and names what is missing"


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    overrides: dict[str, object] = {"npu.device": options.device, "graph.generator.kind": options.kind}
    overrides |= {f"graph.generator.{name}": getattr(options, name) for name in ("scale", "edge_factor", "seed")}
    graph = open_graph(load_config(None, options=overrides).graph, Trace()).graph
    rows: list[dict[str, Any]] = []
    with progress("measuring", "format") as bar:
        for done, format in enumerate(options.formats):
            bar(done, len(options.formats))
            rows += measure(graph, {**overrides, "exchange.format": format}, options)
    return report_of(rows, options)


def measure(graph: Graph, overrides: dict[str, object], options: argparse.Namespace) -> list[dict[str, Any]]:
    """One worker of one format: every batch and program, then the index."""
    k = min(options.core, graph.n)
    roots = np.random.default_rng(options.root_seed).permutation(graph.n)[: max(options.batches)].tolist()
    engine = make_engine("level", CoreSplit(graph))
    starts = np.array([first_values(traverse_alone(engine, root).level, k) for root in roots])
    config = load_config(None, options={**overrides, "npu.round_timeout_s": options.time_limit})
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as scratch:
        solver = WorkerSolver(config, Path(scratch) / "worker.log", Trace())
        try:
            solver.start()
            for program in options.programs:
                began = time.perf_counter()
                solver.publish_edges(graph.out_offsets, graph.out_targets, k, program=program)
                published = time.perf_counter() - began
                for batch in options.batches:
                    values = starts[0] if batch == 1 else starts[:batch]
                    if program == "plus-times":
                        values = np.where(values < 0, 0.0, 1.0 / k).astype(np.float32)
                    elif program == "or-and":
                        values = (values >= 0).astype(np.int32)
                    right = core_answer(graph, k, program, values)
                    row = _time_rounds(solver, values, options.repeats, right, f"{config.exchange.format}, {program}")
                    facts = {"format": config.exchange.format, "program": program, "batch": batch, "core": k}
                    rows.append({**facts, "publish_seconds": published, **row})
            if options.index:
                rows.append({"format": config.exchange.format, "core": k, **_time_index(solver, graph, k)})
        finally:
            solver.close()
    edges = count_core_edges(CoreSplit(graph, k))
    return [{**row, "core_edges": edges} for row in rows]


def _time_rounds(
    solver: WorkerSolver, values: np.ndarray, repeats: int, right: np.ndarray, what: str
) -> dict[str, Any]:
    def proven() -> tuple[float, Answer]:
        took, answer = _round(solver, values)
        require_close(answer.values, right, what)
        return took, answer

    first, _ = proven()  # reads the core, puts it on the device
    proven()
    timed = [proven() for _ in range(repeats)]
    times = sorted(took for took, _ in timed)
    parts = {
        name: statistics.median(float(answer.facts[name]) for _, answer in timed) for name in ("read_s", "compute_s")
    }
    return {
        "first_seconds": first,
        "best_seconds": times[0],
        "median_seconds": statistics.median(times),
        "p95_seconds": times[min(len(times) - 1, int(0.95 * len(times)))],
        "worker_read_seconds": parts["read_s"],
        "worker_compute_seconds": parts["compute_s"],
        "iterations": int(timed[0][1].facts["iterations"]),
    }


def _round(solver: WorkerSolver, values: np.ndarray) -> tuple[float, Answer]:
    merged = values.copy()
    began = time.perf_counter()
    solver.submit(values)
    while (answer := solver.poll()) is None:
        _require_usable(solver)
        solver.wait()
    np.minimum(merged.view(f"u{merged.itemsize}"), answer.values.view(f"u{merged.itemsize}"))
    return time.perf_counter() - began, answer


def _time_index(solver: WorkerSolver, graph: Graph, k: int) -> dict[str, Any]:
    solver.publish_edges(graph.out_offsets, graph.out_targets, k)
    began = time.perf_counter()
    if not solver.request_index():
        raise EnvironmentProblem(f"no index: {solver.index_failure}", fix="choose a smaller --core")
    while (index := solver.poll_index()) is None:
        _require_usable(solver)
        if solver.index_failure:
            raise EnvironmentProblem(f"no index: {solver.index_failure}", fix="choose another --core")
        solver.wait()
    took = time.perf_counter() - began
    return {
        "program": INDEX, "batch": k, "median_seconds": took, "best_seconds": took, "bytes": index.distance.nbytes,
        "worker_compute_seconds": float(index.facts["compute_s"]), "diameter": index.diameter,
        "farthest": index.farthest,
    }  # fmt: skip


def _require_usable(solver: WorkerSolver) -> None:
    if not solver.usable:
        raise EnvironmentProblem(f"the worker could not be measured: {solver.failure}", fix=_FIX)


def report_of(rows: list[dict[str, Any]], options: argparse.Namespace) -> Report:
    report = Report("exchange", {"rounds": rows})
    headings = ["format", "program", "vectors", "best", "median", "95 %", "worker reads", "computes", "first round"]
    report.lines += [table(headings, [_cells(row) for row in rows if row["program"] != INDEX])]
    report.lines += [
        f"core of {count(rows[0]['core'])} vertices and {count(rows[0]['core_edges'])} edges; values written -> merged"
    ]
    for row in (row for row in rows if row["program"] == INDEX):
        diameter = "no diameter" if row["diameter"] is None else f"diameter {row['diameter']}"
        report.lines.append(
            f"index, {row['format']}: {seconds(row['median_seconds'])} from request to checked arrays, of which "
            f"{seconds(row['worker_compute_seconds'])} computing; {memory_text(row['bytes'])}, {diameter}"
        )
    bars = [
        Bar(f"{row['format']}, {row['program']}, {row['batch']}", 1e3 * row["median_seconds"],
            seconds(row["median_seconds"]))
        for row in rows if row["program"] != INDEX
    ]  # fmt: skip
    report.charts.append(draw_bars("a round, values written -> merged", "ms", bars, unit=" ms"))
    return report


def _cells(row: dict[str, Any]) -> list[str]:
    times = ("best", "median", "p95", "worker_read", "worker_compute", "first")
    shown = [seconds(row[f"{name}_seconds"]) for name in times]
    return [row["format"], row["program"], str(row["batch"]), *shown]
