"""Core numbers: the largest k such that a vertex is in a subgraph in which each vertex has k neighbours.

The graph is taken as undirected and simple: directions and self-loops do not count, nor does the second of two edges
between the same vertices. Peeling by levels on all threads; where a level takes no vertex, the next one is the smallest
number of neighbours that a vertex has left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.kcore.kernels.peeling import count_repeated_step, find_peelable_step, peel_step
from cpu_engine.threads import alone_if_small


@dataclass(frozen=True)
class CoreNumbersResult:
    """Core numbers by internal id; isolated vertices, which have 0, are not in it."""

    core: np.ndarray  # int32[n]
    largest: int  # the highest of them, the graph's degeneracy
    iterations: int  # levels that took a vertex


@alone_if_small
def k_core(graph: Graph) -> CoreNumbersResult:
    """The core number of every vertex."""
    if not graph.directed and count_repeated_step(graph.out_offsets, graph.out_targets) == 0:
        core, levels = _peel(graph)
    else:
        simple = _simple_view(graph)
        core = np.zeros(graph.n, np.int32)  # with nothing but loops, a vertex is not in the view
        core[simple.user_ids[simple.user_position]], levels = _peel(simple)
    return CoreNumbersResult(core, int(core.max(initial=0)), levels)


def _simple_view(graph: Graph) -> Graph:
    """The undirected graph without loops and parallel edges; its user ids are the internal ids of the one given."""
    src = np.repeat(np.arange(graph.n, dtype=graph.out_targets.dtype), np.diff(graph.out_offsets))
    return build_graph(EdgeList(src, graph.out_targets.copy(), id_range=(0, graph.n)), directed=False)


def _peel(graph: Graph) -> tuple[np.ndarray, int]:
    """Core numbers of a simple undirected graph, and how many levels took a vertex."""
    n, lanes = graph.n, numba.get_num_threads()
    left = np.diff(graph.out_offsets).astype(np.int32)
    core = np.full(n, -1, np.int32)
    queue, tally = np.empty((lanes, n), np.int32), np.empty((lanes, 2), np.int64)
    falling = -left  # as they were: ascending
    level, gone, levels = 1, 0, 0
    while gone < n:
        until = int(np.searchsorted(falling, -level, side="right"))
        find_peelable_step(left, core, level, until, queue, tally)
        if not tally[:, 0].any():
            level = int(tally[:, 1].min())
            continue
        peel_step(graph.out_offsets, graph.out_targets, left, core, level, queue, tally)
        gone += int(tally[:, 0].sum())
        level += 1
        levels += 1
    return core, levels
