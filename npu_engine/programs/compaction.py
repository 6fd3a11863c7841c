"""A core too large for the device: compacted pieces of what is active go there, one at a time.

Active-subgraph compaction: flags of the active vertices -> prefix sums -> compacted vertices, offsets and edges; the
same for the targets that these edges reach and that are still wanted. The result is small and dense enough to be
cut into tiles. An NPU makes the prefix sums; the edges themselves stay with the host, in CSR form, whose threads gather
those of the active vertices, an equal share of the edges each.

Invariant: a tile, the vectors multiplied with it and what comes out (or, for a relaxation, a second tile for the sums)
take no more than ``working_bytes(side)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from mindspore import Tensor, ops

from npu_engine.programs.cores import CoreEdges, Tile, fill
from npu_engine.programs.exact import Flags, IntArray, Matrix

_PARTS = 3  # a tile of side x side; with up to `side` vectors, what goes in and what comes out are two more


def working_bytes(side: int) -> int:
    """What a core (or tile) of that side takes to be worked on: itself, and as much again for input and for output."""
    return _PARTS * 4 * side * side


def largest_side(budget: int) -> int:
    """The largest core (or tile) that can be worked on within a budget of bytes."""
    return max(1, math.isqrt(budget // (_PARTS * 4)))


def compact(flags: Flags, *, on_device: bool = False) -> tuple[IntArray, IntArray]:
    """The flagged places, ascending, and by prefix sums the number that each of them gets there."""
    if on_device:
        sums = ops.cumsum(Tensor.from_numpy(flags.astype(np.int32)), 0).asnumpy().astype(np.int64)
    else:
        sums = np.cumsum(flags)
    return np.flatnonzero(flags), sums - 1


class CompactedCore:
    """Edges with the host; tiles of at most ``side`` sources on the device."""

    def __init__(self, edges: CoreEdges, side: int, *, padded: bool = False, threads: int = 1) -> None:
        """``padded``: an NPU; all tiles are side x side there, since every new shape is compiled."""
        self.size, self._side, self._padded, self._threads = edges.size, side, padded, threads
        self._absent, self._combine = edges.absent, edges.combine
        order = np.argsort(edges.ends[:, 0], kind="stable")
        self._targets = edges.ends[order, 1]
        self._weight = None if edges.weight is None else edges.weight[order]
        self._offsets = np.concatenate(([0], np.cumsum(np.bincount(edges.ends[:, 0], minlength=edges.size))))
        held = (self._targets, self._offsets) if self._weight is None else (self._targets, self._offsets, self._weight)
        self.nbytes = sum(array.nbytes for array in held)  # with the host

    def tiles(self, active: Flags, wanted: Flags, rows: int = 1) -> Iterator[Tile]:
        """Block by block of active sources, so that the gathered edges are bounded, too."""
        vertices, _ = compact(active & (np.diff(self._offsets) > 0), on_device=self._padded)
        for first in range(0, len(vertices), self._side):
            yield from self._tiles_from(vertices[first : first + self._side], wanted, rows)

    def _tiles_from(self, sources: IntArray, wanted: Flags, rows: int) -> Iterator[Tile]:
        source, edge = self._gather(sources, wanted)
        reached = np.zeros(self.size, bool)
        reached[self._targets[edge]] = True
        targets, number = compact(reached, on_device=self._padded)
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

    def _gather(self, sources: IntArray, wanted: Flags) -> tuple[IntArray, IntArray]:
        """The sources' edges to wanted targets: whose each is (0 to len(sources) - 1), and its place in the arrays."""
        degree = self._offsets[sources + 1] - self._offsets[sources]
        compacted = np.concatenate(([0], np.cumsum(degree)))
        if self._threads == 1:
            return self._gather_share(sources, degree, compacted, wanted, 0, len(sources))
        shares = np.arange(self._threads + 1) * int(compacted[-1]) // self._threads
        cuts = np.searchsorted(compacted, shares)
        cuts[0], cuts[-1] = 0, len(sources)
        with ThreadPoolExecutor(self._threads) as team:
            parts = list(
                team.map(
                    lambda first, last: self._gather_share(sources, degree, compacted, wanted, first, last),
                    cuts[:-1].tolist(),
                    cuts[1:].tolist(),
                )
            )
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _gather_share(
        self, sources: IntArray, degree: IntArray, compacted: IntArray, wanted: Flags, first: int, last: int
    ) -> tuple[IntArray, IntArray]:
        """One thread's part, the sources first..last; numpy lets go of the interpreter while it copies."""
        source = np.repeat(np.arange(first, last), degree[first:last])
        shift = self._offsets[sources[first:last]] - compacted[first:last]
        edge = np.arange(len(source)) + compacted[first] + shift[source - first]
        useful = wanted[self._targets[edge]]
        return source[useful], edge[useful]

    def _width(self, sources: int, rows: int) -> int:
        """How many targets fit beside so many sources: more than ``side`` when those are few."""
        if self._padded:
            return self._side
        vectors = self._side if self._combine == "min" else min(rows, self._side)  # the sums are a second tile
        return max(self._side, (_PARTS * self._side**2 - vectors * sources) // (sources + vectors))
