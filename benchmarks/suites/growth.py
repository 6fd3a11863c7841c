"""``bench growth``: how build and BFS grow with the graph, ours and the peers', one contest per scale."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.contest.bfs_contest import run_contest
from benchmarks.contest.workload import config_of, open_workload, set_threads
from benchmarks.output import Report, memory_text, ratio_text
from benchmarks.peers import Peer
from benchmarks.plot import Series, draw_lines
from hybrid.errors import ConfigError
from hybrid.terminal import count, note, rate, seconds, table


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    steps: list[dict[str, Any]] = []
    absent: list[Peer] = []
    for scale in sorted(set(options.scales)):
        note(f"{options.kind}, scale {scale}")
        contest = run_contest(open_workload(config_of(options, **size_of(options.kind, scale))), options)
        steps.append({"scale": scale, "graph": contest.workload.as_dict(), "contestants": contest.rows()})
        absent = contest.absent
    report = Report("growth", {"threads": options.threads, "steps": steps}, absent=absent)
    report.lines += [growth_table(steps), "", "edges/s: edges of the whole graph per second of the best BFS"]
    report.lines += [
        f"scale {step['scale']}: {row['name']} is not ranked: {row['problem']}"
        for step in steps
        for row in step["contestants"]
        if row["problem"]
    ]
    names = dict.fromkeys(row["name"] for step in steps for row in step["contestants"] if "best_seconds" in row)
    report.charts.append(
        draw_lines(
            f"BFS on {options.kind} graphs, {options.threads} threads",
            "best seconds per traversal against edges, both logarithmic",
            [Series(name, _points(steps, name, "best_seconds")) for name in names],
            x_label="edges", x_logarithmic=True,
        )
    )  # fmt: skip
    built = [(step["graph"]["edges"], step["graph"]["build_seconds"]) for step in steps]
    report.charts.append(
        draw_lines(
            "Tandem's build from the edge list", "seconds against edges, both logarithmic",
            [Series("tandem", built)], x_label="edges", x_logarithmic=True,
        )
    )  # fmt: skip
    return report


def size_of(kind: str, scale: int) -> dict[str, int]:
    """The generator keys of a graph with about ``2**scale`` vertices."""
    if scale < 1:
        raise ConfigError("a scale must be at least 1", value=scale, fix="use 10 or more")
    if kind == "grid":
        return {"rows": 1 << (scale // 2), "cols": 1 << (scale - scale // 2)}
    return {"scale": scale}


def growth_table(steps: list[dict[str, Any]]) -> str:
    """One row per scale and contestant."""
    cells = []
    for step in steps:
        graph = step["graph"]
        for row in step["contestants"]:
            if "best_seconds" not in row:
                continue
            cells.append(
                [
                    str(step["scale"]), count(graph["edges"]), row["name"], seconds(row["best_seconds"]),
                    seconds(row["mean_seconds"]), ratio_text(row["times_baseline"]),
                    rate(graph["edges"] / row["best_seconds"]), _prepared(row), memory_text(row["peak_bytes"]),
                ]
            )  # fmt: skip
    headings = ["scale", "edges", "contestant", "best", "mean", "x level", "edges/s", "prepare", "memory"]
    return table(headings, cells)


def _prepared(row: dict[str, Any]) -> str:
    return "" if row["prepare_seconds"] is None else seconds(row["prepare_seconds"])


def _points(steps: list[dict[str, Any]], name: str, key: str) -> list[tuple[float, float]]:
    return [
        (step["graph"]["edges"], row[key])
        for step in steps
        for row in step["contestants"]
        if row["name"] == name and key in row
    ]
