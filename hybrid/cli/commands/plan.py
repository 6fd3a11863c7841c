"""``plan``: what a device would bring on a graph, core by core, and what ``npu.mode: auto`` would make of it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from hybrid.cli.commands.options import add_config_options, add_graph_argument, config_from, graph_line, open_named
from hybrid.config.schema import Config
from hybrid.devices.profiles import PROFILES, SIMULATED, Simulation, parse_device
from hybrid.errors import EXIT_OK, ConfigError, EnvironmentProblem
from hybrid.terminal import count, note, plural, say, seconds, table

if TYPE_CHECKING:
    from hybrid.planning.core_statistics import CoreStatistics
    from hybrid.planning.planner import Prediction, Surroundings

_GENERATOR = {"kind": str, "scale": int, "edge_factor": int, "seed": int, "rows": int, "cols": int}
_MOST = 65_536  # a matrix of 4 GiB in 1 byte, 16 in 4: no larger core is worth a row
_ALGORITHMS = ("bfs", "pagerank")
_WITHOUT_CALIBRATION = "ascend-910"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_graph_argument(parser)
    parser.add_argument(
        "--device",
        metavar="PROFILE",
        help=f"{', '.join(PROFILES)}, this-machine, oracle or a time such as 500us; `:direct` behind it = no "
        "files (default: the calibrated one of this machine)",
    )
    parser.add_argument(
        "--batch", metavar="B", type=int, nargs="+", default=[1], help="searches at once, one or several (default 1)"
    )
    parser.add_argument("--algorithm", choices=_ALGORITHMS, default="bfs", help="what is predicted (default bfs)")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    group = parser.add_argument_group("a generated graph instead")
    for name, kind in _GENERATOR.items():
        choices = ("kronecker", "uniform", "grid") if name == "kind" else None
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, choices=choices, help=f"graph.generator.{name}")
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    config = _config(options)
    profile = _profile(options.device)
    if min(options.batch) < 1:
        raise ConfigError("--batch: not a number of searches", value=min(options.batch), fix="give 1 or more")
    # Not at the top: numba takes its time, and --help needs none of it.
    from hybrid.planning.planner import best_of
    from hybrid.planning.prediction import surroundings

    here = surroundings(config, profile)
    if here.device is None:
        note(f"this machine is not calibrated, so {_WITHOUT_CALIBRATION} is shown. Fix: run `python run.py calibrate`")
        here = surroundings(config, _profile(_WITHOUT_CALIBRATION))
    opened = open_named(config)
    if not opened.graph.m:
        raise EnvironmentProblem("the graph has no edges, so there is nothing to plan", fix="choose another graph")
    batches = options.batch if options.algorithm == "bfs" else [1]
    found = [plan_batch(opened.graph, config, here, batch, options.algorithm) for batch in batches]
    if options.json:
        tables = [{**one.as_dict(), "candidates": [asdict(row) for row in one.candidates]} for one, _ in found]
        graph = {"name": opened.name, "n": opened.graph.n, "m": opened.graph.m}
        say(json.dumps({**graph, "predictions": tables}, indent=1))
        return EXIT_OK
    say(graph_line(opened))
    say(_describe_device(here))
    for prediction, statistics in found:
        say(render(prediction, statistics, config))
    if len(found) > 1:
        best = best_of([one for one, _ in found])
        each = seconds(best.seconds / best.batch)
        say(f"\nof these, {best.batch} at once takes least per search: {each} ({best.mode})")
    say(f"\n{_LEGEND}")
    return EXIT_OK


def plan_batch(
    graph: Any, config: Config, here: Surroundings, batch: int, algorithm: str
) -> tuple[Prediction, CoreStatistics]:
    """Measure a search (or ``batch`` of them at once) on the CPU, and predict every core."""
    from hybrid.job.warm_up import say_if_slow, warm_up
    from hybrid.planning.core_statistics import core_statistics
    from hybrid.planning.planner import candidate_sizes, predict
    from hybrid.planning.prediction import search_count, typical_search

    assert here.device is not None
    statistics = core_statistics(graph, _MOST)
    if algorithm == "bfs":
        if batch == 1:
            warm_up(config.engine, config.bfs.strategy)
        with say_if_slow(f"measuring {'a search' if batch == 1 else f'{batch} searches at once'} on the CPU"):
            statistics = replace(statistics, search=typical_search(graph, config, statistics.limit, batch))
    elif here.rates is None:
        raise EnvironmentProblem(
            f"{algorithm} is predicted from the CPU's rates, which were not measured on this machine",
            fix="run `python run.py calibrate`",
        )
    sizes = candidate_sizes(statistics, here.device, batch)
    searches = search_count(config, graph.n) if config.npu.index != "off" and algorithm == "bfs" else 0
    uses = -(-searches // batch)
    return predict(statistics, here, sizes, algorithm, uses), statistics


def render(prediction: Prediction, statistics: CoreStatistics, config: Config) -> str:
    """The table, what it was made of, and the choice in words."""
    from hybrid.planning.plan import CELL_BYTES, largest_core

    searched = ""
    if statistics.search is not None:
        search = statistics.search
        looked_at = f"{plural(search.edges, 'edge')} looked at in {plural(search.steps, 'step')}"
        searched = f"; {looked_at}, {search.looks:.1f} per vertex"
    what = prediction.algorithm if prediction.batch == 1 else f"{prediction.algorithm}, {prediction.batch} at once"
    rows = [
        [count(one.k), count(one.threshold), count(one.inside), f"{one.part:.1%}", f"{one.density:.2%}",
         *map(seconds, (one.saved_s, one.round_s, one.merge_s, one.race_s, one.share_s)),
         f"{prediction.cpu_only_s / one.hybrid_s:.2f}x" if one.hybrid_s > 0 else "",
         *("" if taken is None else seconds(taken) for taken in (one.index_s, one.index_made_s))]
        for one in prediction.candidates
    ]  # fmt: skip
    lines = [
        f"\n{what}: CPU-only {seconds(prediction.cpu_only_s)} ({prediction.basis}{searched})",
        table(_HEADINGS, rows),
        f"choice: {prediction.mode}; {prediction.reason}",
    ]
    if prediction.mode != "off" and prediction.algorithm == "bfs":
        settings = [f"npu.mode={prediction.mode}", f"core.size={prediction.k}"]
        if prediction.k > largest_core(config.core):
            settings.append(f"core.max_bytes={CELL_BYTES * prediction.k * prediction.k}")
        settings += [f"npu.batch={prediction.batch}"] if prediction.batch > 1 else []
        settings += ["npu.index=on"] if prediction.index else []
        lines.append("to run it:" + "".join(f" --set {one}" for one in settings))
    indexed = [one for one in prediction.candidates if one.index_s is not None and one.index_s < one.hybrid_s]
    if indexed:
        best = min(indexed, key=lambda one: one.index_s or 0.0)
        gain = prediction.cpu_only_s / best.index_s if best.index_s else 1.0
        lines.append(
            f"with the core's index (npu.index) instead of rounds: {seconds(best.index_s or 0.0)} at k = "
            f"{count(best.k)}, {gain:.2f}x"
        )
    return "\n".join(lines)


_HEADINGS = (
    "core", "degree from", "edges inside", "of all", "density",
    "CPU on them", "round", "merge", "race", "share", "gain", "by index", "index made",
)  # fmt: skip
_LEGEND = """CPU on them: what of the CPU-only time goes into edges inside the core, the most that can be saved.
round: from values out to closed values back. merge: what the CPU needs to take them over.
race: the CPU does everything, and merges an answer that is in time.
share: the edges inside are the device's, the others the CPU's. gain: CPU-only against the better of the two.
by index: share with the distances inside the core, made once (index made) by the device, instead of rounds.
Mode auto wants a gain of more than 10 % of the CPU-only time, and of 200 us (docs/explanation/planner.md)."""


def _describe_device(here: Surroundings) -> str:
    device = here.device
    assert device is not None
    files = "included in the time" if device.delay_s is not None else here.format
    if device.delay_s is None and here.format != "direct":
        files += ", measured here" if device.exchange.measured else ", usual figures, not measured here"
    return f"device {device.describe()}; {device.source}; exchange: {files}"


def _profile(name: str | None) -> Simulation | None:
    if name is None:
        return None
    try:
        return parse_device(SIMULATED + name.removeprefix(SIMULATED))
    except ValueError as error:
        raise ConfigError(f"--device: {error}", value=name, fix="name one of these") from None


def _config(options: argparse.Namespace) -> Config:
    given = {f"graph.generator.{name}": getattr(options, name) for name in _GENERATOR}
    if all(value is None for value in given.values()):
        return config_from(options)
    if options.graph is not None:
        raise ConfigError(
            "a graph is named, and one to generate as well", value=options.graph, fix="leave out one of them"
        )
    config = config_from(options, given)
    return replace(config, graph=replace(config.graph, path=None))
