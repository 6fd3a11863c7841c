"""``bench``: measure Tandem against its peers, against itself and against the machine (benchmarks/)."""

from __future__ import annotations

import argparse
import importlib

from hybrid.errors import EXIT_INTERNAL, EXIT_OK, EnvironmentProblem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    try:
        from benchmarks.options import add_benchmarks
    except ModuleNotFoundError as missing:  # an installed package comes without them
        if missing.name not in ("benchmarks", "benchmarks.options"):
            raise
        parser.add_argument("rest", nargs=argparse.REMAINDER)
        parser.set_defaults(benchmark_module=None)
    else:
        add_benchmarks(parser)


def execute(options: argparse.Namespace) -> int:
    if options.benchmark_module is None:
        raise EnvironmentProblem(
            "the benchmarks are not part of the installed package", fix="run `python run.py bench` in a source checkout"
        )
    from benchmarks.machine_facts import MachineState
    from benchmarks.output import check_targets, publish

    check_targets(options)
    before = MachineState.now()
    report = importlib.import_module(options.benchmark_module).execute(options)
    publish(report, options, before)
    return EXIT_INTERNAL if report.failed else EXIT_OK
