"""Clustering of directed and of weighted graphs (Fagiolo 2007, Onnela and others 2005): geometric means over triangles.

Of vertex v the sum over its triangles of the cube root of the product of weights (as shares of the largest), where a
directed graph's pair of arcs makes two edges; divided by as many triangles as there could be. Self-loops do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.weighted import values_of_in_arcs
from cpu_engine.threads import alone_if_small
from cpu_engine.triangles.kernels.triples import add_triples_step, count_neighbours_step, fill_lower_step

LANES = 8  # each needs 16 bytes per vertex


@dataclass(frozen=True)
class WeightedClustering:
    """``coefficient`` = 2 * products / pairs, 0 where there is no triangle."""

    coefficient: np.ndarray  # float64[n]
    products: np.ndarray  # float64[n]: summed over triangles, an undirected one once
    pairs: np.ndarray  # int64[n]: d (d - 1), or for a directed graph 2 (d (d - 1) - 2 mutual)


@alone_if_small
def clustering_weighted(graph: Graph) -> WeightedClustering:
    """Coefficients of all vertices that have edges."""
    n, value = graph.n, arc_values(graph)
    turned = values_of_in_arcs(graph, value)
    lower, degree, mutual = np.zeros((3, n), np.int64)
    rows = (graph.out_offsets, graph.out_targets)
    back = (graph.in_offsets, graph.in_sources)
    count_neighbours_step(*rows, *back, graph.directed, lower, degree, mutual)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(lower, out=offsets[1:])
    column, edge = np.empty(int(offsets[-1]), np.int32), np.empty(int(offsets[-1]))
    fill_lower_step(*rows, value, *back, turned, graph.directed, offsets, column, edge)
    lanes = min(numba.get_num_threads(), LANES)
    total = np.zeros((lanes, n))
    add_triples_step(offsets, column, edge, np.zeros((lanes, n)), total)
    products = total.sum(axis=0)
    pairs = degree * (degree - 1)
    if graph.directed:
        pairs = 2 * (pairs - 2 * mutual)
    coefficient = np.divide(2 * products, pairs, out=np.zeros(n), where=products != 0)
    return WeightedClustering(coefficient, products, pairs)


def arc_values(graph: Graph) -> np.ndarray:
    """The cube root of each arc's weight, as a share of the largest."""
    if graph.weight is None or not graph.m:
        return np.ones(graph.m)
    largest = graph.weight.max()
    root: np.ndarray = np.cbrt(graph.weight / (largest if largest else 1))
    return root
