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


def all_pairs(program: CoreProgram, keep_going: KeepGoing = lambda: True) -> CoreIndex:
    """Distances between all vertices of the resident core, by repeated boolean matrix products.

    Every vertex is the source of a row; a product advances all rows by one level. When the core turns out to have a
    diameter, the program is told (``CoreProgram.diameter``), which then uses the closed form if it is at most 2.
    """
    if not program.unit_weights:
        raise ProgramError("the core has weights, and an index counts edges: load the core without them")
    vertices = program.vertices
    distance = np.full((len(vertices), len(vertices)), NO_PATH, np.uint8)
    step = min(ROWS_AT_ONCE, program.rows_at_once)
    for first in range(0, len(vertices), step):
        block = distance[first : first + step]
        rows: Values = np.full(block.shape, UNREACHED, np.int32)
        rows[np.arange(len(block)), first + np.arange(len(block))] = 0
        closed, _ = program.close(rows, keep_going)
        reached = closed < UNREACHED
        farthest = int(closed[reached].max(initial=0))
        if farthest >= NO_PATH:
            raise ProgramError(f"a distance of {farthest} edges does not fit into an index: choose a denser core")
        block[reached] = closed[reached]
    index = CoreIndex(vertices, distance)
    program.diameter = index.diameter
    return index
