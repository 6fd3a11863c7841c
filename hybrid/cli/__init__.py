"""The command line: which command, its arguments, and what becomes of its errors. ``run`` is the default command."""

from __future__ import annotations

import argparse
import difflib
import importlib
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from exchange.escape import PrintableFormatter, printable, printable_lines
from exchange.isolated import isolated_command
from hybrid import __version__
from hybrid.errors import EXIT_CODES, EXIT_CONFIG, EXIT_INTERNAL, EXIT_OK, explain_failure
from hybrid.interrupts import raise_on_signals

COMMANDS = {
    "run": "run a job: traverse a graph with CPU and NPU together (the default command)",
    "serve": "keep graphs in memory and answer over HTTP; a page to watch it work",
    "worker": "serve an exchange directory as a standalone NPU worker",
    "generate": "write a synthetic graph to a file",
    "convert": "read a graph in one format and write it in another",
    "info": "tell what is in a graph, and how dense its core is",
    "partition": "tell how a graph would be cut into parts for many ranks, and what they would send each other",
    "plan": "predict what an NPU would bring on a graph: a table over the size of the core, and the choice",
    "tune": "sweep the core's threshold, devices, engines and modes against the CPU alone; plots and a recommendation",
    "breakeven": "measure at which latency and rate a device pays, by algorithm, core and batch; down to the oracle",
    "validate": "prove a result folder right, or check a stored graph",
    "warm-up": "compile everything now, so that the first job need not",
    "doctor": "check this machine: versions, devices, worker, MPI; how to fix what fails",
    "calibrate": "measure this machine once: the worker's device, the exchange, the CPU engines",
    "graph500": "run the Graph500 benchmark: construction, searches, validation, the official statistics",
    "bench": "measure: our BFS and its peers in turns, builds, strategies, threads, the machine",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] == "worker":
        # It has a command line of its own, and becomes another program, which loads nothing of the coordinator.
        program = [*isolated_command("npu_engine"), "--program", f"{program_name()} worker", *words[1:]]
        os.execv(sys.executable, program)  # noqa: S606 - our own module, no shell
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        near = difflib.get_close_matches(words[0], COMMANDS, 1)
        advice = f"did you mean {near[0]}?" if near else f"commands are {', '.join(COMMANDS)}"
        return _fail(f"unknown command '{printable(words[0])}'. Fix: {advice}", EXIT_CONFIG)
    if not words or words[0] not in (*COMMANDS, "-h", "--help", "--version"):
        words.insert(0, "run")
    options = _parser(words[0]).parse_args(words)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    logging.getLogger().setLevel(logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(PrintableFormatter("%(levelname)s: %(message)s"))
        handler.setLevel(logging.INFO if getattr(options, "verbose", False) else logging.WARNING)
    raise_on_signals()
    return _guarded(options)


def program_name() -> str:
    """What the user typed: ``python run.py`` or ``tandem``."""
    return "python run.py" if Path(sys.argv[0]).name == "run.py" else "tandem"


class _Parser(argparse.ArgumentParser):
    """Escapes what it quotes: a shell puts file names of others on a command line."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _parser(command: str) -> argparse.ArgumentParser:
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
    parser = _Parser(
        prog=program_name(),
        description="Hybrid CPU+NPU graph runtime: exact traversals, and the truth about whether the NPU pays.",
        epilog=f"`tandem --config FILE` is `tandem run --config FILE`; `python run.py` is the same program.\n"
        f"`tandem COMMAND --help` tells a command's options.\n\nexit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tandem {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, summary in COMMANDS.items():
        described = commands.add_parser(name, help=summary, description=summary)
        if name == command and name != "worker":
            module = importlib.import_module(f"hybrid.cli.commands.{name.replace('-', '_')}")
            module.add_arguments(described)
            described.set_defaults(execute=module.execute)
    return parser


def _guarded(options: argparse.Namespace) -> int:
    try:
        return int(options.execute(options))
    except KeyboardInterrupt as error:
        message, code = explain_failure(error)
        print(f"\ntandem: {message}", file=sys.stderr)
        return code
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; a message would have no reader
        return EXIT_OK
    except Exception as error:
        message, code = explain_failure(error)
        if code == EXIT_INTERNAL:
            print(printable_lines(traceback.format_exc()), file=sys.stderr)
        return _fail(message, code)


def _fail(error: object, code: int) -> int:
    print(f"tandem: error: {error}", file=sys.stderr)
    return code
