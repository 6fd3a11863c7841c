"""Options that several commands share: which configuration, and changes to it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hybrid.config import load_config
from hybrid.config.schema import Config


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
    options: argparse.Namespace,
    own: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> Config:
    """The configuration that the options describe; ``own`` are values from the command's other arguments."""
    return load_config(options.config, options.overrides, own, defaults)
