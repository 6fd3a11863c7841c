"""The core index: all-pairs distances inside the core, after which values follow from row minima, without a round.

distance[u, v] is the number of edges on a shortest path u -> v inside the core, 255 where there is none. Invariant:
an index is exact or not made; a core with a distance above 254 is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from npu_engine.program import CoreProgram
from npu_engine.programs.exact import UNREACHED, IntArray, KeepGoing, ProgramError, Values, absolute, relative

NO_PATH = 255
ROWS_AT_ONCE = 1024  # of the boolean products: enough to fill a cube unit, and a look at ``keep_going`` in between


@dataclass(frozen=True)
class CoreIndex:
    """The distances between the core's vertices; row and column i belong to ``vertices[i]``."""

    vertices: IntArray
    distance: npt.NDArray[np.uint8]

    @cached_property
    def diameter(self) -> int | None:
        """The largest distance; None when some vertex does not reach some other one."""
        largest = int(self.distance.max(initial=0))
        return None if largest == NO_PATH else largest

    def close(self, rows: npt.NDArray[np.integer]) -> IntArray:
        """Close rows[B, vertices] (-1: no value): value[v] = min over u of (value[u] + distance[u, v]).

        With m the row's smallest value, the minima alone bring everything to m + diameter, so another vertex from
        m + diameter - 1 on improves nothing; the rows of the index that are left are few.
        """
        values, base = relative(rows)
        diameter = self.diameter
        for value in values:
            useful = value < (UNREACHED if diameter is None else max(diameter - 1, 1))
            for u in np.flatnonzero(useful).tolist():
                hops = self.distance[u].astype(np.int32)
                np.minimum(value, value[u] + hops, out=value, where=hops != NO_PATH)
        return absolute(values, base)


class IndexBuilding:
    """An index in the making, block by block of rows, so that rounds can be served in between.

    Distances between all vertices of the resident core, by repeated boolean matrix products. Every vertex is the source
    of a row; a product advances all rows of a block by one level.
    """

    def __init__(self, program: CoreProgram, rows_at_once: int = ROWS_AT_ONCE) -> None:
        if not program.unit_weights:
            raise ProgramError("the core has weights, and an index counts edges: load the core without them")
        size = len(program.vertices)
        self.program = program
        self._distance = np.full((size, size), NO_PATH, np.uint8)
        self._step = min(rows_at_once, program.rows_at_once)
        self._next = 0

    def advance(self, keep_going: KeepGoing = lambda: True) -> bool:
        """Do the next block; True when that was the last one."""
        block = self._distance[self._next : self._next + self._step]
        if len(block):
            rows: Values = np.full(block.shape, UNREACHED, np.int32)
            rows[np.arange(len(block)), self._next + np.arange(len(block))] = 0
            closed, _ = self.program.close(rows, keep_going)
            reached = closed < UNREACHED
            farthest = int(closed[reached].max(initial=0))
            if farthest >= NO_PATH:
                raise ProgramError(f"a distance of {farthest} edges does not fit into an index: choose a denser core")
            block[reached] = closed[reached]
            self._next += self._step
        return self._next >= len(self._distance)

    def finish(self) -> CoreIndex:
        """The index. If all vertices reach each other, set ``CoreProgram.diameter``: the program then uses the closed
        form if that is at most 2."""
        index = CoreIndex(self.program.vertices, self._distance)
        self.program.diameter = index.diameter
        return index


def whole_core(index: CoreIndex, k: int) -> npt.NDArray[np.uint8]:
    """The index over the vertices 0 to k - 1: one without an edge in the core reaches itself only."""
    if len(index.vertices) and int(index.vertices[-1]) >= k:
        raise ProgramError(f"unknown vertex {int(index.vertices[-1])}: the core has the vertices 0 to {k - 1}")
    if len(index.vertices) == k:
        return index.distance
    distance = np.full((k, k), NO_PATH, np.uint8)
    np.fill_diagonal(distance, 0)
    distance[np.ix_(index.vertices, index.vertices)] = index.distance
    return distance
