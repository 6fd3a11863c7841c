"""``bench regret``: does ``npu.mode: auto`` ever lose against the CPU alone?

Whole jobs, side by side, search by search in turns: mode off, mode auto, and mode auto as if the planner had been
misled into ``share`` beside a worker that never answers; with ``--batch``, so many searches at once. What counts is the
time from the opened graph to the last result: deciding, and each search as its fastest of all rounds. The bar: at most
5 % longer than off, plus 2 ms.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.contest.proof import require_batch, require_search
from benchmarks.contest.workload import set_threads
from benchmarks.output import Report
from benchmarks.plot import Bar, draw_bars
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.bfs import make_engine
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.graphs.opening import Opened, open_graph
from hybrid.graphs.sources import Source, resolve_sources
from hybrid.job.warm_up import warm_up, warm_up_batches
from hybrid.offload.many_sources import ManyEngine
from hybrid.offload.traverse import traverse_alone, traverse_together
from hybrid.planning.plan import Plan, make_plan
from hybrid.results.trace import Trace
from hybrid.terminal import count, progress, seconds, table
from hybrid.worker.core_solver import MOST_AT_ONCE, Answer, CoreSolver
from hybrid.worker.guard import REGRET_S, REGRET_SHARE, Guard, Patience, patience_for

OFF, AUTO, SILENT = "off", "auto", "auto, misled, silent worker"
WAYS = (OFF, AUTO, SILENT)
_MISLED_CORE = 1024
_HALVINGS = 20


class SilentSolver:
    """A worker that takes every round and answers none."""

    failure = ""
    usable, starting, largest_batch = True, False, MOST_AT_ONCE

    def __init__(self) -> None:
        self.busy = False

    def begin(self) -> None:
        self.busy = False

    def rehearse(self, run: Callable[[CoreSolver], object]) -> None:
        """There is nothing to prepare."""

    def submit(self, values: np.ndarray) -> None:
        self.busy = True

    def poll(self) -> Answer | None:
        return None

    def wait(self) -> None:
        """Nothing will come."""

    def abandon(self) -> None:
        self.busy = False

    def distrust(self, reason: str) -> None:
        """It said nothing."""


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    warm_up(options.engine)
    if options.batch > 1:
        warm_up_batches()
    rows: list[dict[str, Any]] = []
    for config in configs(options):
        opened = open_graph(config.graph, Trace())
        rows += measure(opened, config, options)
    return report_of(rows, options)


def configs(options: argparse.Namespace) -> list[Config]:
    """One per graph: Kronecker of every scale, uniform of every scale, the grid, and the files."""
    common: dict[str, object] = {
        "npu.mode": "auto", "npu.device": options.device, "engine": options.engine, "source": f"random:{options.roots}",
        "npu.batch": options.batch,
    }  # fmt: skip
    chosen: list[dict[str, object]] = [
        {"graph.generator.kind": kind, "graph.generator.scale": scale}
        for kind in ("kronecker", "uniform")
        for scale in options.scales
    ]
    if options.side:
        chosen.append(
            {"graph.generator.kind": "grid", **{f"graph.generator.{d}": options.side for d in ("rows", "cols")}}
        )
    for path in options.graphs:
        chosen.append({"graph.path": path, **({"graph.directed": False} if options.undirected else {})})
    return [load_config(None, options={**common, **one}) for one in chosen]


def measure(opened: Opened, config: Config, options: argparse.Namespace) -> list[dict[str, Any]]:
    """All ways on one graph, search by search in turns; which begins changes from turn to turn."""
    graph = opened.graph
    sources = [one for one in resolve_sources(graph, config) if one.internal >= 0]
    batches = [sources[first : first + options.batch] for first in range(0, len(sources), options.batch)]
    lanes = [Lane(way, graph, config) for way in WAYS]
    rounds: list[list[list[float]]] = []  # by round and way: deciding, then each search
    with progress(f"measuring {opened.name}", "round") as bar:
        for number in range(options.rounds + 1):  # the first one warms up, and shows how long an answer may take
            bar(number, options.rounds + 1)
            search_s = float(np.mean(np.min(rounds, axis=0)[0][1:])) if rounds else 0.0
            times = [[lane.decide(search_s, len(batches))] for lane in lanes]
            for turn, batch in enumerate(batches):
                time.sleep(options.pause)
                for place in range(len(lanes)):
                    at = (number + turn + place) % len(lanes)
                    times[at].append(lanes[at].search(batch))
            rounds.append(times)
    best = np.min(rounds[1:], axis=0)
    total = best.sum(axis=1)
    return [
        {
            "graph": opened.name, "way": lane.way, "best_seconds": float(total[at]),
            "ratio": float(total[at] / total[0]), "plan_seconds": float(best[at][0]),
            "seconds": [times[at] for times in rounds[1:]],
            "within": within_bar(float(total[at]), float(total[0])),
            "choice": f"{lane.plan.mode}: {lane.plan.mode_reason}" if lane.way == AUTO else "",
        }
        for at, lane in enumerate(lanes)
    ]  # fmt: skip


class Lane:
    """One way to run the job: it decides anew in every round, and keeps its engine."""

    def __init__(self, way: str, graph: Graph, config: Config) -> None:
        self.way, self._graph = way, graph
        mode = OFF if way == OFF else AUTO
        self._config = dataclasses.replace(config, npu=dataclasses.replace(config.npu, mode=mode))
        self.plan: Plan = make_plan(graph, self._config)
        # No device answers here: a planner that takes one is misled, like the one that is made to.
        self._misled = way == SILENT or self.plan.mode != OFF
        split = CoreSplit(graph, min(_MISLED_CORE, graph.n)) if self._misled else self.plan.split
        self._engine = make_engine(config.engine, split, config.bfs.strategy)
        self._many = ManyEngine(split)
        self._guard: Guard | None = None

    def decide(self, search_s: float, searches: int) -> float:
        """Seconds that the decision takes."""
        began = time.perf_counter()
        make_plan(self._graph, self._config)
        spent_s = time.perf_counter() - began
        patience = misled_patience(search_s, searches) if self._misled else None
        self._guard = None if patience is None else Guard(SilentSolver(), patience)
        return spent_s

    def search(self, batch: Sequence[Source]) -> float:
        """Seconds of one search, or of a batch at once; what it found is proven off the clock."""
        roots = np.array([source.internal for source in batch], np.int64)
        began = time.perf_counter()
        guard = self._guard if self._guard is not None and self._guard.ready else None
        if self._config.npu.batch != 1:
            if guard is None:
                many = self._many.alone(roots, trace=Trace())
            else:
                many = self._many.together(roots, "share", guard, Trace())
            spent_s = time.perf_counter() - began
            require_batch(self._graph, roots, many.found, self.way)
            return spent_s
        if guard is not None:
            found = traverse_together(self._engine, int(roots[0]), "share", guard, Trace())
        else:
            found = traverse_alone(self._engine, int(roots[0]), Trace())
        spent_s = time.perf_counter() - began
        require_search(self._graph, found.level, found.parent, int(roots[0]), self.way)
        return spent_s


def misled_patience(search_s: float, searches: int) -> Patience | None:
    """What auto allows a device that it takes for fast enough to be waited for; None: it would not take any."""
    rounds = (search_s / 2**halvings for halvings in range(_HALVINGS))
    return next(filter(None, (patience_for(round_s, search_s, searches) for round_s in rounds)), None)


def within_bar(auto_s: float, off_s: float) -> bool:
    """At most 5 % longer, plus 2 ms."""
    return auto_s <= off_s * (1 + REGRET_SHARE) + REGRET_S


def report_of(rows: list[dict[str, Any]], options: argparse.Namespace) -> Report:
    judged = [row for row in rows if row["way"] != OFF]
    worst = max(judged, key=lambda row: row["ratio"])
    failed = [row for row in judged if not row["within"]]
    bar = f"{REGRET_SHARE:.0%} + {seconds(REGRET_S)}"
    verdict = (
        f"worst ratio {worst['ratio']:.3f} ({worst['way']} on {worst['graph']}); "
        + (f"within {bar} on every graph" if not failed else f"NOT within {bar}: {len(failed)} of {len(judged)} rows")
    )  # fmt: skip
    report = Report("regret", {"threads": options.threads, "rows": rows, "worst_ratio": worst["ratio"],
                               "within": not failed, "verdict": verdict})  # fmt: skip
    cells = [
        [row["graph"], row["way"], seconds(row["best_seconds"]), seconds(row["plan_seconds"]), f"{row['ratio']:.3f}",
         "" if row["way"] == OFF else "yes" if row["within"] else "NO"]
        for row in rows
    ]  # fmt: skip
    at_once = "" if options.batch == 1 else f" {options.batch} at once,"
    title = f"{count(options.roots)} searches per job,{at_once} engine {options.engine}, device {options.device}"
    report.lines += [
        title,
        "",
        table(["graph", "mode", "best", "of it deciding", "x off", "within the bar"], cells),
        "",
    ]
    report.lines += [f"{row['graph']}: {row['choice']}" for row in rows if row["choice"]]
    report.lines += ["", verdict]
    bars = [Bar(f"{row['graph']}, {row['way']}", row["ratio"], f"{row['ratio']:.3f}") for row in judged]
    report.charts.append(draw_bars("mode auto against the CPU alone", "time of a job / time with mode off", bars))
    return report
