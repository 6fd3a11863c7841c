"""``calibrate``: measure the worker's device, the exchange and the CPU engines once; planner and models use it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from hybrid.cli.commands.options import add_config_options, config_from
from hybrid.devices.machine_facts import BUSY
from hybrid.errors import EXIT_OK, EnvironmentProblem
from hybrid.terminal import count, note, plural, rate, say, seconds, table

if TYPE_CHECKING:
    from hybrid.planning.calibration import Calibration

_MODELLED = (1024, 4096, 16384)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--show", action="store_true", help="measure nothing: show what was measured last")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    config = config_from(options)
    # Not at the top: numba takes its time, and --help needs none of it.
    from hybrid.planning.calibration import calibration_path, load_calibration, store_calibration

    if options.show:
        found = load_calibration()
        path = calibration_path()
        if found is None:
            raise EnvironmentProblem("nothing was measured on this machine", path=path, fix="run `tandem calibrate`")
    else:
        from hybrid.experiments.calibrate import measure
        from hybrid.job.warm_up import set_threads

        if config.threads != "auto":
            set_threads(int(config.threads))
        found = measure(config, lambda what: note(f"measuring: {what}"))
        path = store_calibration(found)
    say(json.dumps(asdict(found), indent=1) if options.json else f"{render(found)}\n\nkept in {path}")
    return EXIT_OK


def render(found: Calibration) -> str:
    """Everything measured, in tables; and what the models make of it, labelled."""
    device, cpu = found.device, found.cpu
    parts = [
        f"{found.host}: {plural(found.cpus, 'CPU')}, Tandem {found.tandem}, "
        f"measured {found.when} in {seconds(found.seconds)}",
        f"device {device.device} ({device.why}); MindSpore {device.mindspore}, {device.dtype}, "
        f"{plural(device.threads, 'thread')}; launch {seconds(device.launch_s)}",
        "",
        table(["matrix", "vectors", "time", "flop/s", "matrix bytes/s"], [
            [f"{count(one.k)} x {count(one.k)}", str(one.batch), seconds(one.seconds),
             rate(2 * one.k * one.k * one.batch / one.seconds),
             rate(device.cell_bytes * one.k * one.k / one.seconds)]
            for one in device.products
        ]),
        "",
        "rounds through the exchange directory, worker warm: values written -> answer checked",
        table(["files", "core", "edges", "round", "of it computed", "iterations", "first round", "core written"], [
            [one.format, count(one.k), count(one.edges), seconds(one.seconds), seconds(one.compute_s),
             str(one.iterations), seconds(one.first_s), seconds(one.publish_s)]
            for one in found.rounds
        ]),
        "",
        f"CPU engines, {plural(cpu.threads, 'thread')}: push {rate(cpu.push_edges_per_s)}edges/s, "
        f"pull {rate(cpu.pull_edges_per_s)}edges/s, {seconds(cpu.level_s)} for a level of one vertex",
        table(["graph", "engine", "roots at once", "time", "per root", "steps", "looked at", "arcs/s"], [
            [one.graph, one.engine, str(one.batch), seconds(one.seconds), seconds(one.seconds / one.batch),
             str(one.steps), count(one.edges), rate(one.arcs_per_s)]
            for one in cpu.searches
        ]),
        "",
        modelled(found),
    ]  # fmt: skip
    if found.busy > BUSY:
        parts += ["", f"the machine was busy (load {found.busy:.1f} per CPU): measure again in a quiet moment"]
    return "\n".join(parts)


def modelled(found: Calibration) -> str:
    """What a round of three iterations would take on each device; only the first line was measured."""
    from hybrid.devices.model import USUAL_ITERATIONS
    from hybrid.devices.profiles import PROFILES

    models = [found.device_model(), *(one.with_exchange(found.exchange_costs()) for one in PROFILES.values())]
    rows = [
        [model.name, model.kind, *(
            cell for k in _MODELLED for cell in (seconds(model.round_s(k)), seconds(model.round_s(k, format="direct")))
        )]
        for model in models
    ]  # fmt: skip
    headings = ["device", "figures", *(f"{name} {count(k)}" for k in _MODELLED for name in ("files", "direct"))]
    text = (
        f"a round of {USUAL_ITERATIONS} iterations by the formula, binary files as measured here, or handed over "
        "directly;\nlines that say `model` are published figures put into the formula: no NPU was measured"
    )
    return f"{text}\n{table(headings, rows)}"
