"""``tune``: sweep cores, devices, engines and modes against the CPU alone; plots, and a recommendation."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.cli.commands import options as shared
from hybrid.config import dump_config
from hybrid.config.schema import Config
from hybrid.devices.machine_facts import MachineState
from hybrid.devices.profiles import ORACLE, PROFILES, SIMULATED, parse_device
from hybrid.errors import EXIT_OK, ConfigError
from hybrid.results.folder import fresh_names
from hybrid.terminal import count, note, plural, say, seconds, table

if TYPE_CHECKING:
    from hybrid.experiments.tune.points import Point
    from hybrid.experiments.tune.sweep import Grid, Sweep

_REAL = ("auto", "ascend", "cpu")
_CONFIGURED = "configured"
_NOT_SWEPT = ("output", "result", "ranks", "cluster")  # none of these is in a sweep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cores = parser.add_mutually_exclusive_group()
    cores.add_argument(
        "--sizes", metavar="K", type=int, nargs="+", help="core sizes (default: 0, 64, 128, ... to core.max_bytes)"
    )
    cores.add_argument(
        "--thresholds", metavar="DEGREE", type=int, nargs="+", help="cores by smallest degree instead of size"
    )
    parser.add_argument(
        "--engines", nargs="+", choices=("async", "level"), help="engines to sweep (default: the configured one)"
    )
    devices = (
        f"{_CONFIGURED} (npu.device), {', '.join(_REAL)}, or simulated ones: {', '.join(PROFILES)}, this-machine, "
    )
    devices += f"{ORACLE}, a delay such as 500us (default: {{}})"
    shared.add_several(parser, "--devices", "DEVICE", (_CONFIGURED, ORACLE), devices)
    parser.add_argument(
        "--modes", nargs="+", choices=("share", "race"), default=["share", "race"], help="(default: share race)"
    )
    curve = "of the break-even curve (default: {}; nothing = no curve)"
    shared.add_several(parser, "--delays", "TIME", ("20us", "100us", "500us", "2ms"), curve, nargs="*")
    at_once = "searches at once: 1 = by the engines, more = bit-parallel, one round for all (default: {})"
    shared.add_several(parser, "--batches", "B", (1,), at_once)
    parser.add_argument("--repeats", metavar="N", type=int, help="times each search is measured (compare.repeats)")
    parser.add_argument(
        "--output", metavar="DIR", help="folder; one with points is gone on with (default: a fresh one)"
    )
    parser.add_argument("--apply", metavar="FILE", help="write the configuration with the recommended setting")
    parser.add_argument("--force", action="store_true", help="--apply may replace a file")
    shared.add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    machine = MachineState.now()
    config = _config(options)
    devices = [_device(config, name) for name in options.devices]
    delays = [_delay(name) for name in options.delays]
    if any(parse_device(device) is None for device in devices) and config.npu.worker == "external":
        raise ConfigError(
            "npu.worker: a sweep starts its workers itself",
            value=config.npu.worker,
            fix="--set npu.worker=launch, or simulated --devices only",
        )
    # Not at the top: numba takes its time, and --help needs none of it.
    from hybrid.experiments.tune.advice import apply_advice, break_even_curves, noise_text, recommend, refuse_existing
    from hybrid.experiments.tune.points import Journal
    from hybrid.experiments.tune.report import HTML_NAME, Findings, write_findings
    from hybrid.experiments.tune.sweep import Grid, Sweep, core_sizes
    from hybrid.graphs.sources import resolve_sources

    if options.apply is not None:
        refuse_existing(Path(options.apply), options.force)
    opened = shared.open_configured(config)
    sources = resolve_sources(opened.graph, config)
    sizes = core_sizes(opened.graph, config, options.sizes, options.thresholds)
    engines = tuple(dict.fromkeys(options.engines or [config.engine]))
    batches = _batches(options.batches, len(sources))
    grid = Grid(sizes, engines, tuple(dict.fromkeys(devices)), tuple(dict.fromkeys(options.modes)), batches)
    identity = {**shared.identity_of(opened), "config": _swept(config)}
    journal = Journal(Path(options.output) if options.output is not None else next(fresh_names("tune")))
    points = _measure(Sweep(config, opened.graph, sources, journal), identity, grid, delays)
    advice, curves = recommend(points, config), break_even_curves(points)
    found = Findings(identity, dump_config(config), points, curves, advice, shared.written_now(), machine.warning())
    write_findings(journal.folder, found)
    say(account(points))
    for curve in curves:
        say(curve.sentence)
    if noise := noise_text(points):
        say(noise)
    if found.warning:
        say(f"machine  {found.warning}")
    say(f"\n{advice.sentence}")
    say(f"report   {journal.folder / HTML_NAME}")
    if options.apply is not None:
        apply_advice(Path(options.apply), config, advice, options.force)
        say(f"applied  {options.apply}")
    return EXIT_OK


def _measure(sweep: Sweep, identity: dict[str, Any], grid: Grid, delays: list[str]) -> list[Point]:
    """All points of the grid and of the break-even curves; those that an earlier sweep left in the folder count."""
    from hybrid.experiments.tune.advice import break_even_settings
    from hybrid.experiments.tune.sweep import break_even_points

    journal = sweep.journal
    try:
        journal.open(identity)
        if journal.points:
            note(f"{plural(len(journal.points), 'point')} found of an earlier run; what is missing is measured")
        points = sweep.run(grid.settings(), _note_point, break_even_points(grid, delays))
        if delays:
            sweep.run(break_even_settings(points, grid.modes, delays), _note_point)
        known = {one.setting for one in points}
        return points + [one for one in journal.points.values() if one.setting not in known and one.good]
    except KeyboardInterrupt:
        if journal.points:
            note(f"finished points are kept; to go on: the same command with --output {journal.folder}")
        raise
    finally:
        sweep.close()
        journal.close()


def account(points: Sequence[Point]) -> str:
    """All points in a table."""
    rows = []
    for one in points:
        first = [one.setting.engine, one.setting.device, one.setting.mode, count(one.setting.k), f"{one.part:.1%}"]
        if one.good:
            low, high = one.spread
            predicted = "" if one.predicted_s is None else seconds(one.predicted_s)
            rows.append([
                *first, seconds(one.cpu_only_s), seconds(one.hybrid_s), f"{one.gain:.2f}x", f"{low:.2f}-{high:.2f}",
                count(round(one.values_adopted)), count(round(one.edges_hybrid)), predicted, count(one.certified),
            ])  # fmt: skip
        else:
            rows.append([*first, "failed", *[""] * 7])
    heads = ["engine", "device", "mode", "core", "edges", "CPU-only", "hybrid", "gain", "interval", "adopted",
             "looked at", "predicted", "certified"]  # fmt: skip
    failures = dict.fromkeys(f"failed   {one.setting.describe()}: {one.failure}" for one in points if not one.good)
    return "\n".join([table(heads, rows), *failures])


def _note_point(at: int, of: int, point: Point) -> None:
    if point.good:
        outcome = f"CPU-only {seconds(point.cpu_only_s)}, hybrid {seconds(point.hybrid_s)} ({point.gain:.2f}x)"
    else:
        outcome = f"failed: {point.failure}"
    note(f"[{at}/{of}] {point.setting.describe()}: {outcome}")


def _config(options: argparse.Namespace) -> Config:
    """The configuration on one rank, which is all that a sweep runs on."""
    shared.refuse_launcher("tune")
    config = shared.config_from(options, {"compare.repeats": options.repeats})
    if config.ranks > 1:
        note(f"tune runs on one rank; ranks: {config.ranks} of the configuration is not used (--set ranks=1 says so)")
        config = replace(config, ranks=1)
    return config


def _device(config: Config, name: str) -> str:
    """The configuration's word for what ``--devices`` names."""
    if name in (_CONFIGURED, *_REAL):
        return config.npu.device if name == _CONFIGURED else name
    device = SIMULATED + name.removeprefix(SIMULATED)
    try:
        parse_device(device)
    except ValueError as error:
        known = [_CONFIGURED, *_REAL, *PROFILES, ORACLE]
        near = difflib.get_close_matches(name.removeprefix(SIMULATED), known, 1)
        fix = f"did you mean {near[0]}?" if near else f"name {_CONFIGURED}, {', '.join(_REAL)} or one of these"
        raise ConfigError(f"--devices: {error}", value=name, fix=fix) from None
    return device


def _batches(asked: Sequence[int], sources: int) -> tuple[int, ...]:
    for batch in asked:
        if not 1 <= batch <= sources:
            raise ConfigError(
                f"--batches: the job has {plural(sources, 'source')}",
                value=batch,
                fix=f"give 1 to {sources}, or more sources: --set source=random:{max(1, batch)}",
            )
    return tuple(dict.fromkeys(asked))


def _delay(name: str) -> str:
    device = SIMULATED + name.removeprefix(SIMULATED)
    return shared.parse_delay("--delays", name, device, "500us or 2ms").label


def _swept(config: Config) -> dict[str, Any]:
    """What of the configuration all points of a folder have in common."""
    return {name: value for name, value in asdict(config).items() if name not in _NOT_SWEPT}
