"""The break-even experiment: what a device of a given latency and rate would gain, by algorithm, core and batch.

The CPU's side is real and measured, in turns with the CPU alone; the device is a clock: a round takes the latency and,
per iteration, 2 k k B operations at the rate. The oracle takes no time at all: what no device can beat. An algorithm is
one adapter (``Workload``): prepare a core, run without the device, run with it.

Invariant: a time is kept only if the run that it belongs to was proven right; whatever leaves here says ``simulated``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from hybrid.devices.model import DeviceModel, ExchangeCosts, FileCosts
from hybrid.devices.profiles import PROFILES
from hybrid.experiments.measured import Measured
from hybrid.terminal import count, seconds

_NO_FILES = ExchangeCosts(FileCosts(0.0, 0.0), FileCosts(0.0, 0.0))


@dataclass(frozen=True, order=True)
class Device:
    """A device that is only a clock; a rate of infinity and no latency is the oracle."""

    latency_s: float
    flops: float
    profile: str = ""  # given: a published device's figures instead, its memory's bandwidth and launches included

    @property
    def name(self) -> str:
        if self.profile:
            return f"{self.profile} (model)"
        if not self.latency_s and math.isinf(self.flops):
            return "oracle"
        return f"{seconds(self.latency_s) if self.latency_s else 'no latency'}, {rate_text(self.flops)}"

    def model(self) -> DeviceModel:
        if self.profile:
            return PROFILES[self.profile].with_exchange(_NO_FILES)
        return DeviceModel(
            name=self.name, kind="model", launch_s=0.0, flops=self.flops, bytes_per_s=math.inf, memory_bytes=1 << 62,
            exchange=_NO_FILES, source="latency and rate as given", latency_s=self.latency_s,
        )  # fmt: skip


def rate_text(flops: float) -> str:
    return "any rate" if math.isinf(flops) else f"{flops / 1e12:g} TFLOPS"


class Workload(Protocol):
    """An algorithm as the experiment sees it."""

    name: str
    batched: bool  # whether it takes more than one at once

    def prepare(self, k: int, batch: int) -> None:
        """Make ready for this core and batch; not timed."""

    def run_cpu_only(self) -> float:
        """The CPU does everything: seconds, of a result that was proven right."""

    def run_hybrid(self, device: DeviceModel) -> float:
        """The core's part is the device's, in mode share: seconds, of a result that was proven right."""

    def inside(self) -> float:
        """The part of all arcs that lies inside the core."""


@dataclass(frozen=True)
class Case:
    """What a point sets."""

    algorithm: str
    k: int
    batch: int
    device: Device


@dataclass(frozen=True)
class Point(Measured):
    """A case, measured: every repeat's seconds."""

    case: Case
    inside: float
    cpu_only: tuple[float, ...]
    hybrid: tuple[float, ...]
    cpu_best_s: float  # of all that was measured of this algorithm and batch: the CPU alone knows nothing of devices

    def flat(self) -> dict[str, Any]:
        """As one row of a table."""
        low, high = self.spread
        return {
            "simulated": True, "algorithm": self.case.algorithm, "k": self.case.k, "batch": self.case.batch,
            "latency_s": self.case.device.latency_s, "flops": _finite(self.case.device.flops),
            "device": self.case.device.name, "share_of_arcs": self.inside,
            "cpu_only_s": self.cpu_only_s, "cpu_only_worst_s": max(self.cpu_only),
            "cpu_only_best_of_all_s": self.cpu_best_s, "hybrid_s": self.hybrid_s, "hybrid_worst_s": max(self.hybrid),
            "gain": self.gain, "gain_least": low, "gain_most": high, "pays": self.pays,
        }  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """Gain over latency, for one algorithm, core, batch and rate."""

    algorithm: str
    k: int
    batch: int
    flops: float
    points: tuple[Point, ...]  # ascending latency

    @property
    def name(self) -> str:
        at_once = f", {self.batch} at once" if self.batch > 1 else ""
        return f"{self.algorithm}{at_once}, k = {count(self.k)}, {rate_text(self.flops)}"

    @property
    def break_even_s(self) -> float | None:
        """The latency at which hybrid and CPU alone take the same time, between two that were measured.

        None if even the least latency does not gain; infinite if the greatest one still does.
        """
        gains = [(point.case.device.latency_s, point.gain) for point in self.points]
        if gains[0][1] <= 1:
            return None
        for (low, above), (high, below) in itertools.pairwise(gains):
            if below <= 1:
                # What a round adds to the time is proportional to its latency, so that 1 / gain is a line.
                part = (1 - 1 / above) / (1 / below - 1 / above)
                return low + part * (high - low)
        return math.inf

    @property
    def sentence(self) -> str:
        """What the curve says, in words."""
        least, last, even = self.points[0], self.points[-1], self.break_even_s
        clear = "" if least.pays else ", not clearly"
        start, end = (f"{one.gain:.2f}x with {_latency_word(one.case.device.latency_s)}" for one in (least, last))
        if even is None:
            clear, said = "", "no latency pays"
        else:
            said = f"still {end}" if math.isinf(even) else f"even at {seconds(even)} a round"
        return f"simulated, {self.name}: {start}{clear}; {said}"

    def as_dict(self) -> dict[str, Any]:
        even = self.break_even_s
        return {
            "simulated": True, "algorithm": self.algorithm, "k": self.k, "batch": self.batch,
            "flops": _finite(self.flops),
            "latencies_s": [point.case.device.latency_s for point in self.points],
            "gains": [point.gain for point in self.points], "pays": [point.pays for point in self.points],
            "break_even_s": even if even is None or math.isfinite(even) else "beyond", "sentence": self.sentence,
        }  # fmt: skip


def _finite(flops: float) -> float | None:
    return None if math.isinf(flops) else flops


def _latency_word(latency_s: float) -> str:
    return f"a latency of {seconds(latency_s)}" if latency_s else "no latency"


def curves_of(points: Sequence[Point]) -> list[Curve]:
    """The points by algorithm, core, batch and rate; a published device is a point of its own and in no curve."""
    groups: dict[tuple[str, int, int, float], list[Point]] = {}
    for point in points:
        case = point.case
        if not case.device.profile:
            groups.setdefault((case.algorithm, case.k, case.batch, case.device.flops), []).append(point)
    return [Curve(*key, tuple(sorted(some, key=lambda one: one.case.device.latency_s))) for key, some in groups.items()]


def measure(
    workloads: Sequence[Workload], sizes: Sequence[int], batches: Sequence[int], devices: Sequence[Device],
    repeats: int, tell: Callable[[Point], None] = lambda point: None,
) -> list[Point]:  # fmt: skip
    """Every case, in turns with the CPU alone, and in every other repeat the other way round.

    The repeats of a device are apart, so that a disturbance hits few.
    """
    found: list[Point] = []
    for workload in workloads:
        for batch in batches if workload.batched else (1,):
            some: list[Point] = []
            for k in sizes:
                fitting = [device for device in devices if device.model().fits(k, batch)]
                if not fitting:
                    continue
                workload.prepare(k, batch)
                times = np.zeros((2, len(fitting), repeats))
                for repeat, (at, device) in itertools.product(range(repeats), enumerate(fitting)):
                    for way in (0, 1) if repeat % 2 == 0 else (1, 0):
                        took = workload.run_hybrid(device.model()) if way else workload.run_cpu_only()
                        times[way, at, repeat] = took
                for device, alone, together in zip(fitting, *times.tolist(), strict=True):
                    case = Case(workload.name, k, batch, device)
                    some.append(Point(case, workload.inside(), tuple(alone), tuple(together), 0.0))
            best_s = min((one for point in some for one in point.cpu_only), default=0.0)
            for point in some:
                found.append(replace(point, cpu_best_s=best_s))
                tell(found[-1])
    return found


def as_json(points: Sequence[Point]) -> dict[str, Any]:
    """Everything, with all times."""
    return {
        "points": [{**one.flat(), "times": {"cpu_only": one.cpu_only, "hybrid": one.hybrid}} for one in points],
        "curves": [one.as_dict() for one in curves_of(points)],
    }
