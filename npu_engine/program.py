"""The core program: takes edges and values in the coordinator's ids, closes the values with MindSpore.

    value[v] <- min over edges u -> v of (value[u] + weight)

until nothing can change. Unit weights are closed by levels, other weights by relaxation (``programs``). The core stays
on the device from round to round; one over the memory budget stays with the host and goes there in compacted pieces.

Two forms of the same operations. Compiled, for an NPU: the loop itself runs on the device, so that no iteration waits
for the host, and sizes are padded to powers of two, so that a new core of a known size compiles nothing. Eager, for the
CPU: operation by operation from Python, at the core's own size. There it is faster: the queue that feeds a compiled
graph spins and competes with the CPU engine for the cores.

Invariant: every number that leaves here is exact (``programs.exact``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npu_engine.programs.exact import (
    EXACT_SPAN,
    NO_VALUE,
    UNREACHED,
    Flags,
    IntArray,
    Interrupted,
    KeepGoing,
    ProgramError,
    Values,
    absolute,
    lightest_weight,
    relative,
)
from npu_engine.programs.table import Closing, CoreEdges, Device, UnitMinPlus, WeightedMinPlus

__all__ = ["Answer", "CoreProgram", "IntArray", "Interrupted", "ProgramError"]

LARGEST_CORE = 1 << 20  # vertices; more is no core any more
LARGEST_VALUE = 2**31 - 1
WARM_SIZE = 256
PLENTY_BYTES = 1 << 40  # where the free memory is not told


@dataclass(frozen=True)
class Answer:
    """Every vertex that has a value now, ascending, and how many iterations it took."""

    pairs: IntArray  # int64[r, 2]: vertex, value
    iterations: int


class CoreProgram:
    """Holds one core on the device and iterates on it from any given values."""

    def __init__(self, *, compiled: bool, memory_budget: int | None = None) -> None:
        """``memory_budget``: bytes that a core and its products may take on the device; None: what is free."""
        self._budget = memory_budget
        self._device = Device(compiled=compiled, budget=self._bytes_to_use())
        self._ids = np.empty(0, np.int64)
        self._core: Closing | None = None
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
    def rows_at_once(self) -> int:
        """How many rows of a batch the memory budget allows in one product."""
        return max(1, self._device.side)

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

    def load(self, edges: IntArray) -> None:
        """Make ``edges`` (int64[e, 2]: src dst, or [e, 3] with a weight) the resident core; any ids >= 0 will do."""
        self._ids, self._core, self.edges, self.diameter = np.empty(0, np.int64), None, 0, None
        if edges.ndim != 2 or edges.shape[1] not in (2, 3):
            raise ProgramError(f"edges have 2 or 3 columns, these have the shape {edges.shape}")
        self._device.limit(self._bytes_to_use())
        loop = edges[:, 0] == edges[:, 1]
        proper = edges[~loop] if loop.any() else edges  # a loop never improves a value
        weight = proper[:, 2] if proper.shape[1] == 3 else None
        self.unit_weights = weight is None or bool((weight == 1).all())
        if len(proper):
            ids, ends = _number(proper[:, :2])
            self._require_size(len(ids))
            if weight is None or self.unit_weights:
                self._core = UnitMinPlus(CoreEdges(len(ids), ends), self._device)
            else:
                lightest_weight(weight, len(ids))  # before float32 could round one
                self._core = WeightedMinPlus(CoreEdges(len(ids), ends, weight.astype(np.float32)), self._device)
            self._ids = ids
        self.edges = len(edges)

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
        """Close every row of values[B, k]: column v is vertex v, -1 is "no value", there and in the answer.

        The core's vertices must be below k; a vertex without an edge in the core keeps its values.
        """
        k = values.shape[1]
        if len(self._ids) and int(self._ids[-1]) >= k:
            raise ProgramError(f"unknown vertex {int(self._ids[-1])}: the values are of the vertices 0 to {k - 1}")
        found = np.where(values < 0, NO_VALUE, values).astype(np.int32)
        if not len(self._ids):
            return found
        for first in range(0, len(values), self.rows_at_once):
            block = found[first : first + self.rows_at_once]
            rows, base = relative(np.take(block, self._ids, axis=1))
            closed, _ = self.close(rows, keep_going)
            values_now = absolute(closed, base)
            if int(values_now.max(initial=0)) > LARGEST_VALUE:
                raise ProgramError(f"a value of {int(values_now.max())} does not fit into int32")
            block[:, self._ids] = values_now
        return found

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

    def _bytes_to_use(self) -> int:
        available = _available_bytes()
        return min(limit for limit in (self._budget, available, PLENTY_BYTES) if limit is not None)

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
