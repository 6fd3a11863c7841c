"""The local clustering coefficient as LDBC Graphalytics defines it: how many of the neighbours are neighbours.

The neighbourhood N(v) is every other vertex that v has an edge with, in either direction, once. The coefficient is the
number of arcs between members of N(v), divided by the d (d - 1) that there could be (d = |N(v)|); 0 where d < 2. In an
undirected graph an edge is two arcs, so that it is the usual 2 * triangles / (d (d - 1)). Loops and parallel edges do
not count.

Invariant: numerators are exact integers; the only rounding is one division per vertex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small
from cpu_engine.triangles.engine import (
    SimpleView,
    choose_hubs,
    core_matrix,
    count_triangles,
    no_counts,
    no_marks,
    simple_view,
)
from cpu_engine.triangles.kernels.clustering import DirectedView, count_arcs_step


@dataclass(frozen=True)
class ClusteringResult:
    """``coefficient`` of each internal vertex; ``average`` over all vertices, isolated ones (0) included."""

    coefficient: np.ndarray  # float64[n]
    average: float
    arcs: np.ndarray  # int64[n]: arcs among the neighbours
    degree: np.ndarray  # int64[n]: neighbours


@alone_if_small
def local_clustering(graph: Graph) -> ClusteringResult:
    """The coefficient of every vertex that has edges; that of an isolated vertex is 0."""
    if graph.n == 0:
        none = np.zeros(0, np.int64)
        return ClusteringResult(np.zeros(0, np.float64), 0.0, none, none)
    view = simple_view(graph)
    arcs = 2 * count_triangles(view).per_vertex if view.both is None else _count_arcs(view, view.both)
    possible = view.degree * (view.degree - 1)
    coefficient = arcs / np.maximum(possible, 1)
    return ClusteringResult(coefficient, float(coefficient.sum()) / graph.user_ids.size, arcs, view.degree)


def _count_arcs(view: SimpleView, both: np.ndarray) -> np.ndarray:
    threads, n = numba.get_num_threads(), view.degree.size
    hubs = choose_hubs(view.degree)
    marks, pair_marks = no_marks(n, threads), no_marks(n, threads)
    private, total = no_counts(n, threads, hubs)
    matrices = core_matrix(view, hubs), core_matrix(view, hubs, pairs=True)
    directed = DirectedView(view.first, view.end, view.rows, both, *matrices)
    count_arcs_step(directed, marks, pair_marks, private, total, np.zeros(1, np.int64))
    total[: private.shape[1]] += private.sum(axis=0)
    return total
