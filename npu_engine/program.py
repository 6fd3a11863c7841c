"""The core program: takes edges and values in the coordinator's ids, computes with MindSpore.

    value[v] <- min over edges u -> v of (value[u] + weight)

is the program min-plus, iterated until nothing can change: unit weights by levels, other weights by relaxation
(``programs``). The other programs of ``programs.table`` are there as well. The core stays on the device from round to
round; one over the memory budget stays with the host and goes there in compacted pieces.

Two forms of the same operations. Compiled, for an NPU: the loop itself runs on the device, so that no iteration waits
for the host, and sizes are padded to powers of two, so that a new core of a known size compiles nothing. Eager, for the
CPU: operation by operation from Python, at the core's own size. There it is faster: the queue that feeds a compiled
graph spins and competes with the CPU engine for the cores.

Invariant: every number that leaves here is exact (``programs.exact``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npu_engine.programs.exact import (
    EXACT_SPAN,
    NO_VALUE,
    UNREACHED,
    Flags,
    IntArray,
    Interrupted,
    KeepGoing,
    Matrix,
    ProgramError,
    Values,
    absolute,
    lightest_weight,
    relative,
)
from npu_engine.programs.table import PROGRAMS, Closing, CoreEdges, Device, Placed, UnitMinPlus, WeightedMinPlus

__all__ = ["Answer", "CoreProgram", "IntArray", "Interrupted", "ProgramError"]

LARGEST_CORE = 1 << 20  # vertices; more is no core any more
LARGEST_VALUE = 2**31 - 1
WARM_SIZE = 256
FEWEST_ROWS = 64
PRODUCT_CELLS = 10**11  # multiplications
PLENTY_BYTES = 1 << 40  # where the system does not say how much memory is free


@dataclass(frozen=True)
class Answer:
    """Every vertex that has a value now, ascending, and how many iterations it took."""

    pairs: IntArray  # int64[r, 2]: vertex, value
    iterations: int


class CoreProgram:
    """Holds one core on the device and iterates on it from any given values."""

    def __init__(self, *, compiled: bool, memory_budget: int | None = None, device: Device | None = None) -> None:
        """``memory_budget``: bytes that a core and its products may take on the device; None: what is free.

        ``device``: one that is shared with other cores.
        """
        self._budget = memory_budget
        self._device = device or Device(compiled=compiled, budget=bytes_to_use(memory_budget))
        self._ids = np.empty(0, np.int64)
        self._core: Closing | None = None
        self._stepping: Placed | None = None
        self.name = "min-plus"
        self.edges = 0
        self.unit_weights = True
        self.diameter: int | None = None

    @property
    def vertices(self) -> IntArray:
        """The ids of the core's vertices that have an edge to another one, ascending."""
        return self._ids

    @property
    def in_pieces(self) -> bool:
        """Whether the core is over the memory budget."""
        return not self._device.fits(len(self._ids))

    @property
    def in_place(self) -> bool:
        """Whether the core is still where it was put; compiled, another one may have taken its place."""
        placed = self._core or self._stepping
        return placed is None or placed.in_place

    def leave(self) -> None:
        """Give the device's memory back; the core has to be loaded again."""
        placed, self._core, self._stepping = self._core or self._stepping, None, None
        if placed is not None:
            placed.leave()

    @property
    def nbytes(self) -> int:
        """What the core takes while nothing is computed."""
        placed = self._core or self._stepping
        return 0 if placed is None else placed.nbytes

    @property
    def rows_at_once(self) -> int:
        """How many rows of a batch go into one product: what the memory allows, and on the CPU about a second's work.

        Between two products the worker shows that it lives, and asks whether the job still waits.
        """
        rows = self._device.side
        if not self._device.compiled:
            rows = min(rows, max(FEWEST_ROWS, PRODUCT_CELLS // max(1, len(self._ids) ** 2)))
        return max(1, rows)

    def warm_up(self, vertices: int = 1) -> None:
        """Load (and compile, for cores of that many vertices) what the first round will need."""
        self._require_size(vertices)
        compiled = self._device.compiled
        # Step by step, size does not matter: what costs is the first call of an operation.
        size = max(2, vertices if compiled else min(vertices, WARM_SIZE))
        star = np.column_stack((np.zeros(size - 1, np.int64), np.arange(1, size)))
        values = np.full((1, size), UNREACHED, np.int32)
        values[0, 0] = 0
        for ends in (np.concatenate((star, star[:, ::-1])), star):
            core = UnitMinPlus(CoreEdges(size, ends), self._device)
            core.close(values, lambda: True)
            if not compiled:  # there, every number of rows is another graph to compile
                core.close(np.repeat(values, 2, axis=0), lambda: True)

    def load(
        self,
        edges: IntArray,
        program: str = "min-plus",
        weight: Matrix | None = None,
        make_room: Callable[[int], None] = lambda vertices: None,
    ) -> None:
        """Make ``edges`` (int64[e, 2]: src dst, or [e, 3] with a weight) the resident core; any ids >= 0 will do.

        ``weight``: float32 ones, for plus-times. ``make_room`` hears the number of vertices before the core is placed.
        """
        self._ids, self._core, self._stepping = np.empty(0, np.int64), None, None
        self.name, self.edges, self.diameter = program, 0, None
        if edges.ndim != 2 or edges.shape[1] not in (2, 3):
            raise ProgramError(f"edges have 2 or 3 columns, these have the shape {edges.shape}")
        self._device.limit(bytes_to_use(self._budget))
        if program == "min-plus":
            self._load_closing(edges, make_room)
        else:
            self._load_stepping(edges, weight, make_room)
        self.edges = len(edges)

    def _load_closing(self, edges: IntArray, make_room: Callable[[int], None]) -> None:
        loop = edges[:, 0] == edges[:, 1]
        proper = edges[~loop] if loop.any() else edges  # a loop never improves a value
        weight = proper[:, 2] if proper.shape[1] == 3 else None
        self.unit_weights = weight is None or bool((weight == 1).all())
        if not len(proper):
            return
        ids, ends = _number(proper[:, :2])
        self._require_size(len(ids))
        if weight is None or self.unit_weights:
            make_room(len(ids))
            self._core = UnitMinPlus(CoreEdges(len(ids), ends), self._device)
        else:
            lightest_weight(weight, len(ids))  # before float32 could round one
            make_room(len(ids))
            self._core = WeightedMinPlus(CoreEdges(len(ids), ends, weight.astype(np.float32)), self._device)
        self._ids = ids

    def _load_stepping(self, edges: IntArray, weight: Matrix | None, make_room: Callable[[int], None]) -> None:
        """A core for a program other than min-plus: loops count."""
        if self.name not in PROGRAMS:
            raise ProgramError(f"there is no program {self.name}")
        self.unit_weights = False
        if weight is None and edges.shape[1] == 3:
            weight = edges[:, 2].astype(np.float32)
        if len(edges):
            ids, ends = _number(edges[:, :2])
            self._require_size(len(ids))
            make_room(len(ids))
            self._stepping = PROGRAMS[self.name].place(CoreEdges(len(ids), ends, weight), self._device)
            self._ids = ids

    def run(self, pairs: IntArray, keep_going: KeepGoing = lambda: True) -> Answer:
        """Iterate from the given values (int64[r, 2]: vertex value) to the fixed point.

        A vertex without an edge in the core keeps its value; of several values for one vertex the smallest counts.
        """
        place, inside = self._find(pairs[:, 0])
        if not inside.any():
            return Answer(_smallest_per_vertex(pairs), 0)
        base = int(pairs[inside, 1].min())
        span = int(pairs[inside, 1].max()) - base
        if span > EXACT_SPAN:
            raise ProgramError(f"values span {span}, more than the {EXACT_SPAN} that float32 holds exactly")
        value = np.full((1, len(self._ids)), UNREACHED, np.int32)
        np.minimum.at(value[0], place[inside], (pairs[inside, 1] - base).astype(np.int32))
        closed, iterations = self.close(value, keep_going)
        reached = np.flatnonzero(closed[0] < UNREACHED)
        found = np.column_stack((self._ids[reached], closed[0, reached].astype(np.int64) + base))
        if not inside.all():
            found = np.concatenate((found, _smallest_per_vertex(pairs[~inside])))
            found = found[np.argsort(found[:, 0], kind="stable")]
        return Answer(found, iterations)

    def run_batch(self, values: Values, keep_going: KeepGoing = lambda: True) -> Values:
        """``run_rows`` of min-plus without the iterations."""
        return self.run_rows(values, keep_going)[0]

    def run_rows(self, values: Any, keep_going: KeepGoing = lambda: True) -> tuple[Any, int]:
        """The program on every row of values[B, k]: column v is vertex v; also the iterations.

        Min-plus and min-select: int32, -1 is "no value", there and in the answer; a vertex without an edge in the core
        keeps its values. Plus-times: float32; or-and: 0 and 1; what nothing leads to is 0.
        """
        k = values.shape[1]
        if len(self._ids) and int(self._ids[-1]) >= k:
            raise ProgramError(f"unknown vertex {int(self._ids[-1])}: the values are of the vertices 0 to {k - 1}")
        closes = self.name in ("min-plus", "min-select")
        found = np.where(values < 0, NO_VALUE, values).astype(np.int32) if closes else np.zeros_like(values)
        iterations = 0
        for first in range(0, len(values) if len(self._ids) else 0, self.rows_at_once):
            block = slice(first, first + self.rows_at_once)
            rows = np.take(values[block], self._ids, axis=1)
            found[block, self._ids], done = self._run_block(rows, keep_going)
            iterations = max(iterations, done)
        return found, iterations

    def _run_block(self, rows: Any, keep_going: KeepGoing) -> tuple[Any, int]:
        """Rows of the core's own vertices."""
        if self._core is not None:
            given, base = relative(np.where(rows < 0, NO_VALUE, rows))
            closed, iterations = self.close(given, keep_going)
            values = absolute(closed, base)
            if int(values.max(initial=0)) > LARGEST_VALUE:
                raise ProgramError(f"a value of {int(values.max())} does not fit into int32")
            return values, iterations
        assert self._stepping is not None
        if self.name == "min-select":
            # "No label" is the largest of all: whatever reaches it is smaller.
            labels = self._stepping.batch(np.where(rows < 0, LARGEST_VALUE + 1, rows.astype(np.int64)), keep_going)
            return np.where(labels > LARGEST_VALUE, NO_VALUE, labels), self._stepping.iterations
        if self.name == "or-and":
            return self._stepping.batch(rows > 0, keep_going), 1
        return self._stepping.batch(np.ascontiguousarray(rows, np.float32), keep_going), 1

    def close(self, rows: Values, keep_going: KeepGoing = lambda: True) -> tuple[Values, int]:
        """Close rows[B, vertices]: relative to the smallest value of each row, ``UNREACHED`` is none.

        Where the diameter d is known, every vertex is at most d above the smallest value (0). With d at most 2 that is
        the closed form: next to a minimum 1, else 2, or what it was: the one product that is left finds the former.
        """
        assert self._core is not None
        if self.diameter is not None:
            some = rows.min(axis=1, keepdims=True) < UNREACHED
            rows = np.where(some, np.minimum(rows, self.diameter), rows)
        return self._core.close(rows, keep_going)

    def _require_size(self, vertices: int) -> None:
        if vertices > LARGEST_CORE:
            raise ProgramError(f"a core of {vertices} vertices is over the largest, {LARGEST_CORE}")

    def _find(self, vertices: IntArray) -> tuple[IntArray, Flags]:
        """Row of each vertex, and which of them have one."""
        if not len(self._ids):
            return np.zeros(len(vertices), np.int64), np.zeros(len(vertices), bool)
        place = np.minimum(np.searchsorted(self._ids, vertices), len(self._ids) - 1)
        return place, self._ids[place] == vertices


def _number(ends: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct ids, ascending, and ``ends`` renumbered by them."""
    if int(ends.min()) < 0:
        raise ProgramError(f"vertex id {int(ends.min())} is negative")
    largest = int(ends.max())
    if largest > 4 * ends.size + 65_536:
        ids, place = np.unique(ends, return_inverse=True)
        return ids, place.reshape(ends.shape)
    # Dense ids, the usual case: a table is much cheaper than sorting millions of ends.
    used = np.zeros(largest + 1, bool)
    used[ends] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[ends]


def bytes_to_use(budget: int | None) -> int:
    """The budget, as far as so much is free."""
    return min(limit for limit in (budget, _available_bytes(), PLENTY_BYTES) if limit is not None)


def _available_bytes() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as facts:
            for line in facts:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def _smallest_per_vertex(pairs: IntArray) -> IntArray:
    """One line per vertex, ascending, with its smallest value."""
    ordered: IntArray = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:, 0] != ordered[:-1, 0]
    smallest: IntArray = ordered[first]
    return smallest
