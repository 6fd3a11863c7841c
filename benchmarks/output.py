"""What becomes of a measurement: text in the terminal, JSON and a picture where asked. Nothing is kept otherwise."""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import Peer
from benchmarks.plot import Chart, write_plot
from hybrid import __version__
from hybrid.devices.machine_facts import MachineState
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.results.atomic_write import atomic_write
from hybrid.terminal import note, say

PLOTS = (".svg", ".html", ".htm")
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass
class Report:
    """One benchmark's outcome: ``data`` for JSON, ``lines`` for people, ``charts`` for the plot."""

    name: str
    data: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    absent: list[Peer] = field(default_factory=list)
    failed: bool = False  # something was found that must not be: the exit code is 1


def check_targets(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written before minutes are spent on their content."""
    for path in filter(None, (options.json, options.plot)):
        if not Path(path).absolute().parent.is_dir():
            raise EnvironmentProblem("its folder does not exist", path=path, fix="make the folder, or choose another")
    if options.plot and Path(options.plot).suffix.lower() not in PLOTS:
        raise ConfigError("the plot is an .svg or .html file", value=options.plot, fix="name one that ends so")


def publish(report: Report, options: argparse.Namespace, before: MachineState) -> None:
    """Print, and write the files that were asked for."""
    after = MachineState.now()
    for line in report.lines:
        say(line)
    for peer in report.absent:
        say(f"{peer.name}: absent. To compare with it: {peer.install}")
    say(f"machine: {before.describe(after)}")
    if options.json:
        document = {
            "tandem": __version__,
            "benchmark": report.name,
            "options": {name: value for name, value in vars(options).items() if name not in _NOT_OPTIONS},
            "machine": {**before.as_dict(after), "python": platform.python_version(), **_versions()},
            "absent": [peer.name for peer in report.absent],
            **report.data,
        }
        _write(options.json, json.dumps(document, indent=1, default=_plain) + "\n")
    if options.plot:
        _write(options.plot, write_plot(report.charts, html=Path(options.plot).suffix.lower() in PLOTS[1:]))


_NOT_OPTIONS = ("command", "execute", "benchmark_module", "benchmark", "verbose", "json", "plot", "work")


def ratio_text(value: float | None) -> str:
    """``12.3x``; empty where there is none."""
    if value is None:
        return ""
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def interval_text(value: tuple[float, float] | None) -> str:
    """``1.20-1.34``; empty where there is none."""
    return "" if value is None else f"{value[0]:.2f}-{value[1]:.2f}"


def memory_text(size: int | None) -> str:
    """``1.2 GiB``; empty where there is none."""
    if size is None:
        return ""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def _versions() -> dict[str, str]:
    import numba
    import numpy as np

    return {"numpy": np.__version__, "numba": numba.__version__}


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"not JSON: {type(value).__name__}")


def _write(path: str, text: str) -> None:
    try:
        atomic_write(Path(path), text)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot be written: {error.strerror}", path=path, fix="choose a folder that exists and is yours"
        ) from None
    note(f"wrote {path}")
