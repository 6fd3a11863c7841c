"""How long a device takes for a round on the core, as a formula. Pure: no clock, no file, no device is touched here.

A model is either *measured* (fitted to what ``run.py calibrate`` saw on this machine) or a *model* in the plain sense
(published figures put into the formula below; never run). ``kind`` says which of the two, and every number made from it
is shown with its kind.

    product(k, B)  =  max(2 k k B / flops, bytes / bytes_per_s)          a measured device: interpolated in its table
    iteration      =  product_factor * (launch + product) + (ops_per_iteration - 1) * launch + sync
    round          =  exchange(format, k B values) + values over the link + iterations * iteration

Invariant: every duration is finite, not negative, and does not fall when k, batch or iterations grow.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Kind = Literal["measured", "model"]
FORMATS = ("text", "binary", "direct")  # direct: handed over in memory, without files
VALUE_BYTES = 4
USUAL_ITERATIONS = 3  # hubs are within two or three hops of each other (facts: all pairs within 2 up to k = 8,192)


@dataclass(frozen=True)
class FileCosts:
    """Cost of one exchange through files: a fixed time, and a time per value."""

    fixed_s: float
    per_value_s: float

    def seconds(self, values: int) -> float:
        return self.fixed_s + self.per_value_s * values


@dataclass(frozen=True)
class ExchangeCosts:
    """What the file protocol takes from ``value`` written to answer merged, without the computation in between.

    It is a property of the machine that the coordinator runs on, not of the device.
    """

    text: FileCosts
    binary: FileCosts
    measured: bool = False

    def seconds(self, format: str, values: int) -> float:
        if format == "direct":
            return 0.0
        if format not in FORMATS:
            raise ValueError(f"format is one of {', '.join(FORMATS)}, not {format!r}")
        return (self.text if format == "text" else self.binary).seconds(values)


# What `run.py calibrate` found on a machine of 2 busy cores, rounded; used until it has measured this one.
USUAL_EXCHANGE = ExchangeCosts(text=FileCosts(2e-3, 0.7e-6), binary=FileCosts(2e-3, 0.2e-6))


@dataclass(frozen=True)
class Sample:
    """One measured product: a k x k matrix times a k x batch one."""

    k: int
    batch: int
    seconds: float


@dataclass(frozen=True)
class DeviceModel:
    """The figures of the formula above. A measured device has ``samples``, which replace the two rates."""

    name: str
    kind: Kind
    launch_s: float  # from the host's call to the result of an operation that does nothing to speak of
    flops: float  # multiplications and additions per second that a product reaches, not the peak
    bytes_per_s: float  # that a product reaches from the device's memory
    memory_bytes: int
    cell_bytes: int = 4  # of one entry of the core's matrix
    ops_per_iteration: float = 1.0
    sync_s: float = 0.0  # per iteration: the host learns whether to go on
    link_bytes_per_s: float = math.inf  # between host and device
    product_factor: float = 1.0  # of a measured device: what part of a product one vector's iteration really takes
    exchange: ExchangeCosts = USUAL_EXCHANGE
    samples: tuple[Sample, ...] = ()
    source: str = ""  # where the figures are from, in words
    delay_s: float | None = None  # given: a round takes exactly this long, whatever it does (oracle: 0)
    latency_s: float = 0.0  # of every round, besides what is computed and carried
    _table: dict[int, list[tuple[int, float]]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        # Noise must not make more work cheaper: a product takes at least as long as every smaller one.
        for sample in sorted(self.samples, key=lambda one: (one.batch, one.k)):
            smaller = (one.seconds for one in self.samples if one.k <= sample.k and one.batch <= sample.batch)
            self._table.setdefault(sample.batch, []).append((sample.k, max(smaller)))

    # ----------------------------------------------------------------------------------- what a device does

    def matvec(self, k: int) -> float:
        """Seconds of a k x k matrix times a vector, launch included."""
        return self.matmul(k, 1)

    def matmul(self, k: int, batch: int) -> float:
        """Seconds of a k x k matrix times a k x batch one, launch included."""
        if self.delay_s is not None:
            return 0.0
        if self._table:
            return max(self.launch_s, interpolate(self._table, k, batch))
        arithmetic = 2.0 * k * k * batch / self.flops
        moved = self.cell_bytes * (k * k + 2.0 * k * batch) / self.bytes_per_s
        return self.launch_s + max(arithmetic, moved)

    def iteration_s(self, k: int, batch: int = 1) -> float:
        """Seconds of one iteration of the core program: the product, the operations around it, the synchronisation."""
        if self.delay_s is not None:
            return 0.0
        around = max(0.0, self.ops_per_iteration - 1) * self.launch_s + self.sync_s
        # One vector's product may be confined to the rows that are active; those of a batch are active nearly all.
        factor = self.product_factor if batch == 1 else max(1.0, self.product_factor)
        return factor * self.matmul(k, batch) + around

    def round_s(self, k: int, batch: int = 1, iterations: int = USUAL_ITERATIONS, format: str = "binary") -> float:
        """Seconds of a round on a warm device, from sending the core's values to receiving the closed ones."""
        if self.delay_s is not None:
            return self.delay_s
        carried = 2.0 * VALUE_BYTES * k * batch / self.link_bytes_per_s
        there_and_back = self.latency_s + self.exchange.seconds(format, k * batch) + carried
        return there_and_back + iterations * self.iteration_s(k, batch)

    def index_s(self, k: int, diameter: int) -> float:
        """Seconds to make the core's index: squarings until the diameter is covered, one more, and the way back."""
        if self.delay_s is not None:
            return self.delay_s
        products = math.ceil(math.log2(max(1, diameter))) + 1
        return products * self.matmul(k, k) + k * k / self.link_bytes_per_s

    # ------------------------------------------------------------------------------------------ what it holds

    def matrix_bytes(self, k: int) -> int:
        return self.cell_bytes * k * k

    def fits(self, k: int, batch: int = 1) -> bool:
        """Whether matrix, its inputs and its results fit into the device's memory."""
        return self.matrix_bytes(k) + 2 * self.cell_bytes * k * batch <= self.memory_bytes

    # ----------------------------------------------------------------------------------------------- variants

    def with_exchange(self, exchange: ExchangeCosts) -> DeviceModel:
        """The same device with the exchange costs of another machine."""
        return replace(self, exchange=exchange)

    def describe(self) -> str:
        """Its name, and whether it was measured or is a model."""
        return f"{self.name} ({'measured here' if self.kind == 'measured' else 'a model, not measured'})"


def interpolate(table: dict[int, list[tuple[int, float]]], k: int, batch: int) -> float:
    """Seconds by a table {batch: [(k, seconds), ...]}: straight lines between the logarithms.

    Outside of it, as arithmetic grows: with the square of k and with the batch. Below the smallest k or batch nothing
    gets cheaper, since launches dominate there.
    """
    batches = sorted(table)
    at = bisect.bisect_left(batches, batch)
    if at == 0:
        return _along(table[batches[0]], k, 2.0)
    if at == len(batches):
        return _along(table[batches[-1]], k, 2.0) * batch / batches[-1]
    low, high = batches[at - 1], batches[at]
    return _between(low, _along(table[low], k, 2.0), high, _along(table[high], k, 2.0), batch)


def _along(points: Sequence[tuple[int, float]], x: int, power: float) -> float:
    """Through ascending points; beyond the last one as ``x ** power``."""
    at = bisect.bisect_left([one for one, _ in points], x)
    if at == 0:
        return points[0][1]
    if at == len(points):
        last_x, last = points[-1]
        return float(last * (x / last_x) ** power)
    (low, below), (high, above) = points[at - 1], points[at]
    return _between(low, below, high, above, x)


def _between(low: int, below: float, high: int, above: float, x: int) -> float:
    above = max(below, above)  # where the two batches were measured for different k
    share = (math.log(x) - math.log(low)) / (math.log(high) - math.log(low))
    return math.exp(math.log(below) + share * (math.log(above) - math.log(below)))


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(fixed, per unit) of the straight line nearest to (x, y) points, neither of them negative."""
    if not points:
        raise ValueError("a line needs at least one point")
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    slope = max(0.0, slope)
    fixed = mean_y - slope * mean_x
    if fixed < 0:  # through the origin, then
        return 0.0, sum(x * y for x, y in points) / sum(x * x for x, _ in points)
    return fixed, slope
