"""``serve``: keep graphs in memory and answer over HTTP, until a signal ends it."""

from __future__ import annotations

import argparse

from hybrid.checkout import install_command
from hybrid.cli.commands.options import add_config_options, config_from
from hybrid.errors import EXIT_OK, EnvironmentProblem

_DEFAULTS = {"npu.mode": "auto"}  # a job shows both at work; a service that says nothing is to be quick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, metavar="N", help="service.port; 0 = any free one")
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    try:
        from hybrid.service.server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in ("hybrid", "cpu_engine"):
            raise
        raise EnvironmentProblem(f"the service needs {missing.name}", fix=install_command("service")) from None
    serve(config_from(options, {"service.port": options.port}, _DEFAULTS), verbose=options.verbose)
    return EXIT_OK
