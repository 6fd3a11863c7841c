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
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.algorithms import has_own_weights, with_weights
from benchmarks.bfs import describe_graph
from benchmarks.output import Report
from benchmarks.workload import Workload, config_of, open_workload, set_threads
from cpu_engine.algorithms.bfs_async import AsyncBfs
from cpu_engine.algorithms.components import components
from cpu_engine.algorithms.sssp import choose_delta, choose_spans, sssp
from cpu_engine.algorithms.sssp_delta import Buckets
from cpu_engine.algorithms.sssp_rows import prepare_rows
from cpu_engine.algorithms.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from cpu_engine.programs import Runner
from hybrid.errors import NotCertified
from hybrid.terminal import seconds, table
from hybrid.traverse import traverse_alone

EXAMPLES = Path(__file__).parents[1] / "examples"  # what is measured


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
    """For each way: edges looked at, how often a distance fell where that is counted, and that the answer is right."""
    default = sssp(graph, root)
    once = int(np.diff(graph.out_offsets)[default.distance >= 0].sum())
    rows = prepare_rows(graph)
    tuned = relaxed_by(Buckets(rows, np.int64, choose_delta(rows), choose_spans(rows)), root)
    plain = relaxed_by(Buckets(rows, np.int64, delta, ()), root)
    pushed, report = example("vertex_programs/sssp_loop").shortest_paths(graph, root, delta)
    staged = example("sssp_stages").StagedPaths(graph).run(root)
    for found in (pushed, staged.distance):
        if not np.array_equal(found, default.distance):
            raise NotCertified("a loop found other distances", value=root, fix="this is a defect: please report it")
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


def relaxed_by(buckets: Buckets, root: int) -> int:
    """Edges that delta-stepping on the graph itself looks at."""
    buckets.start(root)
    edges = 0
    while buckets.waiting:
        edges += buckets.step().edges
    return edges


def time_programs(workload: Workload, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Vertex programs and their tuned counterparts in turns: the best seconds of each, over all roots."""
    graph, roots = workload.graph, [root.internal for root in workload.roots]
    spread = Runner(example("vertex_programs/bfs").BFS, graph)
    labels = Runner(example("vertex_programs/components").COMPONENTS, graph)
    engine = AsyncBfs(CoreSplit(graph))
    pairs: dict[str, tuple[list[Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
        "BFS, push and pull": (roots, spread.run, lambda root: traverse_alone(engine, root)),
        "components": ([None], lambda _: labels.run(), lambda _: components(graph)),
    }
    rows = []
    for name, (starts, program, tuned) in pairs.items():
        best = {"program": 0.0, "tuned": 0.0}
        for start in starts:
            least = dict.fromkeys(best, float("inf"))
            for turn in range(options.rounds * options.trials + 1):
                for who, run in (("program", program), ("tuned", tuned)):
                    began = time.perf_counter()
                    run(start)
                    if turn:  # the first compiles
                        least[who] = min(least[who], time.perf_counter() - began)
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
