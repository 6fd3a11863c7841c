"""``bench regret``: does ``npu.mode: auto`` ever lose against the CPU alone?

Whole jobs, in turns: mode off, mode auto, and mode auto as if the planner had been misled into ``share`` beside a
worker that never answers. What counts is the time from the opened graph to the last result: deciding, and each search
as its fastest of all rounds. The bar: auto takes at most 5 % longer than off, plus 2 ms.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

import numpy as np

from benchmarks.output import Report
from benchmarks.plot import Bar, draw_bars
from benchmarks.workload import set_threads
from cpu_engine.algorithms.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.config import load_config
from hybrid.no_regret import REGRET_S, REGRET_SHARE, NoRegretPartner, patience_for, waiting_budget
from hybrid.opening import Opened, open_graph
from hybrid.plan import Plan, make_plan
from hybrid.schema import Config
from hybrid.sources import Source, resolve_sources
from hybrid.terminal import count, progress, seconds, table
from hybrid.trace import Trace
from hybrid.traverse import Answer, traverse_alone, traverse_together
from hybrid.warmup import make_engine, warm_up

OFF, AUTO, SILENT = "off", "auto", "auto, misled, silent worker"
_MISLED_CORE = 1024


class SilentPartner:
    """A worker that takes every round and answers none."""

    failure = ""
    usable = True

    def __init__(self) -> None:
        self.busy = False

    def begin(self) -> None:
        self.busy = False

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
    rows: list[dict[str, Any]] = []
    for config in configs(options):
        opened = open_graph(config.graph, Trace())
        rows += measure(opened, config, options)
    return report_of(rows, options)


def configs(options: argparse.Namespace) -> list[Config]:
    """One per graph: Kronecker of every scale, uniform of every scale, the grid, and the files."""
    common: dict[str, object] = {
        "npu.mode": "auto", "npu.device": options.device, "engine": options.engine, "source": f"random:{options.roots}",
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
    """All ways on one graph, in turns; the way that begins changes from round to round."""
    ways = [OFF, AUTO, SILENT]
    spent: dict[str, list[list[float]]] = {way: [] for way in ways}  # by round: deciding, then each search
    sources = [one for one in resolve_sources(opened.graph, config) if one.internal >= 0]
    alone_s = sum(
        run(OFF, opened.graph, config, sources, 0.0)[0][1:]
    )  # warms the caches, and tells how patient one may be
    reason = ""
    with progress(f"measuring {opened.name}", "round") as bar:
        for number in range(options.rounds):
            bar(number, options.rounds)
            for place in range(len(ways)):
                way = ways[(number + place) % len(ways)]
                time.sleep(options.pause)
                times, plan = run(way, opened.graph, config, sources, alone_s)
                spent[way].append(times)
                alone_s = min(alone_s, sum(times[1:])) if way == OFF else alone_s
                reason = f"{plan.mode}: {plan.mode_reason}" if way == AUTO else reason
    best = {way: float(np.min(times, axis=0).sum()) for way, times in spent.items()}
    return [
        {
            "graph": opened.name, "way": way, "best_seconds": best[way], "ratio": best[way] / best[OFF],
            "plan_seconds": min(times[0] for times in spent[way]), "seconds": spent[way],
            "within": within_bar(best[way], best[OFF]), "choice": reason if way == AUTO else "",
        }
        for way in ways
    ]  # fmt: skip


def run(way: str, graph: Graph, config: Config, sources: list[Source], alone_s: float) -> tuple[list[float], Plan]:
    """Seconds of deciding and of each search, and the decision."""
    mode = OFF if way == OFF else AUTO
    began = time.perf_counter()
    plan = make_plan(graph, dataclasses.replace(config, npu=dataclasses.replace(config.npu, mode=mode)))
    times = [time.perf_counter() - began]
    guard = None
    split = plan.split
    if way == SILENT or plan.mode != OFF:  # no device answers here: a planner that takes one was misled as well
        guard = NoRegretPartner(SilentPartner(), misled_patience(alone_s))
        split = CoreSplit(graph, min(_MISLED_CORE, graph.n))
    engine = make_engine(config.engine, split, config.bfs.strategy)
    for source in sources:
        began = time.perf_counter()
        if guard is not None and guard.ready:
            traverse_together(engine, source.internal, "share", guard, Trace())
        else:
            traverse_alone(engine, source.internal, Trace())
        times.append(time.perf_counter() - began)
    return times, plan


def misled_patience(alone_s: float) -> Any:
    """What auto would allow a device of which it expects the slowest round that may be waited for at all."""
    patience = patience_for(waiting_budget(alone_s) / 2, alone_s)
    assert patience is not None
    return patience


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
    title = f"{count(options.roots)} searches per job, engine {options.engine}, device {options.device}"
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
