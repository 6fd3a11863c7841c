"""``bench ranks``: BFS on P MPI ranks by every engine and policy, against one rank with as many threads.

Every round starts one rank with P x T threads, and then P ranks with T threads each, on the same stored graph; every
search is certified at rank 0, off the clock. Bytes are those of one search, summed over ranks, and compared with what
(id, value) pairs would have taken for the same updates.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.rounds import FIX
from benchmarks.contest.workload import Workload, config_of, open_workload, work_folder
from benchmarks.output import Report
from benchmarks.plot import Bar, draw_bars
from benchmarks.suites.bfs import describe_graph
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.graph_store import save_store
from hybrid.config.schema import ClusterConfig, Config
from hybrid.errors import EnvironmentProblem, NotCertified
from hybrid.launch.command import ask_flavour, build_launch, find_launcher, this_machine
from hybrid.launch.process import end_launcher, start_launcher
from hybrid.launch.shared_memory import segments_of
from hybrid.offload.traverse import traverse_alone
from hybrid.terminal import progress, seconds, table

VARIANTS = (
    *(
        {"engine": engine, "sync": sync, "policy": policy}
        for engine, sync in (("level", "bsp"), ("async", "basp"), ("async", "bsp"))
        for policy in ("oec", "iec", "cvc", "uvc", "2d")
    ),
    # Ready for a worker that is not there: what being hybrid-capable costs.
    {"engine": "async", "sync": "basp", "policy": "oec", "core": "1024"},
)
ALONE = "one rank, level"


def execute(options: argparse.Namespace) -> Report:
    if options.algorithm != "bfs":
        from benchmarks.ranks import algorithms as ranks_algorithms  # which needs run_ranks

        return ranks_algorithms.execute(options)
    workload = open_workload(config_of(options))
    wanted = [one for one in VARIANTS if not options.only or name_of(one) in options.only]
    roots = [root.internal for root in workload.roots]
    edges = [edges_reached(workload.graph, root) for root in roots]
    with ExitStack() as open_things:
        folder = Path(open_things.enter_context(work_folder(options)))
        save_store(workload.graph, folder / "graph")
        task = {"store": str(folder / "graph"), "roots": roots, "trials": options.trials}
        found: dict[str, list[dict[str, Any]]] = {}
        with progress("measuring", "round") as bar:
            for done in range(options.rounds):
                bar(done, options.rounds)
                alone = [{"engine": "level", "sync": "bsp", "policy": "oec"}]
                for one in run_ranks(options, 1, options.ranks * options.threads, {**task, "variants": alone}, folder):
                    found.setdefault(ALONE, []).append(one)
                for one in run_ranks(options, options.ranks, options.threads, {**task, "variants": wanted}, folder):
                    found.setdefault(name_of(one), []).append(one)
    rows = [row_of(name, rounds, edges) for name, rounds in found.items()]
    return report_of(workload, rows, options)


def name_of(variant: dict[str, Any]) -> str:
    """``level iec``, ``async basp oec`` or ``async basp oec, hybrid``."""
    middle = "" if variant["engine"] == "level" else f"{variant['sync']} "
    return f"{variant['engine']} {middle}{variant['policy']}" + (", hybrid" if "core" in variant else "")


def edges_reached(graph: Graph, root: int) -> int:
    """What Graph500 counts: the input edges in the root's component."""
    level = traverse_alone(LevelBfs(CoreSplit(graph)), root).level
    return int(np.diff(graph.out_offsets)[level >= 0].sum()) // (1 if graph.directed else 2)


def run_ranks(
    options: argparse.Namespace,
    ranks: int,
    threads: int,
    task: dict[str, Any],
    folder: Path,
    child: str = "benchmarks.ranks.child",
) -> list[dict[str, Any]]:
    """Start the ranks, wait, and read what they measured."""
    plan, result = folder / "task.json", folder / "result.json"
    plan.write_text(json.dumps({**task, "result": str(result)}))
    config = replace(Config(), ranks=ranks, cluster=replace(ClusterConfig(), threads_per_rank=threads))
    config = replace(config, npu=replace(config.npu, mode="off"))
    launcher = find_launcher(None)
    with segments_of(
        build_launch(config, this_machine(), launcher, ask_flavour(launcher), [str(plan)], child)
    ) as launch:
        launched = start_launcher(launch)
        try:
            _, errors = launched.process.communicate(timeout=options.time_limit)
        except subprocess.TimeoutExpired:
            raise EnvironmentProblem(
                f"{ranks} ranks did not end within {options.time_limit:g} s", fix="raise --time-limit"
            ) from None
        finally:
            end_launcher(launched)
    if launched.process.returncode != 0:
        said = errors.decode(errors="replace").strip()[-2000:]
        raise EnvironmentProblem(f"{ranks} ranks failed: {said}", fix="python run.py doctor checks MPI")
    measured: list[dict[str, Any]] = json.loads(result.read_text())
    for wrong in filter(None, (one["wrong"] for one in measured)):
        raise NotCertified(wrong, fix=FIX)
    return measured


def row_of(name: str, rounds: list[dict[str, Any]], edges: list[int]) -> dict[str, Any]:
    """The figures of one variant over all rounds."""
    per_root = [[time for one in rounds for time in one["seconds"][at]] for at in range(len(edges))]
    best = [min(runs) for runs in per_root]
    first = rounds[0]
    searches = [search for rank in first["by_rank"] for search in rank["searches"]]
    total = {key: sum(search[key] for search in searches) for key in ("bytes", "messages", "pair_bytes")}
    vertices = sum(rank["vertices"] for rank in first["by_rank"])
    return {
        "name": name,
        "best_seconds": float(np.mean(best)),
        "mean_seconds": float(np.mean([np.mean(runs) for runs in per_root])),
        "teps": len(best) / sum(time / count for time, count in zip(best, edges, strict=True)),
        "bytes_per_search": total["bytes"] / len(edges),
        "messages_per_search": total["messages"] / len(edges),
        "against_pairs": total["bytes"] / total["pair_bytes"] if total["pair_bytes"] else None,
        "local_vertices": vertices,
        "partition_seconds": min(one["partition_seconds"] for one in rounds),
        "reached": first["reached"],
        "seconds": per_root,
        "by_rank": first["by_rank"],
    }


def report_of(workload: Workload, rows: list[dict[str, Any]], options: argparse.Namespace) -> Report:
    """The rows as text, data and picture; a search that reached something else than one rank did is an error."""
    alone = next(row for row in rows if row["name"] == ALONE)
    wrong = [row["name"] for row in rows if row["reached"] != alone["reached"]]
    if wrong:
        raise NotCertified(f"{', '.join(wrong)} found other levels than one rank", fix=FIX)
    graph = workload.as_dict()
    for row in rows:
        row["speed_of_one_rank"] = alone["best_seconds"] / row["best_seconds"]
        row["replication"] = row["local_vertices"] / workload.graph.n
    cells = [
        [
            row["name"], seconds(row["best_seconds"]), seconds(row["mean_seconds"]), f"{row['teps'] / 1e6:,.0f}",
            f"{row['speed_of_one_rank']:.2f}", f"{row['bytes_per_search'] / 1e6:.3f}",
            f"{row['messages_per_search']:.0f}",
            "" if row["against_pairs"] is None else f"{row['against_pairs']:.3f}", f"{row['replication']:.2f}",
        ]
        for row in sorted(rows, key=lambda row: float(row["best_seconds"]))
    ]  # fmt: skip
    headings = ["engine and policy", "best", "mean", "MTEPS", "speed", "MB sent", "messages", "of pairs", "replication"]
    report = report_rows("BFS", "best seconds per search, parents included", graph, rows, options)
    report.lines += [describe_graph(graph), setup_of(options), "", table(headings, cells), ""]
    report.lines.append("speed: of one rank with all the threads, as 1; of pairs: bytes against (id, value) pairs")
    report.lines.append("hybrid: ready to take core values from a worker, without one")
    return report


def setup_of(options: argparse.Namespace) -> str:
    return f"{options.ranks} ranks x {options.threads} threads; one rank has {options.ranks * options.threads} threads"


def report_rows(
    title: str, measured: str, graph: dict[str, Any], rows: list[dict[str, Any]], options: argparse.Namespace
) -> Report:
    """The rows as data and picture; the text is the caller's."""
    named = {"graph": graph, "ranks": options.ranks, "threads": options.threads, "variants": rows}
    bars = [Bar(row["name"], row["best_seconds"], seconds(row["best_seconds"]), ours=True) for row in rows]
    return Report(
        "ranks", named, charts=[draw_bars(f"{title} on {graph['name']}, {setup_of(options)}", measured, bars)]
    )
