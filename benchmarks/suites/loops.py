"""``bench loops``: shortest paths as loops against the tuned ones, by edges looked at; vertex programs, by time.

An edge is looked at when its target's distance is compared. ``each edge once`` is what a perfect priority queue that
only pushes looks at: the out-edges of all vertices reached. The default may look at the edges of a skeleton instead of
the graph's (road maps, from the second run on); an edge there stands for a chain.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.contest.proof import require, require_equal, require_search
from benchmarks.contest.workload import Workload, config_of, open_workload, set_threads
from benchmarks.output import Report
from benchmarks.suites.algorithms import has_own_weights, with_weights
from benchmarks.suites.bfs import describe_graph
from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.many.check import check_levels
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.components.check import check_components
from cpu_engine.components.weak import components
from cpu_engine.graph.graph import Graph
from cpu_engine.programs import ProgramResult, Runner
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.delta import Buckets
from cpu_engine.sssp.engine import choose_delta, choose_spans, sssp
from cpu_engine.sssp.rows import prepare_rows
from hybrid.offload.traverse import traverse_alone
from hybrid.terminal import seconds, table

EXAMPLES = Path(__file__).parents[2] / "examples"  # what is measured


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    workload = open_workload(config_of(options))
    if not has_own_weights(workload):
        workload = with_weights(workload)
    edges = [row for root in workload.roots for row in count_edges(workload.graph, root.internal, options.delta)]
    times = time_programs(workload, options)
    graph = workload.as_dict()
    report = Report("loops", {"graph": graph, "threads": options.threads, "edges": edges, "times": times})
    report.lines += [describe_graph(graph), "", _edge_table(edges), "", _time_table(times)]
    return report


def example(name: str) -> ModuleType:
    """One of the shipped examples, as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def count_edges(graph: Graph, root: int, delta: int) -> list[dict[str, Any]]:
    """For each way: edges looked at, how often a distance fell where that is counted; every answer is proven."""
    default = sssp(graph, root)
    require(check_sssp(graph, root, default.distance, default.parent), graph, "default sssp")
    once = int(np.diff(graph.out_offsets)[default.distance >= 0].sum())
    rows = prepare_rows(graph)
    right = default.distance
    tuned = relaxed_by(Buckets(rows, np.int64, choose_delta(rows), choose_spans(rows)), root, right)
    plain = relaxed_by(Buckets(rows, np.int64, delta, ()), root, right)
    pushed, report = example("vertex_programs/sssp_loop").shortest_paths(graph, root, delta)
    staged = example("sssp_stages").StagedPaths(graph).run(root)
    require_equal(pushed, right, f"for_each, delta {delta}")
    require_equal(staged.distance, right, "for_each and do_all, in stages")
    counted = {
        "tuned delta-stepping": (tuned, None),
        "default sssp": (default.relaxations, None),
        "for_each and do_all, in stages": (staged.edges, staged.decreases),
        "each edge once": (once, None),
        f"for_each, delta {delta}": (int(report.work.sum()), None),
        f"plain delta-stepping, delta {delta}": (plain, None),
    }
    return [
        {
            "root": root, "way": way, "edges": looked, "decreases": fell,
            "times_tuned": looked / max(tuned, 1), "times_once": looked / max(once, 1),
        }
        for way, (looked, fell) in counted.items()
    ]  # fmt: skip


def relaxed_by(buckets: Buckets, root: int, right: np.ndarray) -> int:
    """Edges that delta-stepping on the graph itself looks at; its distances must be the ``right`` ones."""
    buckets.start(root)
    edges = 0
    while buckets.waiting:
        edges += buckets.step().edges
    require_equal(np.where(buckets.dist == buckets.unreached, -1, buckets.dist), right, "delta-stepping")
    return edges


@dataclass(frozen=True)
class Timed:
    """What is on the clock, and the proof of what it returns, which is not."""

    run: Callable[[Any], Any]
    prove: Callable[[Any, Any], None]


def time_programs(workload: Workload, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Vertex programs and their tuned counterparts in turns: the best seconds of each, over all roots."""
    graph, roots = workload.graph, [root.internal for root in workload.roots]
    bfs = example("vertex_programs/bfs").BFS
    spread = Runner(bfs, graph)
    labels = Runner(example("vertex_programs/components").COMPONENTS, graph)
    engine = AsyncBfs(CoreSplit(graph))

    def prove_levels(root: int, found: ProgramResult) -> None:
        level = np.where(found["level"] == bfs.offered.neutral, -1, found["level"].astype(np.int64))
        require(check_levels(graph, np.array([root]), level[np.newaxis]), graph, "the BFS program")

    def prove_labels(_: None, label: np.ndarray) -> None:
        require(check_components(graph, label.astype(np.int32)), graph, "components")

    pairs: dict[str, tuple[list[Any], Timed, Timed]] = {
        "BFS, push and pull": (
            roots,
            Timed(spread.run, prove_levels),
            Timed(
                lambda root: traverse_alone(engine, root),
                lambda root, found: require_search(graph, found.level, found.parent, root),
            ),
        ),
        "components": (
            [None],
            Timed(lambda _: labels.run()["label"], prove_labels),
            Timed(lambda _: components(graph).label, prove_labels),
        ),
    }
    rows = []
    for name, (starts, program, tuned) in pairs.items():
        best = {"program": 0.0, "tuned": 0.0}
        for start in starts:
            least = dict.fromkeys(best, float("inf"))
            for turn in range(options.rounds * options.trials + 1):
                for who, one in (("program", program), ("tuned", tuned)):
                    began = time.perf_counter()
                    found = one.run(start)
                    spent = time.perf_counter() - began
                    one.prove(start, found)
                    if turn:  # the first compiles
                        least[who] = min(least[who], spent)
            best = {who: best[who] + least[who] / len(starts) for who in best}
        rows.append({"program": name, "seconds": best["program"], "tuned_seconds": best["tuned"]})
    return rows


def _edge_table(rows: list[dict[str, Any]]) -> str:
    cells = [
        [
            str(row["root"]), row["way"], f"{row['edges']:,}", f"{row['times_tuned']:.2f}", f"{row['times_once']:.2f}",
            "" if row["decreases"] is None else f"{row['decreases']:,}",
        ]
        for row in rows
    ]  # fmt: skip
    return table(["root", "shortest paths by", "edges", "x tuned", "x each once", "decreases"], cells)


def _time_table(rows: list[dict[str, Any]]) -> str:
    cells = [
        [row["program"], seconds(row["seconds"]), seconds(row["tuned_seconds"]),
         f"{row['seconds'] / row['tuned_seconds']:.2f}"]
        for row in rows
    ]  # fmt: skip
    return table(["vertex program", "mean of bests", "tuned", "x tuned"], cells)
