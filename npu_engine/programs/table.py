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

    def __init__(self, *, compiled: bool, budget: int, threads: int = 1) -> None:
        self.compiled, self._threads = compiled, threads
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
        return CompactedCore(edges, self.side, padded=self.compiled, threads=self._threads)

    def loop(self, kind: type[nn.Cell], edges: CoreEdges) -> Any:
        """The core inside a compiled loop; None where that is not the way."""
        return self._loops.place(kind, edges) if self.compiled and self.fits(edges.size) else None

    @property
    def loop_bytes(self) -> int:
        """What the compiled loops hold."""
        return self._loops.nbytes

    def ticket(self, loop: Any) -> int | None:
        return self._loops.ticket(loop)

    def give_up(self, loop: Any) -> None:
        """Forget a compiled loop with its matrix."""
        self._loops.give_up(loop)


class OnDevice:
    """A core where programs can use it: inside a compiled loop, or as tiles."""

    def __init__(self, kind: type[nn.Cell], edges: CoreEdges, device: Device, *, diagonal: float | None = None) -> None:
        self._device = device
        self.iterations = 1  # of the last batch
        self._loop = device.loop(kind, edges if diagonal is None else replace(edges, diagonal=diagonal))
        self._core = None if self._loop is not None else device.core(edges)
        self._ticket = None if self._loop is None else device.ticket(self._loop)

    @property
    def in_place(self) -> bool:
        """Whether it is still there: a compiled loop holds one core at a time."""
        return self._loop is None or self._device.ticket(self._loop) == self._ticket

    def leave(self) -> None:
        """Give the memory back."""
        if self._loop is not None and self.in_place:
            self._device.give_up(self._loop)
        self._loop = self._core = None

    @property
    def nbytes(self) -> int:
        """What the core takes while nothing is computed."""
        return int(self._loop.matrix.nbytes) if self._core is None else self._core.nbytes


class Closing(Protocol):
    """A core on the device whose values can be closed. Rows are relative (``exact.relative``)."""

    @property
    def in_place(self) -> bool: ...

    @property
    def nbytes(self) -> int: ...

    def leave(self) -> None: ...

    def close(self, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
        """The rows of values[B, size] at their fixed points, and the number of iterations."""


class Placed(Protocol):
    """A core on the device, ready for one program."""

    @property
    def in_place(self) -> bool: ...

    @property
    def nbytes(self) -> int: ...

    iterations: int

    def leave(self) -> None: ...

    def batch(self, rows: Any, keep_going: KeepGoing = ...) -> Any:
        """The program on every row of rows[B, size]."""


class UnitMinPlus(OnDevice):
    """Hops: int rows, ``NO_VALUE`` = not reached; closed."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        super().__init__(LevelLoop, replace(edges, weight=None, absent=0.0, combine="any"), device)

    def close(self, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
        if self._core is None:
            return close_on_device(self._loop, values, keep_going)
        return close_by_levels(self._core, values, keep_going)

    def batch(self, rows: npt.NDArray[np.integer], keep_going: KeepGoing = lambda: True) -> IntArray:
        return _close_rows(self, rows, keep_going)


class WeightedMinPlus(OnDevice):
    """Distances: int rows, ``NO_VALUE`` = not reached; closed."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        weight = np.ones(len(edges.ends), np.float32) if edges.weight is None else edges.weight
        self._lightest = lightest_weight(weight.astype(np.int64), edges.size) if len(weight) else 0
        edges = replace(edges, weight=weight, absent=float(UNREACHED), combine="min")
        super().__init__(RelaxationLoop, edges, device, diagonal=0.0)

    def close(self, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
        closed, iterations = np.empty_like(values), 0
        for row, given in enumerate(values):
            if self._core is None:
                closed[row], done = relax_on_device(self._loop, given, self._lightest, keep_going)
            else:
                closed[row], done = relax_to_the_end(self._core, given, self._lightest, keep_going)
            iterations = max(iterations, done)
        return closed, iterations

    def batch(self, rows: npt.NDArray[np.integer], keep_going: KeepGoing = lambda: True) -> IntArray:
        return _close_rows(self, rows, keep_going)


class MinSelect(WeightedMinPlus):
    """The smallest label that reaches each vertex: rows of any integers; closed."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        super().__init__(replace(edges, weight=np.zeros(len(edges.ends), np.float32)), device)

    def batch(self, rows: npt.NDArray[np.integer], keep_going: KeepGoing = lambda: True) -> IntArray:
        """Labels are replaced by their ranks in the row: as exact, however large they are."""
        found = np.empty(rows.shape, np.int64)
        for row, labels in enumerate(rows):
            names, rank = np.unique(labels, return_inverse=True)
            closed, iterations = self.close(rank.astype(np.int32)[None], keep_going)
            self.iterations = max(self.iterations, iterations) if row else iterations
            found[row] = names[closed[0]]
        return found


class PlusTimes(OnDevice):
    """Sums of weighted values over incoming edges: float32 rows; one step."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        super().__init__(ProductStep, replace(edges, absent=0.0, combine="sum"), device)

    def batch(self, rows: Matrix, keep_going: KeepGoing = lambda: True) -> Matrix:
        return step_on_device(self._loop, rows) if self._core is None else multiply(self._core, rows, keep_going)


class OrAnd(OnDevice):
    """Whether any marked vertex has an edge here: bool rows; one step."""

    def __init__(self, edges: CoreEdges, device: Device) -> None:
        super().__init__(ReachStep, replace(edges, weight=None, absent=0.0, combine="any"), device)

    def batch(self, rows: Flags, keep_going: KeepGoing = lambda: True) -> Flags:
        if self._core is None:
            return step_on_device(self._loop, rows) > 0
        return reach(self._core, rows, np.ones(self._core.size, bool), keep_going)


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


def _close_rows(placed: Closing, rows: npt.NDArray[np.integer], keep_going: KeepGoing) -> IntArray:
    values, base = relative(rows)
    closed, _ = placed.close(values, keep_going)
    return absolute(closed, base)


__all__ = ["NO_VALUE", "PROGRAMS", "Closing", "CoreEdges", "Device", "Placed", "Program", "vector"]
