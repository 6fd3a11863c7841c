"""``bench threads``: what each further thread brings to BFS, for both engines, and for GAP where it is built."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from benchmarks.contest.bfs_contest import play_as_asked
from benchmarks.contest.gap import GapContestant, find_program
from benchmarks.contest.process import Seat, SeatedContestant
from benchmarks.contest.rounds import Contestant, Record
from benchmarks.contest.summary import figures
from benchmarks.contest.workload import config_of, hand_out, open_workload, references, set_threads, work_folder
from benchmarks.output import Report
from benchmarks.peers import OURS
from benchmarks.plot import Series, draw_lines
from benchmarks.suites.bfs import describe_graph
from hybrid.devices.machine_facts import cpu_count
from hybrid.terminal import seconds, table


def execute(options: argparse.Namespace) -> Report:
    counts = sorted(set(options.threads or doubling(cpu_count())))
    set_threads(counts[-1])
    program = find_program(options.gap) if options.gap else None
    workload = open_workload(config_of(options))
    expected = references(workload)["internal"]
    with ExitStack() as open_things:
        folder = open_things.enter_context(work_folder(options))
        hand_out(workload.graph, folder, {"internal"}, gap=program is not None)
        seat = Seat(OURS, counts[-1], folder / "tandem.log", options.time_limit)
        open_things.callback(seat.close)
        seat.ask("introduce")
        seat.ask("open", folder=str(folder), ids="internal")
        contestants: list[Contestant] = [
            SeatedContestant(f"{engine}@{threads}", seat, f"{engine}@{threads}", "internal", expected)
            for engine in ("level", "async")
            for threads in counts
        ]
        if program is not None:
            contestants += [
                GapContestant(
                    f"gap@{threads}", program, folder / "internal.sg", "internal", threads, expected, options.time_limit
                )
                for threads in counts
            ]
        records = play_as_asked(contestants, workload.roots, options)
    graph = workload.as_dict()
    rows = scaling_rows(records)
    report = Report("threads", {"graph": graph, "scaling": rows})
    report.lines += [describe_graph(graph), "", scaling_table(rows)]
    report.lines += [f"{record.name} is not ranked: {record.problem}" for record in records if record.problem]
    report.lines.append("speed-up: against one thread; efficiency: speed-up per thread")
    if counts[-1] > cpu_count():
        report.lines.append(f"this process has {cpu_count()} cores: more threads than that cannot gain")
    lines = {
        name: [(row["threads"], row["best_seconds"]) for row in rows if row["engine"] == name] for name in _names(rows)
    }
    report.charts.append(
        draw_lines(
            f"BFS on {graph['name']} by threads", "best seconds per traversal, both axes logarithmic",
            [Series(name, points) for name, points in lines.items()], x_label="threads", x_logarithmic=True,
        )
    )  # fmt: skip
    return report


def doubling(most: int) -> list[int]:
    """1, 2, 4, ... and ``most``."""
    counts = [1]
    while counts[-1] * 2 < most:
        counts.append(counts[-1] * 2)
    return counts if most == 1 else [*counts, most]


def scaling_rows(records: list[Record]) -> list[dict[str, Any]]:
    """Per engine and thread count: time, speed-up against the fewest threads, efficiency."""
    rows: list[dict[str, Any]] = []
    first: dict[str, tuple[int, float]] = {}
    for record in records:
        found = figures(record)
        if found is None:
            continue
        engine, _, threads = record.name.partition("@")
        base_threads, base = first.setdefault(engine, (int(threads), found.best))
        speedup = base_threads * base / found.best
        rows.append(
            {
                "engine": engine,
                "threads": int(threads),
                "best_seconds": found.best,
                "mean_seconds": found.mean,
                "speedup": speedup,
                "efficiency": speedup / int(threads),
            }
        )
    return rows


def scaling_table(rows: list[dict[str, Any]]) -> str:
    """The rows as text."""
    cells = [
        [
            row["engine"], str(row["threads"]), seconds(row["best_seconds"]), seconds(row["mean_seconds"]),
            f"{row['speedup']:.2f}", f"{row['efficiency']:.0%}",
        ]
        for row in rows
    ]  # fmt: skip
    return table(["engine", "threads", "best", "mean", "speed-up", "efficiency"], cells)


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["engine"] for row in rows))
