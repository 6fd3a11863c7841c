"""The table of programs: what each computes, and how a core is made ready for it.

``PROGRAMS[name].place(core, device)`` puts a core on the device; ``batch`` of what comes back takes rows of values,
``vector`` one row. Invariant: a batch gives, row by row, what the vectors alone would give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from mindspore import nn

from npu_engine.programs.compaction import CompactedCore, largest_side
from npu_engine.programs.cores import Core, CoreEdges, ResidentCore, reach
from npu_engine.programs.exact import (
    NO_VALUE,
    UNREACHED,
    Flags,
    IntArray,
    KeepGoing,
    Matrix,
    Values,
    absolute,
    lightest_weight,
    relative,
)
from npu_engine.programs.levels import LevelLoop, close_by_levels, close_on_device
from npu_engine.programs.loops import CompiledLoops, power_of_two
from npu_engine.programs.relaxation import RelaxationLoop, relax_on_device, relax_to_the_end
from npu_engine.programs.steps import ProductStep, ReachStep, multiply, step_on_device

LARGEST_RESIDENT = 32_768  # 4 GiB of float32


class Device:
    """How programs compute here: compiled (an NPU) or operation by operation (the CPU), and within how many bytes."""

    def __init__(self, *, compiled: bool, budget: int) -> None:
        self.compiled = compiled
        self._loops = CompiledLoops(budget)
        self.limit(budget)

    def limit(self, budget: int) -> None:
        """Keep to a new budget from the next core on."""
        self.side = min(largest_side(budget), LARGEST_RESIDENT)
        self._loops.budget = budget

    def fits(self, vertices: int) -> bool:
        """Whether a core of so many vertices can be on the device as a whole."""
        return (power_of_two(vertices) if self.compiled else vertices) <= self.side

    def core(self, edges: CoreEdges) -> Core:
        """The core for step by step computation: whole, or in compacted pieces."""
        if self.fits(edges.size) and not self.compiled:
            return ResidentCore(edges)
        return CompactedCore(edges, self.side, padded=self.compiled)

    def loop(self, kind: type[nn.Cell], edges: CoreEdges) -> Any:
        """The core inside a compiled loop; None where that is not the way."""
        return self._loops.place(kind, edges) if self.compiled and self.fits(edges.size) else None


class Closing(Protocol):
    """A core on the device whose values can be closed. Rows are relative (``exact.relative``)."""

    def close(self, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
        """The rows of values[B, size] at their fixed points, and the number of iterations."""


class Placed(Protocol):
    """A core on the device, ready for one program."""

    def batch(self, rows: Any) -> Any:
        """The program on every row of rows[B, size]."""


class UnitMinPlus:
    """Hops: int rows, ``NO_VALUE`` = not reached; closed."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        edges = replace(edges, weight=None, absent=0.0, combine="any")
        self._loop = device.loop(LevelLoop, edges)
        self._core = None if self._loop is not None else device.core(edges)

    def close(self, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
        if self._core is None:
            return close_on_device(self._loop, values, keep_going)
        return close_by_levels(self._core, values, keep_going)

    def batch(self, rows: npt.NDArray[np.integer]) -> IntArray:
        return _close_rows(self, rows)


class WeightedMinPlus:
    """Distances: int rows, ``NO_VALUE`` = not reached; closed."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        weight = np.ones(len(edges.ends), np.float32) if edges.weight is None else edges.weight
        self._lightest = lightest_weight(weight.astype(np.int64), edges.size) if len(weight) else 0
        edges = replace(edges, weight=weight, absent=float(UNREACHED), combine="min")
        self._loop = device.loop(RelaxationLoop, replace(edges, diagonal=0.0))
        self._core = None if self._loop is not None else device.core(edges)

    def close(self, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
        closed, iterations = np.empty_like(values), 0
        for row, given in enumerate(values):
            if self._core is None:
                closed[row], done = relax_on_device(self._loop, given, self._lightest, keep_going)
            else:
                closed[row], done = relax_to_the_end(self._core, given, self._lightest, keep_going)
            iterations = max(iterations, done)
        return closed, iterations

    def batch(self, rows: npt.NDArray[np.integer]) -> IntArray:
        return _close_rows(self, rows)


class MinSelect:
    """The smallest label that reaches each vertex: rows of any integers; closed."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        self._relaxing = WeightedMinPlus(replace(edges, weight=np.zeros(len(edges.ends), np.float32)), device)

    def batch(self, rows: npt.NDArray[np.integer]) -> IntArray:
        """Labels are replaced by their ranks in the row: as exact, however large they are."""
        found = np.empty(rows.shape, np.int64)
        for row, labels in enumerate(rows):
            names, rank = np.unique(labels, return_inverse=True)
            closed, _ = self._relaxing.close(rank.astype(np.int32)[None], lambda: True)
            found[row] = names[closed[0]]
        return found


class PlusTimes:
    """Sums of weighted values over incoming edges: float32 rows; one step."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        edges = replace(edges, absent=0.0, combine="sum")
        self._loop = device.loop(ProductStep, edges)
        self._core = None if self._loop is not None else device.core(edges)

    def batch(self, rows: Matrix) -> Matrix:
        return step_on_device(self._loop, rows) if self._core is None else multiply(self._core, rows)


class OrAnd:
    """Whether any marked vertex has an edge here: bool rows; one step."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        edges = replace(edges, weight=None, absent=0.0, combine="any")
        self._loop = device.loop(ReachStep, edges)
        self._core = None if self._loop is not None else device.core(edges)

    def batch(self, rows: Flags) -> Flags:
        if self._core is None:
            return step_on_device(self._loop, rows) > 0
        return reach(self._core, rows, np.ones(self._core.size, bool))


@dataclass(frozen=True)
class Program:
    """A row of the table."""

    name: str
    formula: str
    closes: bool  # to the fixed point; else one step
    place: Callable[[CoreEdges, Device], Placed]


PROGRAMS = {
    program.name: program
    for program in (
        Program("min-plus unit", "value[v] <- min(value[v], value[u] + 1)", True, UnitMinPlus),
        Program("min-plus weighted", "value[v] <- min(value[v], value[u] + weight)", True, WeightedMinPlus),
        Program("min-select", "label[v] <- min(label[v], label[u])", True, MinSelect),
        Program("plus-times", "out[v] = sum of value[u] * weight", False, PlusTimes),
        Program("or-and", "out[v] = any of value[u]", False, OrAnd),
    )
}


def vector(placed: Placed, row: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The program on one vector."""
    found: npt.NDArray[Any] = placed.batch(row[None])[0]
    return found


def _close_rows(placed: Closing, rows: npt.NDArray[np.integer]) -> IntArray:
    values, base = relative(rows)
    closed, _ = placed.close(values, lambda: True)
    return absolute(closed, base)


__all__ = ["NO_VALUE", "PROGRAMS", "Closing", "CoreEdges", "Device", "Placed", "Program", "vector"]
