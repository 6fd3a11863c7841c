"""``run``: the job of a configuration file, and the short account of it in the terminal."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from hybrid.commands.options import add_config_options, config_from
from hybrid.errors import EXIT_OK
from hybrid.terminal import count, rate, say, seconds, table

_MOST_ROWS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    parser.add_argument("--output", metavar="DIR", help="result folder (default: a fresh one under results/)")


def execute(options: argparse.Namespace) -> int:
    from hybrid.job import run_job  # not at the top: numba takes its time, and --help needs none of it

    finished = run_job(config_from(options, {} if options.output is None else {"output": options.output}))
    say(account(finished.summary, finished.folder))
    return EXIT_OK


def account(summary: dict[str, Any], folder: Path) -> str:
    """The result in a screenful."""
    graph, core, npu, spent = summary["graph"], summary["core"], summary["npu"], summary["seconds"]
    direction = "directed" if graph["directed"] else "undirected"
    if graph.get("directed_assumed"):
        direction += " (assumed: the file does not say; see graph.directed)"
    opened = f"opened in {seconds(spent['open'])}" if graph["from_store"] else f"built in {seconds(spent['build'])}"
    rows = [
        [
            str(run["source"]),
            count(run["reached"]),
            str(run["max_level"]),
            seconds(run["seconds"]["traverse"]),
            seconds(run["seconds"]["waited"]),
            rate(run["teps"]) + "TEPS",
            f"{run['npu']['rounds_merged']}/{run['npu']['rounds_sent']}",
            count(run["npu"]["values_adopted"]),
            "yes" if run["certified"] else "NO",
        ]
        for run in summary["runs"][:_MOST_ROWS]
    ]
    headings = ["source", "reached", "depth", "time", "of it waiting", "speed", "rounds", "adopted", "certified"]
    lines = [
        f"graph    {graph['name']}: {count(graph['vertices'])} vertices ({count(graph['isolated'])} isolated), "
        f"{count(graph['edges'])} edges, {direction}; {opened}",
        f"core     {count(core['size'])} vertices, {count(core['edges'])} edges, density {core['density']:.1%}; "
        f"{core['rule']}",
        f"npu      mode {npu['mode']}, device {npu['device']}; {npu['outcome']}",
        "",
        table(headings, rows),
    ]
    if len(summary["runs"]) > _MOST_ROWS:
        lines.append(f"... and {len(summary['runs']) - _MOST_ROWS} more in summary.json")
    lines.append("")
    if summary["verdict"] is not None:
        lines.append(f"verdict  {summary['verdict']['text']}")
    lines.append(f"total    {seconds(spent['total'])}; certified: {'yes' if summary['certified'] else 'NO'}")
    lines.append(f"result   {os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else folder}")
    return "\n".join(lines)
