"""``graph500``: the Graph500 benchmark - construction, searches, validation, and then the official statistics."""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.cli.commands.options import launch_ranks
from hybrid.errors import EXIT_OK, ConfigError, EnvironmentProblem
from hybrid.launch.environment import MpiEnvironment, agreed_ranks, detect_mpi_environment
from hybrid.results.atomic_write import atomic_write
from hybrid.terminal import count, note, plural, say, seconds

if TYPE_CHECKING:
    from cpu_engine.comm.mpi import MpiTransport
    from hybrid.config.schema import Config
    from hybrid.experiments.graph500.benchmark import Outcome, Plan
    from hybrid.launch.announce import Announcer

_LARGEST_SCALE = 30  # internal ids are int32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=int, required=True, help="log2 of the vertices")
    parser.add_argument("--edge-factor", type=int, default=16, help="edges per vertex (default %(default)s)")
    parser.add_argument("--seed", type=int, default=2, help="of graph and search keys (default %(default)s)")
    parser.add_argument("--roots", type=int, default=64, help="search keys (default %(default)s, as the rules want)")
    parser.add_argument(
        "--kernel", choices=("bfs", "sssp"), default="bfs",
        help="bfs = kernel 2, sssp = kernel 3, shortest paths over weights in [0, 1) (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--engine", choices=("level", "async"), help="for the searches (default level)")
    parser.add_argument(
        "--batch", action="store_true", help="search from all keys at once, 64 per pass; not a figure by the rules"
    )
    parser.add_argument(
        "--ranks", type=int, default=1, help="build, search and validate on so many MPI ranks (default %(default)s)"
    )
    parser.add_argument("--output", metavar="FILE", help="write everything as JSON to this file as well")


def execute(options: argparse.Namespace) -> int:
    _check(options)
    from hybrid.experiments.graph500 import benchmark  # numba: not for --help

    plan = benchmark.Plan(
        scale=options.scale, edge_factor=options.edge_factor, seed=options.seed, keys=options.roots,
        engine=options.engine or "level", batch=options.batch, kernel=options.kernel,
    )  # fmt: skip
    world = detect_mpi_environment(os.environ)
    if world is None and options.ranks > 1:
        return _launch(options)
    if world is not None and agreed_ranks(options.ranks, world) > 1:
        outcome = _run_on_rank(plan, world)
        if outcome is None:
            return EXIT_OK
    else:
        outcome = benchmark.run_benchmark(plan)
    if options.output is not None:
        atomic_write(Path(options.output), json.dumps(benchmark.document(outcome), indent=2) + "\n")
    note(
        f"{plural(outcome.edges, 'input edge')}, {plural(outcome.vertices, 'vertex')} "
        f"({count(outcome.isolated)} isolated), "
        f"built in {seconds(outcome.construction_seconds)}; {plural(len(outcome.searches), 'search')}, all validated"
    )
    say(benchmark.render(benchmark.statistics(outcome)))
    return EXIT_OK


def _run_on_rank(plan: Plan, world: MpiEnvironment) -> Outcome | None:
    """This rank's side; the outcome at rank 0."""
    from hybrid.config import load_config
    from hybrid.experiments.graph500.on_ranks import run_on_rank
    from hybrid.ranks.process import among_ranks, meet

    def run(config: Config, transport: MpiTransport, announcer: Announcer, _: int | None) -> Outcome | None:
        info = meet(config, transport, announcer)
        found: Outcome | None = transport.run(run_on_rank(info, plan))
        if info.rank == 0:
            announcer.finished()
        return found

    return among_ranks(load_config(None, [f"ranks={world.size}"]), world, run)


def _launch(options: argparse.Namespace) -> int:
    """Start the ranks, which run this command again."""
    from hybrid.config import load_config

    words = ["graph500"]
    for name in ("ranks", "scale", "edge_factor", "seed", "roots", "output"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    return launch_ranks(load_config(None, [f"ranks={options.ranks}"]), words)


def _check(options: argparse.Namespace) -> None:
    for name, least in (("scale", 1), ("edge_factor", 1), ("seed", 0), ("roots", 1), ("ranks", 1)):
        value, most = getattr(options, name), _LARGEST_SCALE if name == "scale" else math.inf
        if not least <= value <= most:
            allowed = f"{least} to {most}" if name == "scale" else f"at least {least}"
            option = f"--{name.replace('_', '-')}"
            fix = f"give {option} a number that is {allowed}"
            raise ConfigError(f"{option} must be {allowed}", value=value, fix=fix)
    if options.batch and options.engine is not None:
        raise ConfigError("--batch has an engine of its own", value=options.engine, fix="leave out --engine or --batch")
    if options.kernel == "sssp" and (options.batch or options.engine is not None):
        chosen = "--batch" if options.batch else f"--engine {options.engine}"
        raise ConfigError("shortest paths have an engine of their own", value=chosen, fix=f"leave out {chosen}")
    if options.ranks > 1 and (options.batch or options.engine is not None or options.kernel == "sssp"):
        chosen = "--batch" if options.batch else "--kernel sssp" if options.kernel == "sssp" else "--engine"
        raise ConfigError("on several ranks there is kernel 2 by the level engine", value=chosen, fix="leave it out")
    if options.output is not None and not Path(options.output).absolute().parent.is_dir():
        raise EnvironmentProblem("its folder does not exist", path=options.output, fix="make the folder first")
