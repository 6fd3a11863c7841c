"""``bench``: measure Tandem against its peers, against itself and against the machine (benchmarks/)."""

from __future__ import annotations

import argparse
import importlib

from hybrid.checkout import reach_checkout
from hybrid.errors import EXIT_INTERNAL, EXIT_OK, EnvironmentProblem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    if reach_checkout() is None:
        parser.add_argument("rest", nargs=argparse.REMAINDER)
        parser.set_defaults(benchmark_module=None)
        return
    from benchmarks.options import add_benchmarks

    add_benchmarks(parser)


def execute(options: argparse.Namespace) -> int:
    if options.benchmark_module is None:
        raise EnvironmentProblem(
            "the benchmarks are in the folder benchmarks/ of a source checkout, not in the installed package",
            fix="in a clone of Tandem run `python run.py bench`",
        )
    from benchmarks.output import check_targets, publish
    from hybrid.devices.machine_facts import MachineState

    check_targets(options)
    before = MachineState.now()
    report = importlib.import_module(options.benchmark_module).execute(options)
    publish(report, options, before)
    return EXIT_INTERNAL if report.failed else EXIT_OK
