"""``bench bfs``: our BFS and its peers on one graph, in turns."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.contest.bfs_contest import BASELINE, Contest, run_contest
from benchmarks.contest.workload import config_of, open_workload, set_threads
from benchmarks.output import Report, memory_text, ratio_text
from benchmarks.plot import Bar, Chart, draw_bars
from hybrid.terminal import count, plural, seconds, table


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    contest = run_contest(open_workload(config_of(options)), options)
    return report_of(contest, options)


def report_of(contest: Contest, options: argparse.Namespace) -> Report:
    """The contest as text, data and picture."""
    rows = contest.rows()
    graph = contest.workload.as_dict()
    report = Report(
        "bfs",
        {"graph": graph, "threads": options.threads, "baseline": BASELINE, "contestants": rows},
        absent=contest.absent,
    )
    report.lines += [describe_graph(graph), "", contest_table(rows)]
    report.lines += [f"{row['name']} is not ranked: {row['problem']}" for row in rows if row["problem"]]
    report.lines += [
        "",
        "best: mean over the start vertices of each one's fastest run; mean: of all runs; noise: mean / best",
        "prepare: Tandem builds from the edge list, GAP loads a .sg file, the others convert our finished rows",
    ]
    title = f"BFS on {graph['name']}, {options.threads} threads"
    report.charts.append(contest_chart(title, "traversal", "tandem level", rows))
    return report


def contest_chart(title: str, unit: str, baseline: str, rows: list[dict[str, Any]]) -> Chart:
    """A bar for each that was measured, compared with the baseline."""
    subtitle = f"best seconds per {unit}; x = times as long as {baseline}"
    return draw_bars(title, subtitle, [bar_of(row) for row in rows if "best_seconds" in row])


def describe_graph(graph: dict[str, Any]) -> str:
    """One line on the graph."""
    direction = "directed" if graph["directed"] else "undirected"
    vertices = f"{plural(graph['vertices'], 'vertex')} ({count(graph['isolated'])} isolated)"
    edges = plural(graph["edges"], f"{direction} edge")
    return f"{graph['name']}: {vertices}, {edges}; {plural(len(graph['roots']), 'start vertex')}"


def contest_table(rows: list[dict[str, Any]]) -> str:
    """The contestants that are ranked, fastest first."""
    headings = ["contestant", "threads", "best", "mean", "noise", "x level", "x user ids", "prepare", "memory"]
    return table(
        headings,
        [
            [
                row["name"],
                str(row["threads"] or ""),
                seconds(row["best_seconds"]),
                seconds(row["mean_seconds"]),
                f"{row['noise']:.2f}",
                ratio_text(row["times_baseline"]),
                ratio_text(row["times_mapped"]),
                "" if row["prepare_seconds"] is None else seconds(row["prepare_seconds"]),
                memory_text(row["peak_bytes"]),
            ]
            for row in rows
            if "best_seconds" in row
        ],
    )


def bar_of(row: dict[str, Any]) -> Bar:
    """A contestant as a bar: its time, and how many times ours."""
    times = ratio_text(row["times_baseline"])
    label = seconds(row["best_seconds"]) + (f" ({times})" if times else "")
    return Bar(row["name"], row["best_seconds"], label, ours=row["name"].startswith("tandem"))
