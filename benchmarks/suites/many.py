"""``bench many``: levels from many sources, all at once (one bit each) against one run after the other."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from benchmarks.contest.bfs_contest import own_process, play_as_asked
from benchmarks.contest.digest import joined_finding
from benchmarks.contest.process import Seat
from benchmarks.contest.rounds import Finding, Root, Turn
from benchmarks.contest.summary import figures, ranking, times_slower
from benchmarks.contest.workload import config_of, open_workload, references, set_threads
from benchmarks.output import Report, ratio_text
from benchmarks.plot import Bar, draw_bars
from benchmarks.suites.bfs import describe_graph
from hybrid.terminal import seconds, table

SINGLE = "one by one"
VARIANTS = {"single": SINGLE, "many": "at once, levels", "many+parents": "at once, levels and parents"}


class BatchContestant:
    """One way to traverse from all sources; its turn takes the batch as a whole."""

    def __init__(self, name: str, seat: Seat, variant: str, batch: list[Root], expected: Finding) -> None:
        self.name, self.ours = name, True
        self._seat, self._variant, self._expected = seat, variant, expected
        self._batch = [root.internal for root in batch]

    def turn(self, root: Root, trials: int) -> Turn:
        spent = []
        for _ in range(trials):
            found = self._seat.ask("batch", variant=self._variant, roots=self._batch)
            spent.append(float(found["seconds"]))
        return Turn(tuple(spent), Finding(found["reached"], found["depth"], found["digest"]))

    def expected(self, root: Root) -> Finding:
        return self._expected


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    workload = open_workload(config_of(options))
    batch = workload.roots
    right = references(workload)["internal"]
    expected = joined_finding(right[root] for root in batch)
    with ExitStack() as open_things:
        seat = own_process(workload, options, open_things)
        contestants = [BatchContestant(name, seat, variant, batch, expected) for variant, name in VARIANTS.items()]
        records = play_as_asked(contestants, batch[:1], options)
    graph, single = workload.as_dict(), records[0]
    rows: list[dict[str, Any]] = []
    for record in ranking(records):
        found, times = figures(record), times_slower(record, single)
        row: dict[str, Any] = {"name": record.name, "problem": record.problem}
        if found is not None:
            gain = 1 / times if times else None
            row.update(best_seconds=found.best, mean_seconds=found.mean, noise=found.noise, times_as_fast=gain)
        rows.append(row)
    report = Report("many", {"graph": graph, "threads": options.threads, "sources": len(batch), "ways": rows})
    report.lines += [describe_graph(graph), "", _table(rows, len(batch))]
    report.lines += [f"{row['name']} is not ranked: {row['problem']}" for row in rows if row["problem"]]
    bars = [Bar(row["name"], row["best_seconds"], _label(row)) for row in rows if "best_seconds" in row]
    subtitle = f"best seconds for all; x = times as fast as {SINGLE}"
    report.charts.append(draw_bars(f"{len(batch)} sources on {graph['name']}", subtitle, bars))
    return report


def _label(row: dict[str, Any]) -> str:
    return f"{seconds(row['best_seconds'])} ({ratio_text(row['times_as_fast'])})"


def _table(rows: list[dict[str, Any]], sources: int) -> str:
    cells = [
        [
            row["name"], seconds(row["best_seconds"]), seconds(row["best_seconds"] / sources),
            seconds(row["mean_seconds"]), f"{row['noise']:.2f}", ratio_text(row["times_as_fast"]),
        ]
        for row in rows
        if "best_seconds" in row
    ]  # fmt: skip
    return table(["sources", "best", "per source", "mean", "noise", f"x as fast as {SINGLE}"], cells)
