"""``run``: the job of a configuration file, and the short account of it in the terminal."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from hybrid.commands.options import add_config_options, config_from
from hybrid.config import require_algorithm_on_ranks, require_automatic_strategy
from hybrid.errors import EXIT_OK
from hybrid.schema import Config
from hybrid.terminal import count, figure, note, rate, say, seconds, table
from hybrid.world import agreed_ranks, detect_world

_MOST_ROWS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    parser.add_argument("--output", metavar="DIR", help="result folder (default: a fresh one under results/)")


def execute(options: argparse.Namespace) -> int:
    config = config_from(options, {} if options.output is None else {"output": options.output})
    world = detect_world(os.environ)
    if config.ranks > 1 or (world is not None and world.size > 1):
        require_algorithm_on_ranks(config)
        require_automatic_strategy(config)
    if world is None and config.ranks > 1:
        return _launch(config, options)
    # Not at the top: numba takes its time, and --help needs none of it.
    if world is not None and agreed_ranks(config.ranks, world) > 1:
        from hybrid.ranks_process import run_on_ranks

        finished = run_on_ranks(replace(config, ranks=world.size), world)
    else:
        from hybrid.job import run_job

        finished = run_job(config)
    if finished is not None:
        tell = account if finished.summary["algorithm"] == "bfs" else library_account
        say(tell(finished.summary, finished.folder))
    return EXIT_OK


def arguments_of(options: argparse.Namespace) -> list[str]:
    """The command line that these options came from."""
    words = ["run"]
    words += [] if options.config is None else ["--config", options.config]
    for override in options.overrides:
        words += ["--set", override]
    words += [] if options.output is None else ["--output", options.output]
    return words + (["--verbose"] if options.verbose else [])


def _launch(config: Config, options: argparse.Namespace) -> int:
    """Start the ranks; this process only passes on what they say."""
    from hybrid.launch import ask_flavour, build_launch, find_launcher, this_machine
    from hybrid.launch_process import run_launch

    launcher = find_launcher(config.cluster.mpirun)
    launch = build_launch(config, this_machine(), launcher, ask_flavour(launcher), arguments_of(options))
    for remark in launch.notes:
        note(remark)
    code, error = run_launch(launch, config.cluster.launch_timeout_s)
    if error is not None:
        raise error
    return code


def account(summary: dict[str, Any], folder: Path) -> str:
    """The result in a screenful."""
    core, npu = summary["core"], summary["npu"]
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
        _graph_line(summary),
        f"core     {count(core['size'])} vertices, {count(core['edges'])} edges, density {core['density']:.1%}; "
        f"{core['rule']}",
        f"npu      mode {npu['mode']}, device {npu['device']}; {npu['outcome']}",
        *([] if "ranks" not in summary else [_ranks_line(summary["ranks"])]),
        "",
        table(headings, rows),
    ]
    if len(summary["runs"]) > _MOST_ROWS:
        lines.append(f"... and {len(summary['runs']) - _MOST_ROWS} more in summary.json")
    lines.append("")
    if summary["verdict"] is not None:
        lines.append(f"verdict  {summary['verdict']['text']}")
    if "cpu_only_seconds" in (summary.get("predicted") or {}):
        lines.append(f"planner  {prediction_text(summary['predicted'])}")
    return "\n".join([*lines, *_last_lines(summary, folder)])


def library_account(summary: dict[str, Any], folder: Path) -> str:
    """The result of an algorithm of the library in a screenful."""
    options = ", ".join(f"{name} {'default' if value is None else value}" for name, value in summary["options"].items())
    spent = summary["seconds"]
    rows = [
        [
            str(run["source"]),
            *(figure(value) for value in run["facts"].values()),
            seconds(run["seconds"]["run"]),
            seconds(run["seconds"]["certify"]),
        ]
        for run in summary["runs"][:_MOST_ROWS]
        if "source" in run
    ]
    lines = [
        _graph_line(summary),
        _library_npu_line(summary["npu"]),
        *([] if "ranks" not in summary else [_ranks_line(summary["ranks"])]),
        *([f"options  {options}"] if options else []),
        "",
    ]
    if rows:
        lines += [table(["source", *summary["runs"][0]["facts"], "time", "certify"], rows), ""]
    lines += [
        f"found    {summary['headline']}",
        f"time     {seconds(spent['run'])}; checked in {seconds(spent['certify'])}",
    ]
    if summary["verdict"]:
        lines.append(f"verdict  {summary['verdict']['text']}")
    return "\n".join([*lines, *_last_lines(summary, folder)])


def _library_npu_line(npu: dict[str, Any]) -> str:
    core = npu.get("core")
    if core is None:
        return f"npu      {npu['outcome']}"
    held = f"{count(core['size'])} core vertices, {count(core['edges'])} edges, density {core['density']:.1%}"
    return f"npu      mode {npu['mode']}, device {npu['device']}; {held}; {npu['outcome']}"


def _graph_line(summary: dict[str, Any]) -> str:
    graph, spent = summary["graph"], summary["seconds"]
    direction = "directed" if graph["directed"] else "undirected"
    if graph.get("directed_assumed"):
        direction += " (assumed: the file does not say; see graph.directed)"
    opened = f"opened in {seconds(spent['open'])}" if graph["from_store"] else f"built in {seconds(spent['build'])}"
    return (
        f"graph    {graph['name']}: {count(graph['vertices'])} vertices ({count(graph['isolated'])} isolated), "
        f"{count(graph['edges'])} edges, {direction}; {opened}"
    )


def _last_lines(summary: dict[str, Any], folder: Path) -> list[str]:
    place = os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else folder
    certified = "NO" if not summary["certified"] else f"yes ({summary['check']})" if "check" in summary else "yes"
    return [f"total    {seconds(summary['seconds']['total'])}; certified: {certified}", f"result   {place}"]


def prediction_text(predicted: dict[str, Any]) -> str:
    """Predicted beside measured, in a line."""
    told = []
    for name in ("cpu_only", "hybrid"):
        expected, measured = predicted.get(f"{name}_seconds"), predicted.get(f"measured_{name}_seconds")
        if expected is not None:
            beside = "" if measured is None else f" (measured {seconds(measured)})"
            way = "CPU-only" if name == "cpu_only" else f"hybrid ({predicted['mode']})"
            told.append(f"{way} {seconds(expected)}{beside}")
    truth = "measured here" if predicted["kind"] == "measured" else "a model, not measured"
    return f"predicted {', '.join(told)}; device {predicted['device']}, {truth}"


def _ranks_line(ranks: dict[str, Any]) -> str:
    totals, pairs = ranks["totals"], ranks["bytes_against_pairs"]
    machines = "one machine" if len(ranks["hosts"]) == 1 else f"{len(ranks['hosts'])} machines"
    saved = "" if pairs is None else f", {pairs:.2f} of (id, value) pairs"
    return (
        f"ranks    {ranks['ranks']} on {machines}; {ranks['policy']}, {ranks['sync']}, replication "
        f"{ranks['replication']:.2f}, load imbalance {ranks['load_imbalance']:.2f}; "
        f"{count(totals.get('bytes', 0))} bytes in {count(totals.get('messages', 0))} messages{saved}"
    )
