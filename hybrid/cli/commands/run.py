"""``run``: the job of a configuration file, and the short account of it in the terminal."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from hybrid.cli.commands.options import add_config_options, config_from, launch_ranks
from hybrid.config import require_ranks
from hybrid.config.schema import DEFAULT_JOB_RANKS, Config, GraphConfig
from hybrid.errors import EXIT_OK
from hybrid.launch.environment import agreed_ranks, detect_mpi_environment
from hybrid.terminal import count, figure, note, plural, rate, say, seconds, table

_MOST_ROWS = 16
_LARGE_EDGES, _LARGE_BYTES = 1 << 24, 1 << 27  # from here on the launcher asks for the memory itself
_MOST_REPAIRS = 4
_GO_ON = "to go on, --set pagerank.iterations=N with a larger N, or pagerank.tolerance"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    parser.add_argument("--output", metavar="DIR", help="result folder (default: a fresh one under results/)")


def execute(options: argparse.Namespace) -> int:
    world = detect_mpi_environment(os.environ)
    config = config_from(options, {"output": options.output}, _default_job(options) if world is None else None)
    if config.ranks > 1 or (world is not None and world.size > 1):
        require_ranks(config)
    if world is None and config.ranks > 1:
        return _launch(config, options)
    if world is None and _ranks_left_open(options):
        note(
            f"one rank, because there is no --config; the default job (configs/cluster.yaml) has {DEFAULT_JOB_RANKS}: "
            f"--set ranks={DEFAULT_JOB_RANKS}"
        )
    # Not at the top: numba takes its time, and --help needs none of it.
    if world is not None and agreed_ranks(config.ranks, world) > 1:
        from hybrid.ranks.process import run_on_ranks

        finished = run_on_ranks(replace(config, ranks=world.size), world)
    else:
        from hybrid.job.driver import run_job

        if _is_large(config.graph):
            _require_room(config.graph)  # before there is a result folder or a worker
        finished = run_job(config)
    if finished is not None:
        say(account(cast(dict[str, Any], finished.summary), finished.folder))
    return EXIT_OK


def _default_job(options: argparse.Namespace) -> dict[str, object]:
    """What the default job has besides the schema's defaults: `run` alone does what `make run` does."""
    return {"ranks": DEFAULT_JOB_RANKS} if options.config is None and not options.overrides else {}


def _ranks_left_open(options: argparse.Namespace) -> bool:
    """Whether neither a file nor ``--set`` says anything about the number of ranks."""
    return options.config is None and not any(word.split("=")[0].strip() == "ranks" for word in options.overrides)


def arguments_of(options: argparse.Namespace) -> list[str]:
    """The command line that these options came from."""
    words = ["run"]
    words += [] if options.config is None else ["--config", options.config]
    for override in options.overrides:
        words += ["--set", override]
    words += [] if options.output is None else ["--output", options.output]
    return words + (["--verbose"] if options.verbose else [])


def _launch(config: Config, options: argparse.Namespace) -> int:
    """Start the ranks, pass on what they say, and give the result its name when all of them have ended well."""
    from hybrid.launch.command import elsewhere, this_machine
    from hybrid.launch.output import LaunchOutput
    from hybrid.results.folder import read_summary, sweep_partials

    if _is_large(config.graph) and not elsewhere(config.cluster, this_machine()):
        _require_room(config.graph)
    output = LaunchOutput()
    try:
        code = launch_ranks(config, arguments_of(options), output)
    finally:  # mpirun may drop the announcement of a rank that is killed a moment later
        sweep_partials(Path(config.output or "results/new").parent, os.getpid())
    if code == EXIT_OK and output.folder is not None:
        folder = Path(output.folder[1])
        say(account(read_summary(folder), folder))
    return code


def _require_room(config: GraphConfig) -> None:
    from hybrid.graphs.opening import require_room_to_open  # numba: a launcher of small jobs does without

    require_room_to_open(config)


def _is_large(config: GraphConfig) -> bool:
    """Whether the graph may not fit into memory, at a first look that costs nothing."""
    made = config.generator
    if config.path is None:
        return (2 * made.rows * made.cols if made.kind == "grid" else made.edge_factor << made.scale) > _LARGE_EDGES
    try:
        return os.path.getsize(config.path) > _LARGE_BYTES
    except OSError:
        return False


def account(summary: dict[str, Any], folder: Path) -> str:
    """The result in a screenful."""
    tell = _tell_bfs if summary["algorithm"] == "bfs" else _tell_other
    first = _graph_line(summary), *_npu_lines(summary), *_ranks_line(summary.get("ranks"))
    return "\n".join([*first, *tell(summary), *_last_lines(summary, folder)])


def _tell_bfs(summary: dict[str, Any]) -> list[str]:
    npu = summary["npu"]
    shared, waits = npu["mode"] != "off", npu["mode"] != "off" or "ranks" in summary
    rows = []
    for run in summary["runs"][:_MOST_ROWS]:
        rounds = f"{run['npu']['rounds_merged']}/{run['npu']['rounds_sent']}"
        rows.append([
            str(run["source"]), count(run["reached"]), str(run["max_level"]), seconds(run["seconds"]["traverse"]),
            *([seconds(run["seconds"]["waited"])] if waits else []),
            rate(run["teps"]) + "TEPS",
            *([rounds, count(run["npu"]["values_adopted"])] if shared else []),
            "yes" if run["certified"] else "NO",
        ])  # fmt: skip
    headings = ["source", "reached", "depth", "time", *(["of it waiting"] if waits else []), "speed",
                *(["rounds", "adopted"] if shared else []), "certified"]  # fmt: skip
    lines = ["", table(headings, rows)]
    if len(summary["runs"]) > _MOST_ROWS:
        lines.append(f"... and {len(summary['runs']) - _MOST_ROWS} more in summary.json")
    lines += ["", *_verdict_line(summary)]
    if "cpu_only_seconds" in (summary.get("predicted") or {}):
        lines.append(f"planner  {prediction_text(summary['predicted'])}")
    return lines


def _tell_other(summary: dict[str, Any]) -> list[str]:
    """Of the other algorithms: what each found, in its own facts."""
    options = ", ".join(f"{name} {'default' if value is None else value}" for name, value in summary["options"].items())
    spent, sourced = summary["seconds"], [run for run in summary["runs"][:_MOST_ROWS] if "source" in run]
    lines = [*([f"options  {options}"] if options else []), ""]
    if sourced:
        rows = [
            [str(run["source"]), *map(figure, run["facts"].values()),
             *(seconds(run["seconds"][name]) for name in ("run", "certify"))]
            for run in sourced
        ]  # fmt: skip
        lines += [table(["source", *sourced[0]["facts"], "time", "certify"], rows), ""]
    return [
        *lines,
        f"found    {summary['headline']}",
        *([f"limit    not converged: {summary['unfinished']}; {_GO_ON}"] if summary.get("unfinished") else []),
        f"time     {seconds(spent['run'])}; checked in {seconds(spent['certify'])}",
        *_verdict_line(summary),
    ]


def _verdict_line(summary: dict[str, Any]) -> list[str]:
    return [f"verdict  {summary['verdict']['text']}"] if summary["verdict"] else []


def _npu_lines(summary: dict[str, Any]) -> list[str]:
    """What the core solver had and did; of BFS in two lines."""
    bfs, npu = summary["algorithm"] == "bfs", summary["npu"]
    core = summary["core"] if bfs else npu.get("core")
    if core is None or npu["mode"] == "off":
        return [f"npu      {npu['outcome']}", *([] if bfs else _start_line(summary))]
    held = f"{plural(core['edges'], 'edge')}, density {core['density']:.1%}"
    device = f"npu      mode {npu['mode']}, device {npu['device']}"
    if not bfs:
        lines = [f"{device}; {plural(core['size'], 'core vertex')}, {held}; {npu['outcome']}"]
    else:
        size = plural(core["size"], "vertex")
        lines = [f"core     {size}, {held}; {core['rule']}", f"{device}; {npu['outcome']}"]
    return [*lines, *_start_line(summary)]


def _start_line(summary: dict[str, Any]) -> list[str]:
    """How long the worker took to start, and how long the job waited for it before the first search."""
    started, awaited = summary["npu"].get("start_seconds"), summary["seconds"].get("await_worker")
    if started is None:
        return []
    waited = f", the job waited {seconds(awaited)} for it and a first answer" if awaited else ""
    return [f"start    the worker was ready after {seconds(started)}{waited}; the times of the runs do not include it"]


def _graph_line(summary: dict[str, Any]) -> str:
    graph, spent = summary["graph"], summary["seconds"]
    direction = "directed" if graph["directed"] else "undirected"
    if graph.get("directed_assumed"):
        direction += " (assumed)"
    opened = f"opened in {seconds(spent['open'])}" if graph["from_store"] else f"built in {seconds(spent['build'])}"
    return (
        f"graph    {graph['name']}: {plural(graph['vertices'], 'vertex')} ({count(graph['isolated'])} isolated), "
        f"{plural(graph['edges'], 'edge')}, {direction}; {opened}"
    )


def _last_lines(summary: dict[str, Any], folder: Path) -> list[str]:
    place = os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else folder
    certified = f"yes{_how_checked(summary)}" if summary["certified"] else "NO"
    lines = [_repair_line(one) for one in summary["repairs"][:_MOST_REPAIRS]]
    if len(summary["repairs"]) > _MOST_REPAIRS:
        lines.append(f"... and {len(summary['repairs']) - _MOST_REPAIRS} more repairs in summary.json")
    lines += [f"hint     {summary['hint']}"] if "hint" in summary else []
    warning = summary.get("machine", {}).get("warning")
    lines += [f"machine  {warning}"] if warning else []
    total = f"total    {seconds(summary['seconds']['total'])}; certified: {certified}"
    return [*lines, total, f"result   {place}"]


def _how_checked(summary: dict[str, Any]) -> str:
    """How far the check went; for BFS it is always a proof."""
    if "check" not in summary:
        return ""
    from hybrid.algorithms.algorithm import check_text  # numba: a launcher of a BFS does without

    return f" ({check_text(summary['check'])})"


def _repair_line(repair: dict[str, Any]) -> str:
    source = "" if repair["source"] is None else f" from {repair['source']}"
    kept = f"kept in {repair['record']}" if repair["record"] else "nothing could be kept of it"
    again = f"the result failed its check, was computed again by {repair['method']}, and passed; {kept}"
    return f"repaired {repair['algorithm']}{source}: {again}"


def prediction_text(predicted: dict[str, Any]) -> str:
    """Predicted beside measured, in a line."""
    ways = []
    for name, way in (("cpu_only", "CPU-only"), ("hybrid", f"hybrid ({predicted['mode']})")):
        expected, measured = predicted.get(f"{name}_seconds"), predicted.get(f"measured_{name}_seconds")
        if expected is not None:
            beside = "" if measured is None else f" (measured {seconds(measured)})"
            ways.append(f"{way} {seconds(expected)}{beside}")
    truth = "measured here" if predicted["kind"] == "measured" else "a model, not measured"
    return f"predicted {', '.join(ways)}; device {predicted['device']}, {truth}"


def _ranks_line(ranks: dict[str, Any] | None) -> list[str]:
    if ranks is None:
        return []
    totals, pairs = ranks["totals"], ranks["bytes_against_pairs"]
    machines = "one machine" if len(ranks["hosts"]) == 1 else plural(len(ranks["hosts"]), "machine")
    saved = "" if pairs is None else f", {pairs:.2f} of (id, value) pairs"
    return [
        f"ranks    {ranks['ranks']} on {machines}; {ranks['policy']}, {ranks['sync']}, replication "
        f"{ranks['replication']:.2f}, load imbalance {ranks['load_imbalance']:.2f}; "
        f"{plural(totals.get('bytes', 0), 'byte')} in {plural(totals.get('messages', 0), 'message')}{saved}"
    ]
