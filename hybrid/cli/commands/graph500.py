"""``graph500``: the Graph500 benchmark - construction, searches, validation, and then the official statistics."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

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
    from hybrid.experiments.graph500.benchmark import (  # numba: not for --help
        Plan,
        document,
        render,
        run_benchmark,
        statistics,
    )

    plan = Plan(
        scale=options.scale,
        edge_factor=options.edge_factor,
        seed=options.seed,
        keys=options.roots,
        engine=options.engine or "level",
        batch=options.batch,
        kernel=options.kernel,
    )
    world = detect_mpi_environment(os.environ)
    if world is None and options.ranks > 1:
        return _launch(options)
    if world is not None and agreed_ranks(options.ranks, world) > 1:
        found = _run_on_rank(plan, world)
        if found is None:
            return EXIT_OK
        outcome = found
    else:
        outcome = run_benchmark(plan)
    if options.output is not None:
        atomic_write(Path(options.output), json.dumps(document(outcome), indent=2) + "\n")
    note(
        f"{plural(outcome.edges, 'input edge')}, {plural(outcome.vertices, 'vertex')} "
        f"({count(outcome.isolated)} isolated), "
        f"built in {seconds(outcome.construction_seconds)}; {plural(len(outcome.searches), 'search')}, all validated"
    )
    say(render(statistics(outcome)))
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
    from hybrid.launch.command import ask_flavour, build_launch, find_launcher, this_machine
    from hybrid.launch.process import run_launch

    config = load_config(None, [f"ranks={options.ranks}"])
    words = ["graph500", "--ranks", str(options.ranks), "--scale", str(options.scale)]
    words += ["--edge-factor", str(options.edge_factor), "--seed", str(options.seed), "--roots", str(options.roots)]
    words += [] if options.output is None else ["--output", options.output]
    launcher = find_launcher(config.cluster.mpirun)
    launch = build_launch(config, this_machine(), launcher, ask_flavour(launcher), words)
    for remark in launch.notes:
        note(remark)
    code, error = run_launch(launch, config.cluster.launch_timeout_s, config.cluster.silence_timeout_s)
    if error is not None:
        raise error
    return code


def _check(options: argparse.Namespace) -> None:
    rules = (
        ("--scale", options.scale, 1, _LARGEST_SCALE),
        ("--edge-factor", options.edge_factor, 1, None),
        ("--seed", options.seed, 0, None),
        ("--roots", options.roots, 1, None),
        ("--ranks", options.ranks, 1, None),
    )
    for name, value, least, most in rules:
        if value < least or (most is not None and value > most):
            allowed = f"{least} to {most}" if most is not None else f"at least {least}"
            raise ConfigError(f"{name} must be {allowed}", value=value, fix=f"give {name} a number that is {allowed}")
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
