"""Triangles: how many there are, and how many each vertex is a corner of.

What is counted is the undirected simple view: direction, loops and parallel edges do not matter, so that a directed
pair u -> v, v -> u is one edge. Ids are by descending degree; a triangle is found at its corner of largest id, whose
list of smaller neighbours is short (kernels/triangles.py). The hubs' edges are also kept as a bit matrix, which settles
all triangles with two hubs among the smaller corners 64 at a time.

Invariant: exact, whatever the number of hubs in the matrix and of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small
from cpu_engine.triangles.kernels.counting import count_triangles_step, fill_core_step
from cpu_engine.triangles.kernels.view import end_lower_rows_step, fill_rows_step, size_rows_step

MOST_HUBS = 8192  # 8 MiB of bit matrix
EDGES_PER_WORD = 2  # a vertex gets a row of bits while it has this many edges per word of it (flat from 1 to 4)
PRIVATE = 1 << 16  # vertices whose counts each thread keeps for itself
_WORD = 64


@dataclass(frozen=True)
class TrianglesResult:
    """``count`` triangles in all; ``per_vertex`` of each internal vertex (their sum is three times the count)."""

    count: int
    per_vertex: np.ndarray  # int64[n]
    hubs: int  # in the bit matrix


@dataclass(frozen=True)
class SimpleView:
    """The simple undirected view: ``rows[first[v]:end[v]]`` are v's distinct neighbours below v, ascending."""

    first: np.ndarray  # int64[n]
    end: np.ndarray
    rows: np.ndarray  # unsigned
    degree: np.ndarray  # int64[n], distinct neighbours, the vertex itself not counted
    both: np.ndarray | None  # uint8, aligned with rows: arcs in both directions; None = everywhere (undirected)


def simple_view(graph: Graph) -> SimpleView:
    """The view, as the graph's own rows where they already are that."""
    threads, n = numba.get_num_threads(), graph.n
    targets, sources = (ids.view(f"u{ids.itemsize}") for ids in (graph.out_targets, graph.in_sources))
    if not graph.directed:
        end, faults = np.empty(n, np.int64), np.zeros(threads, np.int64)
        end_lower_rows_step(graph.out_offsets, targets, end, faults)
        if not faults.any():
            return SimpleView(graph.out_offsets[:-1], end, targets, np.diff(graph.out_offsets), None)
    degree, offsets = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    size_rows_step(graph.out_offsets, targets, graph.in_offsets, sources, degree, offsets[1:], threads)
    np.cumsum(offsets, out=offsets)
    rows, both = np.empty(int(offsets[-1]), targets.dtype), np.empty(int(offsets[-1]), np.uint8)
    fill_rows_step(graph.out_offsets, targets, graph.in_offsets, sources, offsets, rows, both, threads)
    return SimpleView(offsets[:-1], offsets[1:], rows, degree, both if graph.directed else None)


def choose_hubs(degree: np.ndarray) -> int:
    """How many of the first vertices have enough edges for a row of bits; a multiple of 64, or all vertices."""
    sizes = np.arange(_WORD, min(MOST_HUBS, degree.size) + 1, _WORD)
    paying = degree[sizes - 1] >= sizes // _WORD * EDGES_PER_WORD
    if degree.size < _WORD or not paying.any():
        return min(_WORD, degree.size)
    return int(sizes[np.flatnonzero(paying)[-1]])


def core_matrix(view: SimpleView, hubs: int, *, pairs: bool = False) -> np.ndarray:
    """The first vertices' edges (with ``pairs``: those with arcs both ways) as bits, uint64[hubs, words]."""
    matrix = np.zeros((hubs, -(-hubs // _WORD)), np.uint64)
    flags = view.both if pairs and view.both is not None else np.empty(0, np.uint8)
    fill_core_step(view.first, view.end, view.rows, flags, np.uint8(1), matrix)
    return matrix


def no_marks(n: int, threads: int) -> np.ndarray:
    """A bit per vertex for each thread, all zero."""
    return np.zeros((threads, -(-n // _WORD)), np.uint64)


def no_counts(n: int, threads: int, hubs: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts that are a thread's own, of the first vertices with all hubs among them, and those of all threads."""
    return np.zeros((threads, min(n, max(PRIVATE, hubs))), np.int64), np.zeros(n, np.int64)


@alone_if_small
def triangles(graph: Graph) -> TrianglesResult:
    """Count the triangles of the graph, and those at each vertex."""
    if graph.n == 0:
        return TrianglesResult(0, np.zeros(0, np.int64), 0)
    return count_triangles(simple_view(graph))


def count_triangles(view: SimpleView) -> TrianglesResult:
    """The triangles of a view that has vertices."""
    threads, n = numba.get_num_threads(), view.degree.size
    hubs = choose_hubs(view.degree)
    matrix, marks = core_matrix(view, hubs), no_marks(n, threads)
    private, total = no_counts(n, threads, hubs)
    count_triangles_step(view.first, view.end, view.rows, matrix, marks, private, total, np.zeros(1, np.int64))
    total[: private.shape[1]] += private.sum(axis=0)
    return TrianglesResult(int(total.sum()) // 3, total, hubs)
