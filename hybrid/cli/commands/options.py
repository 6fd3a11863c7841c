"""What several commands share: options, the configuration they make, the graph opened for it, the start of ranks."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.devices.profiles import Simulation, parse_device
from hybrid.errors import ConfigError
from hybrid.launch.environment import detect_mpi_environment
from hybrid.terminal import note, plural

if TYPE_CHECKING:
    from hybrid.graphs.opening import Opened
    from hybrid.launch.output import LaunchOutput


def add_set_option(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], dest="overrides", help=help)


def add_config_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: the default job, configs/cluster.yaml)"
    )
    lists = "docs/reference/configuration.md lists the keys"
    add_set_option(parser, f"change one key, for example --set npu.mode=race; may be repeated; {lists}")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the log on the terminal as well")


def add_graph_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "graph", nargs="?", metavar="GRAPH", help="graph file or stored graph (default: the configured one)"
    )


def add_several(
    parser: argparse.ArgumentParser, name: str, metavar: str, default: Sequence[Any], help: str, nargs: str = "+"
) -> None:
    """An option that takes several values of the defaults' type; ``{}`` in its help becomes the defaults."""
    shown = help.format(" ".join(map(str, default)))
    parser.add_argument(name, metavar=metavar, type=type(default[0]), nargs=nargs, default=list(default), help=shown)


def config_from(
    options: argparse.Namespace, own: Mapping[str, object] | None = None, defaults: Mapping[str, object] | None = None
) -> Config:
    """The configuration that the options describe.

    ``own``: values of the command's other arguments, None where they were not given; GRAPH is one for every command.
    """
    given = {"graph.path": getattr(options, "graph", None), **(own or {})}
    given = {name: value for name, value in given.items() if value is not None}
    return load_config(options.config, options.overrides, given, defaults)


def open_named(config: Config) -> Opened:
    """The configured graph; what is remarkable about it is said."""
    from hybrid.graphs.opening import open_graph  # numba: not for --help
    from hybrid.results.trace import Trace

    opened = open_graph(config.graph, Trace())
    for remark in opened.notes:
        note(remark)
    return opened


def graph_line(opened: Opened) -> str:
    graph = opened.graph
    return f"{opened.name}: {plural(graph.n, 'vertex')} with edges, {plural(graph.m, 'arc')}"


def open_configured(config: Config) -> Opened:
    """The same for an experiment: on the configured threads, and in the log as well."""
    from hybrid.graphs.opening import open_graph
    from hybrid.job.warm_up import say_if_slow, set_threads
    from hybrid.results.record import log_opened
    from hybrid.results.trace import Trace

    if config.threads != "auto":
        set_threads(int(config.threads))
    with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
        opened = open_graph(config.graph, Trace())
    log_opened(opened)
    return opened


def refuse_launcher(command: str) -> None:
    """Some commands run on one rank only."""
    world = detect_mpi_environment(os.environ)
    if world is not None and world.size > 1:
        raise ConfigError(
            f"{command} runs on one rank, and {world.launcher} has started {world.size}",
            value=world.size,
            fix="start it without a launcher, with --set ranks=1",
        )


def parse_delay(option: str, word: str, device: str, examples: str) -> Simulation:
    """The device whose every round takes the time that the word of an option names."""
    with contextlib.suppress(ValueError):
        found = parse_device(device)
        if found is not None and found.delay_s is not None:
            return found
    raise ConfigError(f"{option}: not a time", value=word, fix=f"for example {examples}")


def identity_of(opened: Opened) -> dict[str, Any]:
    """Where an experiment was made, and on which graph."""
    import numba

    graph = {"name": opened.name, "n": int(opened.graph.n), "m": int(opened.graph.m)}
    return {"host": socket.gethostname(), "threads": int(numba.get_num_threads()), "graph": graph}


def written_now() -> str:
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def launch_ranks(config: Config, words: Sequence[str], output: LaunchOutput | None = None) -> int:
    """Start the configured ranks, each of which runs ``tandem WORDS``; the exit code of all."""
    from hybrid.launch.command import ask_flavour, build_launch, find_launcher, this_machine
    from hybrid.launch.process import run_launch

    launcher = find_launcher(config.cluster.mpirun)
    launch = build_launch(config, this_machine(), launcher, ask_flavour(launcher), words)
    for remark in launch.notes:
        note(remark)
    code, error = run_launch(launch, config.cluster.launch_timeout_s, config.cluster.silence_timeout_s, output)
    if error is not None:
        raise error
    return code
