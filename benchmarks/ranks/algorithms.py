"""``bench ranks --algorithm NAME``: an algorithm on P MPI ranks, by every policy, against one rank.

As benchmarks/ranks/command.py for BFS: one rank with P x T threads, then P ranks with T threads each, on the same
stored graph; shortest paths on weights 1 to 255. Every result passes its algorithm's check, off the clock.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.rounds import FIX
from benchmarks.contest.workload import Workload, config_of, open_workload, work_folder
from benchmarks.output import Report
from benchmarks.ranks.command import report_rows, run_ranks, setup_of
from benchmarks.suites.algorithms import with_weights
from benchmarks.suites.bfs import describe_graph
from cpu_engine.graph.store.graph_store import save_store
from cpu_engine.ranks.algorithms import rank_algorithm
from hybrid.errors import NotCertified
from hybrid.terminal import progress, seconds, table

CHILD = "benchmarks.ranks.algorithms_child"
ALONE = "one rank"
_ROUNDING = 1e-6  # of sums of reals


def execute(options: argparse.Namespace) -> Report:
    chosen = rank_algorithm(options.algorithm)
    workload = open_workload(config_of(options))
    if chosen.weighted:
        workload = with_weights(workload)
    variants = [{"policy": policy, "sync": sync} for sync in chosen.syncs for policy in chosen.policies]
    wanted = [one for one in variants if not options.only or name_of(one) in options.only]
    roots = [root.internal for root in workload.roots] if chosen.sourced else [0]
    with ExitStack() as open_things:
        folder = Path(open_things.enter_context(work_folder(options)))
        save_store(workload.graph, folder / "graph")
        task = {"store": str(folder / "graph"), "roots": roots, "trials": options.trials, "algorithm": chosen.name}
        found: dict[str, list[dict[str, Any]]] = {}
        with progress("measuring", "round") as bar:
            for done in range(options.rounds):
                bar(done, options.rounds)
                threads = options.ranks * options.threads
                found.setdefault(ALONE, []).extend(run_ranks(options, 1, threads, task, folder, CHILD))
                for one in run_ranks(
                    options, options.ranks, options.threads, {**task, "variants": wanted}, folder, CHILD
                ):
                    found.setdefault(name_of(one), []).append(one)
    return report_of(workload, [row_of(*entry) for entry in found.items()], options)


def name_of(variant: dict[str, Any]) -> str:
    """``bsp iec``."""
    return f"{variant['sync']} {variant['policy']}"


def row_of(name: str, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of one variant over all rounds."""
    per_root = [[time for one in rounds for time in one["seconds"][at]] for at in range(len(rounds[0]["seconds"]))]
    searches = [search for rank in rounds[0]["by_rank"] for search in rank["searches"]]
    runs = len(per_root)
    return {
        "name": name,
        "best_seconds": float(np.mean([min(times) for times in per_root])),
        "mean_seconds": float(np.mean([np.mean(times) for times in per_root])),
        "bytes_per_run": sum(search["bytes"] for search in searches) / runs,
        "messages_per_run": sum(search["messages"] for search in searches) / runs,
        "rounds": max((search["rounds"] for search in searches), default=0),
        "arcs_per_run": sum(search["edges_looked_at"] for search in searches) / runs,
        "partition_seconds": min(one["partition_seconds"] for one in rounds),
        "digests": rounds[0]["digests"],
        "seconds": per_root,
        "by_rank": rounds[0]["by_rank"],
    }


def report_of(workload: Workload, rows: list[dict[str, Any]], options: argparse.Namespace) -> Report:
    """The rows as text, data and picture; another result than on one rank is an error."""
    alone = next(row for row in rows if row["name"] == ALONE)
    wrong = [row["name"] for row in rows if not np.allclose(row["digests"], alone["digests"], rtol=_ROUNDING)]
    if wrong:
        raise NotCertified(f"{', '.join(wrong)} found something else than one rank", fix=FIX)
    graph = workload.as_dict()
    for row in rows:
        row["speed_of_one_rank"] = alone["best_seconds"] / row["best_seconds"]
    cells = [
        [
            row["name"], seconds(row["best_seconds"]), seconds(row["mean_seconds"]),
            f"{row['speed_of_one_rank']:.2f}", str(row["rounds"]), f"{row['bytes_per_run'] / 1e6:.3f}",
            f"{row['messages_per_run']:.0f}", f"{row['arcs_per_run'] / 1e6:.1f}",
        ]
        for row in sorted(rows, key=lambda row: float(row["best_seconds"]))
    ]  # fmt: skip
    headings = ["sync and policy", "best", "mean", "speed", "rounds", "MB sent", "messages", "M arcs"]
    report = report_rows(options.algorithm, "best seconds per run", graph, rows, options)
    report.data["algorithm"] = options.algorithm
    setup = f"{options.algorithm}; {setup_of(options)}"
    report.lines += [describe_graph(graph), setup, "", table(headings, cells), ""]
    report.lines.append("speed: of one rank with all the threads, as 1; MB, messages and arcs: of all ranks in one run")
    return report
