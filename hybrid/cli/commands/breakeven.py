"""``breakeven``: gain over a device's latency and rate, by algorithm, core and batch; down to the oracle."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.cli.commands import options as shared
from hybrid.devices.machine_facts import MachineState
from hybrid.devices.profiles import PROFILES, SIMULATED
from hybrid.errors import EXIT_OK, ConfigError, EnvironmentProblem
from hybrid.results.folder import fresh_names
from hybrid.terminal import count, note, say, seconds, table

if TYPE_CHECKING:
    from hybrid.experiments.breakeven.experiment import Point

_ALGORITHMS = ("bfs", "bfs-batch", "pagerank", "ppr-batch")
_SIZES = (1024, 4096)
_BATCHES = (64,)
_LATENCIES = ("0us", "50us", "300us", "3ms")
_RATES = ("any", "100")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--algorithms", nargs="+", choices=_ALGORITHMS, default=list(_ALGORITHMS), help="(default: all)"
    )
    shared.add_several(parser, "--sizes", "K", _SIZES, "core sizes (default: {})")
    shared.add_several(parser, "--batches", "B", _BATCHES, "how many at once, for those that can (default: {})")
    shared.add_several(parser, "--latencies", "TIME", _LATENCIES, "of a round, for example 300us or 2ms (default: {})")
    shared.add_several(
        parser, "--rates", "TFLOPS", _RATES, "that a product reaches, `any` = infinitely many (default: {})"
    )
    parser.add_argument(
        "--devices", metavar="NAME", nargs="*", choices=tuple(PROFILES), default=[],
        help=f"published devices besides, by their figures: {', '.join(PROFILES)} (without files; where the core fits)",
    )  # fmt: skip
    parser.add_argument("--repeats", metavar="N", type=int, default=3, help="times each is measured (default 3)")
    parser.add_argument("--output", metavar="DIR", help="folder (default: a fresh one under results/)")
    shared.add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    machine = MachineState.now()
    shared.refuse_launcher("breakeven")
    config = replace(shared.config_from(options), ranks=1)
    latencies = [_latency(word) for word in options.latencies]
    rates = [_rate(word) for word in options.rates]
    for name, least in (("sizes", min(options.sizes)), ("batches", min(options.batches)), ("repeats", options.repeats)):
        if least < 1:
            raise ConfigError(f"--{name}: at least 1", value=least, fix="give 1 or more")
    folder = _output(options.output)
    # Not at the top: numba takes its time, and --help needs none of it.
    import numpy as np

    from hybrid.experiments.breakeven.experiment import Device, curves_of, measure
    from hybrid.experiments.breakeven.report import HTML_NAME, NOTE, write_break_even
    from hybrid.experiments.breakeven.workloads import make_workloads

    opened = shared.open_configured(config)
    graph = opened.graph
    if not graph.m:
        raise EnvironmentProblem("the graph has no edges, so there is nothing to measure", fix="choose another graph")
    sizes = sorted({min(k, graph.n) for k in options.sizes})
    reaching = np.flatnonzero(np.diff(graph.out_offsets)).astype(np.int64)
    roots = np.random.default_rng(config.source_seed).permutation(reaching)[: max(options.batches)]
    devices = [Device(latency, rate) for rate in sorted(rates, reverse=True) for latency in sorted(latencies)]
    devices += [Device(0.0, PROFILES[name].flops, name) for name in options.devices]
    workloads = make_workloads(options.algorithms, graph, roots, config.engine)
    points = measure(workloads, sizes, options.batches, devices, options.repeats, _note_point)
    where = shared.identity_of(opened)
    identity = {
        "host": where["host"], "threads": where["threads"], "written": shared.written_now(), "graph": where["graph"],
        "warning": machine.warning(),
    }  # fmt: skip
    write_break_even(folder, identity, points)
    say(account(points))
    for curve in curves_of(points):
        say(curve.sentence)
    if machine.busy:
        say(f"machine  {machine.warning()}")
    say(f"\n{NOTE}")
    say(f"report   {folder / HTML_NAME}")
    return EXIT_OK


def account(points: list[Point]) -> str:
    """All points in a table."""
    rows = []
    for one in points:
        low, high = one.spread
        rows.append([
            one.case.algorithm, count(one.case.k), count(one.case.batch), f"{one.inside:.1%}", one.case.device.name,
            seconds(one.compared.first_s), seconds(one.compared.second_s), f"{one.gain:.2f}x", f"{low:.2f}-{high:.2f}",
            "yes" if one.pays else "no",
        ])  # fmt: skip
    heads = ["algorithm", "core", "at once", "inside", "simulated device", "CPU-only", "hybrid", "gain", "interval",
             "pays"]  # fmt: skip
    return table(heads, rows)


def _note_point(point: Point) -> None:
    case = point.case
    at_once = f", {case.batch} at once" if case.batch > 1 else ""
    note(f"{case.algorithm}{at_once}, k = {count(case.k)}, {case.device.name}: {point.gain:.2f}x")


def _latency(word: str) -> float:
    if word in ("0", "0us", "0ms", "0s"):
        return 0.0
    return float(shared.parse_delay("--latencies", word, SIMULATED + word, "300us or 2ms").delay_s or 0.0)


def _rate(word: str) -> float:
    if word == "any":
        return math.inf
    try:
        rate = float(word)
    except ValueError:
        rate = math.nan
    if not rate > 0 or math.isinf(rate):
        raise ConfigError("--rates: not a number of TFLOPS", value=word, fix="for example 100, or `any`")
    return rate * 1e12


def _output(asked: str | None) -> Path:
    if asked is not None:
        folder = Path(asked)
        if folder.exists() and any(folder.iterdir()):
            raise ConfigError("--output: the folder is not empty", path=folder, fix="choose another name")
        return folder
    return next(fresh_names("breakeven"))
