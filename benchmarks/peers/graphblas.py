"""SuiteSparse:GraphBLAS through python-graphblas: levels by vector-matrix products that change direction.

Push multiplies the frontier from the left (its rows are merged), pull multiplies it from the right (each unvisited
vertex looks at its in-neighbours, with early exit through the ``any`` monoid). Of the forms tried, this was the
fastest: levels in a full vector that is its own mask, and pull from a frontier of a twentieth of the vertices on.
"""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
from graphblas import Matrix, Vector, binary, dtypes, monoid, select, semiring, unary

from benchmarks.peers.adapter import Adapter, Answer, Pairs, Rows

PULL_SHARE = 1 / 20  # of the vertices in the frontier


def make_adapter(threads: int) -> Adapter:
    gb.ss.config["nthreads"] = threads
    return GraphblasAdapter(threads)


class GraphblasAdapter(Adapter):
    library = gb

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.threads_used = threads
        self._out: Any = None
        self._in: Any = None  # transposed; the same matrix if undirected

    def prepare_rows(self, rows: Rows) -> Any:
        def arrays(offsets: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return offsets.astype(np.uint64), targets.astype(np.uint64)

        out = arrays(rows.out_offsets, rows.out_targets)
        return rows.n, out, arrays(rows.in_offsets, rows.in_sources) if rows.directed else None

    def open_rows(self, prepared: Any) -> None:
        n, out, incoming = prepared
        self._out = _matrix(n, *out)
        self._in = self._out if incoming is None else _matrix(n, *incoming)

    @property
    def answers(self) -> dict[str, Answer]:
        return {"pagerank": lambda *_: self._pagerank(), "triangles": lambda *_: self._count_triangles()}

    def values(self, name: str, outcome: Any) -> np.ndarray:
        return np.asarray(outcome.to_dense() if name == "pagerank" else outcome)

    def _pagerank(self) -> Any:
        """GAP's definition: until the ranks change by less than 1e-4 in all, at most 20 iterations."""
        n = self._out.nrows
        degree = self._out.reduce_rowwise(monoid.plus[dtypes.INT64]).new(dtypes.FP64)
        rank = Vector(dtypes.FP64, n)
        rank[:] = 1 / n
        for _ in range(20):
            passed = (rank / degree).new()
            fresh = Vector(dtypes.FP64, n)
            fresh[:] = 0.15 / n
            fresh(binary.plus) << semiring.plus_second[dtypes.FP64](self._in @ passed) * 0.85
            change = (fresh - rank).new().apply(unary.abs).new().reduce(monoid.plus).value
            rank = fresh
            if change < 1e-4:
                break
        return rank

    def _count_triangles(self) -> int:
        """Sandia's way: wedges of the lower triangle, masked by it."""
        lower = select.tril(self._out, -1).new()
        closed = Matrix(dtypes.INT64, *lower.shape)
        closed(lower.S) << semiring.plus_pair[dtypes.INT64](lower @ lower.T)
        return int(closed.reduce_scalar(monoid.plus).value)

    def run(self, variant: str, root: int) -> Any:
        n = self._out.nrows
        level = Vector(dtypes.INT32, n)  # one more than the level, so that 0 is "not reached"
        level[:] = 0
        frontier = Vector(dtypes.BOOL, n)
        frontier[root] = True
        size, depth = 1, 0
        while size:
            depth += 1
            level(frontier.S)[:] = depth
            if size > n * PULL_SHARE:
                frontier(~level.V, replace=True) << semiring.any_pair[bool](self._in @ frontier)
            else:
                frontier(~level.V, replace=True) << semiring.any_pair[bool](frontier @ self._out)
            size = int(frontier.nvals)
        return level

    def levels(self, variant: str, outcome: Any) -> np.ndarray:
        return np.asarray(outcome.to_dense(), np.int32) - 1

    def build_pairs(self, prepared: Pairs) -> Any:
        src, dst = prepared.both_ways()
        n = prepared.count
        matrix = Matrix.from_coo(src, dst, True, nrows=n, ncols=n)  # one value for all: duplicates are ignored
        matrix.wait()
        return matrix, prepared.directed

    def edge_count(self, built: Any) -> int:
        matrix, directed = built
        return int(matrix.nvals) // (1 if directed else 2)


def _matrix(n: int, offsets: np.ndarray, targets: np.ndarray) -> Any:
    return Matrix.ss.import_csr(
        nrows=n, ncols=n, indptr=offsets, values=np.array([True]), col_indices=targets, is_iso=True, sorted_cols=True
    )
