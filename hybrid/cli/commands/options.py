"""Options that several commands share: which configuration, and changes to it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.launch.environment import detect_mpi_environment
from hybrid.terminal import note

if TYPE_CHECKING:
    from hybrid.graphs.opening import Opened


def add_config_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: the default job, configs/cluster.yaml)"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="change one key, for example --set npu.mode=race; may be repeated; "
        "docs/reference/configuration.md lists the keys",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show the log on the terminal as well")


def config_from(
    options: argparse.Namespace, own: Mapping[str, object] | None = None, defaults: Mapping[str, object] | None = None
) -> Config:
    """The configuration that the options describe; ``own`` are values from the command's other arguments."""
    return load_config(options.config, options.overrides, own, defaults)


def add_graph_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "graph", nargs="?", metavar="GRAPH", help="graph file or stored graph (default: the configured one)"
    )


def open_named(config: Config) -> Opened:
    """The configured graph; what is remarkable about it is said."""
    from hybrid.graphs.opening import open_graph  # numba: not for --help
    from hybrid.results.trace import Trace

    opened = open_graph(config.graph, Trace())
    for remark in opened.notes:
        note(remark)
    return opened


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
