"""A core on the device as one dense matrix, and the tiles in which programs see any core.

A tile is a dense matrix[target, source] over some of the sources and targets: the whole core, some of its rows, or a
compacted piece (``compaction``). Programs go over the tiles of what is active and what is wanted, and need not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from mindspore import Tensor, ops

from npu_engine.programs.exact import Flags, IntArray, Interrupted, KeepGoing, Matrix

Combine = Literal["any", "min", "sum"]
Places = IntArray | slice
EVERYTHING = slice(None)
# Copying a row costs about as much as multiplying it three times; below this share of the rows it pays.
FEW = 1 / 5

_rows_by_matrix = ops.MatMul()
_rows_by_transposed = ops.MatMul(transpose_b=True)


@dataclass(frozen=True)
class CoreEdges:
    """A core as edges between the vertices 0 to size - 1, and what its matrix holds."""

    size: int
    ends: IntArray  # int64[e, 2]: source, target
    weight: Matrix | None = None  # float32[e]; None: 1 each
    absent: float = 0.0  # where there is no edge
    combine: Combine = "any"  # what parallel edges come to
    diagonal: float | None = None  # from a vertex to itself, if that is not as everywhere

    def dense(self, size: int | None = None) -> Matrix:
        """matrix[target, source], padded to ``size`` if given."""
        side = self.size if size is None else size
        matrix = np.full((side, side), self.absent, np.float32)
        fill(matrix, self.ends[:, 1], self.ends[:, 0], self.weight, self.combine)
        if self.diagonal is not None:
            np.fill_diagonal(matrix, self.diagonal)
        return matrix


class Tile(NamedTuple):
    """A part of the core on the device.

    ``by_source``: its matrix is [source, target]. ``padded``: it is larger than the sources and targets, absent edges
    filling it up.
    """

    sources: Places
    targets: Places
    matrix: Tensor
    by_source: bool = False
    padded: bool = False

    @property
    def target_count(self) -> int:
        return self.matrix.shape[0] if isinstance(self.targets, slice) else len(self.targets)


class Core(Protocol):
    """A core that programs can go over."""

    size: int
    nbytes: int

    def tiles(self, active: Flags, wanted: Flags, rows: int = 1) -> Iterator[Tile]:
        """Tiles with, together, at least all edges from ``active`` to ``wanted`` vertices, each edge once.

        ``rows`` vectors will be multiplied with each tile.
        """


class ResidentCore:
    """The whole core on the device, at its own size."""

    def __init__(self, edges: CoreEdges) -> None:
        matrix = edges.dense()
        self.size = edges.size
        self._symmetric = edges.combine != "min" and is_symmetric(matrix)  # sums over sources need them in the rows
        self._matrix = Tensor.from_numpy(matrix)
        self.nbytes = matrix.nbytes

    def tiles(self, active: Flags, wanted: Flags, rows: int = 1) -> Iterator[Tile]:
        """The whole matrix, or copies of a few of its rows: the wanted ones, in a symmetric core the active ones."""
        few = FEW * self.size
        if not active.any() or not wanted.any():
            return  # MindSpore leaves the product of an empty matrix undefined
        if self._symmetric and np.count_nonzero(active) < few:
            sources = np.flatnonzero(active)
            yield Tile(sources, EVERYTHING, self._rows(sources), by_source=True)
        elif np.count_nonzero(wanted) < few:
            targets = np.flatnonzero(wanted)
            yield Tile(EVERYTHING, targets, self._rows(targets))
        else:
            yield Tile(EVERYTHING, EVERYTHING, self._matrix)

    def _rows(self, places: IntArray) -> Tensor:
        return ops.gather(self._matrix, Tensor.from_numpy(places.astype(np.int32)), 0)


def fill(matrix: Matrix, rows: IntArray, columns: IntArray, weight: Matrix | None, combine: Combine) -> None:
    """Enter edges; of parallel ones the lightest counts, or their sum."""
    if combine == "sum":
        np.add.at(matrix, (rows, columns), np.float32(1) if weight is None else weight)
    elif combine == "min" and weight is not None:
        np.minimum.at(matrix, (rows, columns), weight)
    else:
        matrix[rows, columns] = 1 if weight is None else weight


def is_symmetric(matrix: Matrix, block: int = 128) -> bool:
    """Block by block: a transposed read of the whole would miss the cache at every step."""
    starts = range(0, len(matrix), block)
    return all(
        np.array_equal(matrix[i : i + block, j : j + block], matrix[j : j + block, i : i + block].T)
        for i in starts
        for j in starts
        if j <= i
    )


def product(tile: Tile, vectors: Matrix | Flags) -> Matrix:
    """vectors[B, sources] times the tile: [B, targets]."""
    # float32 throughout: integers up to 2**24, so counts of edges stay exact.
    rows = np.ascontiguousarray(vectors, np.float32)
    if tile.padded:
        rows = widened(rows, tile.matrix.shape[1])
        return _rows_by_transposed(Tensor.from_numpy(rows), tile.matrix).asnumpy()[:, : tile.target_count]
    if tile.by_source:
        return _rows_by_matrix(Tensor.from_numpy(rows), tile.matrix).asnumpy()
    if len(rows) == 1:
        return _rows_by_transposed(Tensor.from_numpy(rows), tile.matrix).asnumpy()
    # Of the ways to multiply by a matrix that lies by target, the fastest for several rows on the CPU.
    return _rows_by_matrix(tile.matrix, Tensor.from_numpy(np.ascontiguousarray(rows.T))).asnumpy().T


def widened(rows: Matrix, width: int) -> Matrix:
    """``rows`` with zeros up to the given width."""
    wide: Matrix = np.zeros((len(rows), width), np.float32)
    wide[:, : rows.shape[1]] = rows
    return wide


def reach(core: Core, frontier: Flags, wanted: Flags, keep_going: KeepGoing = lambda: True) -> Flags:
    """Boolean or-and: which wanted vertices have an edge from the frontier[B, size], row by row of it.

    For vertices that are not wanted the answer is undefined.
    """
    found = np.zeros(frontier.shape, bool)
    for tile in core.tiles(frontier.any(axis=0), wanted, len(frontier)):
        if not keep_going():
            raise Interrupted
        found[:, tile.targets] |= product(tile, frontier[:, tile.sources]) > 0
    return found
