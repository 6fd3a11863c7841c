"""Strongly connected components, labelled by their smallest internal id.

Most directed graphs have one large component, and the best connected vertex is in it: it is what that vertex reaches
and is reached from, two breadth-first searches on all threads. What is left is small, or deep: one depth-first search,
which takes every vertex and arc once however long the paths are (Tarjan), without recursion.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.components.kernels.strong import reached_both_ways_step, search_rest_step
from cpu_engine.components.weak import ComponentsResult, components
from cpu_engine.graph.graph import Graph, best_in_neighbours
from cpu_engine.threads import alone_if_small

MIN_ARCS = 1 << 16  # below that, the depth-first search alone is done before the two searches are set up


@alone_if_small
def strong_components(graph: Graph) -> ComponentsResult:
    """The strongly connected components; of an undirected graph, its components.

    ``iterations`` are the levels of the searches from the pivot, plus one for the rest.
    """
    if not graph.directed:
        same = components(graph)
        return ComponentsResult(same.label, same.count, same.iterations)
    label = np.full(graph.n, -1, np.int32)
    count, levels, large = 0, 0, 0
    if graph.m >= MIN_ARCS:
        pivot = int((np.diff(graph.out_offsets) * np.diff(graph.in_offsets)).argmax())
        forward = _levels_from(graph, pivot)
        backward = _levels_from(_reversed(graph), pivot)
        large, count = int(reached_both_ways_step(forward, backward, label)), 1
        levels = int(forward.max()) + int(backward.max()) + 2
    if large < graph.n:
        order = np.zeros(graph.n, np.int32)
        low, stack, path = np.empty((3, graph.n), np.int32)
        cursor = np.empty(graph.n, np.int64)
        count += search_rest_step(graph.out_offsets, graph.out_targets, label, order, low, cursor, stack, path)
    return ComponentsResult(label, count, levels + 1)


def _levels_from(graph: Graph, root: int) -> np.ndarray:
    search = LevelBfs(CoreSplit(graph))
    search.start(root, withhold_core=False)
    while search.can_step():
        search.step()
        search.settle()
    return search.finish()[0]


def _reversed(graph: Graph) -> Graph:
    """The same arrays with in and out exchanged."""
    return replace(
        graph,
        out_offsets=graph.in_offsets, out_targets=graph.in_sources,
        in_offsets=graph.out_offsets, in_sources=graph.out_targets,
        weight=None, best_in=best_in_neighbours(graph.out_offsets, graph.out_targets),
    )  # fmt: skip
