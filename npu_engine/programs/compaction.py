"""A core too large for the device: compacted pieces of what is active go there, one at a time.

Active-subgraph compaction: flags of the active vertices -> prefix sums -> compacted vertices, offsets and edges; the
same for the targets that these edges reach and that are still wanted. The result is small and dense enough to be
cut into tiles. The edges themselves stay with the host, in CSR form.

Invariant: a tile, the vectors multiplied with it and what comes out (or, for a relaxation, a second tile for the sums)
take no more than ``working_bytes(side)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from mindspore import Tensor

from npu_engine.programs.cores import CoreEdges, Tile, fill
from npu_engine.programs.exact import Flags, IntArray, Matrix

_PARTS = 3  # a tile of side x side; with up to `side` vectors, what goes in and what comes out are two more


def working_bytes(side: int) -> int:
    """What a core (or tile) of that side takes to be worked on: itself, and as much again for input and for output."""
    return _PARTS * 4 * side * side


def largest_side(budget: int) -> int:
    """The largest core (or tile) that can be worked on within a budget of bytes."""
    return max(1, math.isqrt(budget // (_PARTS * 4)))


def compact(flags: Flags) -> tuple[IntArray, IntArray]:
    """The flagged places, ascending, and by prefix sums the number that each of them gets there."""
    return np.flatnonzero(flags), np.cumsum(flags) - 1


class CompactedCore:
    """Edges with the host; tiles of at most ``side`` sources on the device."""

    def __init__(self, edges: CoreEdges, side: int, *, padded: bool = False) -> None:
        """``padded``: all tiles side x side, for a device on which every new shape is compiled."""
        self.size, self._side, self._padded = edges.size, side, padded
        self._absent, self._combine = edges.absent, edges.combine
        order = np.argsort(edges.ends[:, 0], kind="stable")
        self._targets = edges.ends[order, 1]
        self._weight = None if edges.weight is None else edges.weight[order]
        self._offsets = np.concatenate(([0], np.cumsum(np.bincount(edges.ends[:, 0], minlength=edges.size))))
        held = (self._targets, self._offsets) if self._weight is None else (self._targets, self._offsets, self._weight)
        self.nbytes = sum(array.nbytes for array in held)  # with the host

    def tiles(self, active: Flags, wanted: Flags, rows: int = 1) -> Iterator[Tile]:
        """Block by block of active sources, so that the gathered edges are bounded, too."""
        vertices, _ = compact(active & (np.diff(self._offsets) > 0))
        for first in range(0, len(vertices), self._side):
            yield from self._tiles_from(vertices[first : first + self._side], wanted, rows)

    def _tiles_from(self, sources: IntArray, wanted: Flags, rows: int) -> Iterator[Tile]:
        source, edge = self._gather(sources)
        useful = wanted[self._targets[edge]]
        source, edge = source[useful], edge[useful]
        reached = np.zeros(self.size, bool)
        reached[self._targets[edge]] = True
        targets, number = compact(reached)
        target = number[self._targets[edge]]
        width = self._width(len(sources), rows)
        for left in range(0, len(targets), width):
            part = targets[left : left + width]
            inside = (target >= left) & (target < left + width)
            shape = (self._side, self._side) if self._padded else (len(part), len(sources))
            matrix: Matrix = np.full(shape, self._absent, np.float32)
            weight = None if self._weight is None else self._weight[edge[inside]]
            fill(matrix, target[inside] - left, source[inside], weight, self._combine)
            yield Tile(sources, part, Tensor.from_numpy(matrix), padded=self._padded)

    def _gather(self, sources: IntArray) -> tuple[IntArray, IntArray]:
        """All edges of the sources: whose it is (0 to len(sources) - 1), and its place in the CSR arrays."""
        degree = self._offsets[sources + 1] - self._offsets[sources]
        compacted = np.cumsum(degree) - degree
        source = np.repeat(np.arange(len(sources)), degree)
        return source, np.arange(len(source)) + (self._offsets[sources] - compacted)[source]

    def _width(self, sources: int, rows: int) -> int:
        """How many targets fit beside so many sources: more than ``side`` when those are few."""
        if self._padded:
            return self._side
        vectors = self._side if self._combine == "min" else min(rows, self._side)  # the sums are a second tile
        return max(self._side, (_PARTS * self._side**2 - vectors * sources) // (sources + vectors))
