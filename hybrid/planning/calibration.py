"""What was measured on this machine, kept between jobs: one JSON file per host in the cache folder.

Owns the file and the meaning of its figures; hybrid/experiments/calibrate.py measures them. Invariant: the file is
whole or absent (temporary name, rename); one that is damaged, or of another layout or host, counts as none.
"""

from __future__ import annotations

import json
import logging
import re
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cpu_engine.graph.store.npy import open_regular
from hybrid.config.schema import GraphConfig
from hybrid.devices.model import USUAL_EXCHANGE, DeviceModel, ExchangeCosts, FileCosts, Sample, fit_line
from hybrid.devices.profiles import PROFILES, THIS_MACHINE, Simulation, fixed_delay
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.graphs.opening import cache_folder
from hybrid.results.atomic_write import atomic_write

VERSION = 1  # of the file's layout
_LONGEST = 1 << 20  # bytes; ours has a few thousand
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeviceRates:
    """Rates of the worker's device alone, without files and without a graph."""

    device: str
    why: str
    mindspore: str
    dtype: str
    cell_bytes: int
    memory_bytes: int
    threads: int
    launch_s: float
    products: tuple[Sample, ...]


@dataclass(frozen=True)
class RoundTime:
    """Time of rounds through the exchange directory with a warm worker, on the core of a generated graph."""

    format: str
    k: int
    edges: int
    sent: int  # values that had to be written; the answer had k of them
    publish_s: float  # mind_graph written, once per core
    first_s: float  # the first round, in which the worker reads the core
    seconds: float  # value written -> answer checked
    compute_s: float  # of it the worker's iterations
    iterations: int


@dataclass(frozen=True)
class SearchTime:
    """Time of a BFS on the CPU alone, over several roots; the engine ``many`` searches ``batch`` roots at once."""

    graph: str
    vertices: int
    arcs: int
    engine: str
    strategy: str
    batch: int
    seconds: float
    steps: int
    edges: int  # looked at; 0 where the engine does not count them

    @property
    def arcs_per_s(self) -> float:
        """Arcs of the graph per second and root, looked at or not."""
        return self.arcs * self.batch / self.seconds


@dataclass(frozen=True)
class CpuRates:
    """Rates of the CPU engine: edges looked at per second by direction, the fixed cost of a level, whole searches."""

    threads: int
    push_edges_per_s: float
    pull_edges_per_s: float
    level_s: float
    searches: tuple[SearchTime, ...]


@dataclass(frozen=True)
class Calibration:
    """All figures of one machine, and when they were measured."""

    version: int
    tandem: str
    host: str
    cpus: int
    busy: float  # load average per CPU before the measuring began: other load makes every figure worse
    when: str
    seconds: float
    device: DeviceRates
    rounds: tuple[RoundTime, ...]
    cpu: CpuRates

    def exchange_costs(self) -> ExchangeCosts:
        """Fit the cost of the files, without the worker's computation, as a line over the number of values."""
        costs = {}
        for format, usual in (("text", USUAL_EXCHANGE.text), ("binary", USUAL_EXCHANGE.binary)):
            points = [(one.k, max(0.0, one.seconds - one.compute_s)) for one in self.rounds if one.format == format]
            costs[format] = FileCosts(*fit_line(points)) if points else usual
        return ExchangeCosts(**costs, measured=bool(self.rounds))

    def device_model(self) -> DeviceModel:
        """Model this machine's worker."""
        rates = self.device
        plain = DeviceModel(
            name=THIS_MACHINE,
            kind="measured",
            launch_s=rates.launch_s,
            flops=max(2.0 * one.k * one.k * one.batch / one.seconds for one in rates.products),
            bytes_per_s=max(rates.cell_bytes * one.k * one.k / one.seconds for one in rates.products if one.batch == 1),
            memory_bytes=rates.memory_bytes or 1 << 62,
            cell_bytes=rates.cell_bytes,
            exchange=self.exchange_costs(),
            samples=rates.products,
            source=f"measured on {self.host}, {self.when}: {rates.device}, {rates.dtype}, MindSpore {rates.mindspore}",
        )
        # An iteration is a product, of active rows only, and a fixed time around it. The worker's own rounds give both.
        points = [(plain.matvec(one.k), one.compute_s / one.iterations) for one in self.rounds if one.iterations]
        if not points:
            return plain
        around, factor = fit_line(points)
        return replace(plain, sync_s=around, product_factor=factor)


# ------------------------------------------------------------------------------------------------- which model


def device_model(simulation: Simulation, calibration: Calibration | None) -> DeviceModel:
    """The model that ``simulated:...`` names; its exchange costs are this machine's where they were measured."""
    if simulation.delay_s is not None:
        return fixed_delay(simulation.name, simulation.delay_s)
    if simulation.name == THIS_MACHINE:
        if calibration is None:
            raise ConfigError(
                "npu.device: this machine has not been measured",
                value=simulation.label,
                fix=f"run `python run.py calibrate` first, or simulate one of {', '.join(PROFILES)}",
            )
        return calibration.device_model()
    profile = PROFILES[simulation.name]
    return profile if calibration is None else profile.with_exchange(calibration.exchange_costs())


# ------------------------------------------------------------------------------------------------------ the file


def calibration_path(folder: Path | None = None) -> Path:
    """The file of this machine's figures, by default in the folder of built graphs."""
    host = re.sub(r"[^A-Za-z0-9._-]", "_", socket.gethostname()) or "unknown"
    return (folder or cache_folder(GraphConfig())) / f"calibration-{host}.json"


def load_calibration(folder: Path | None = None) -> Calibration | None:
    """Read this machine's figures; None if there are none of this version or the file is damaged (the log says so)."""
    path = calibration_path(folder)
    try:
        with open_regular(path) as stream:
            found = _from_plain(json.loads(stream.read(_LONGEST)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        _log.warning("%s is not used (%s: %s). Fix: run `python run.py calibrate`", path, type(error).__name__, error)
        return None
    if found.host != socket.gethostname():
        _log.warning("%s was measured on %s, so it is not used. Fix: run `python run.py calibrate`", path, found.host)
        return None
    return found


def store_calibration(calibration: Calibration, folder: Path | None = None) -> Path:
    """Replace the stored figures; a reader sees the old file or the new one."""
    path = calibration_path(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, json.dumps(asdict(calibration), indent=1) + "\n")
    except OSError as error:
        raise EnvironmentProblem(
            f"the calibration cannot be kept: {error.strerror}", path=path, fix="name another folder in $TANDEM_CACHE"
        ) from error
    return path


def _from_plain(data: dict[str, Any]) -> Calibration:
    if data.get("version") != VERSION:
        raise ValueError(f"layout {data.get('version')}, this program reads {VERSION}")
    device, cpu = dict(data["device"]), dict(data["cpu"])
    device["products"] = tuple(Sample(**one) for one in device["products"])
    cpu["searches"] = tuple(SearchTime(**one) for one in cpu["searches"])
    rounds = tuple(RoundTime(**one) for one in data["rounds"])
    found = Calibration(**{**data, "device": DeviceRates(**device), "rounds": rounds, "cpu": CpuRates(**cpu)})
    found.device_model()  # figures that no model can be made of are damage, too
    return found
