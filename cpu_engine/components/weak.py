"""Weakly connected components, labelled by their smallest internal id.

Every vertex first points to its smallest neighbour - as ids fall with degree, on most graphs that alone gathers nearly
every vertex in one tree. Vertices outside the largest tree then look at all of their arcs, the others at none
(Afforest, Sutton 2018). Where no tree is large yet, all are linked with a few more of their neighbours before.

Invariant: the labels depend on the graph alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.components.kernels.weak import (
    compress_step,
    count_roots_step,
    hook_first_step,
    link_outside_step,
    link_place_step,
)
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small

MAX_ROUNDS = 3  # of one neighbour for each vertex
SAMPLE = 1024  # vertices asked for their root
LARGE = 0.5  # of the sample in one tree: rows of all other vertices are read now


@dataclass(frozen=True)
class ComponentsResult:
    """``label`` is the smallest internal id of the component; isolated vertices are not in it."""

    label: np.ndarray  # int32[n]
    count: int  # components among the vertices with edges
    iterations: int  # passes over the vertices in which arcs were looked at
    edges_looked_at: int = 0


Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # where each row begins and ends, and the neighbours in them


@alone_if_small
def components(graph: Graph) -> ComponentsResult:
    """The weakly connected components of the graph."""
    parent = np.empty(graph.n, graph.out_targets.dtype)
    if graph.n == 0:
        return ComponentsResult(parent, 0, 0)
    rows = [(graph.in_offsets[:-1], graph.in_offsets[1:], graph.in_sources)]
    if graph.directed:
        rows.append((graph.out_offsets[:-1], graph.out_offsets[1:], graph.out_targets))
    rounds, looked = gather_trees(graph.best_in, rows, parent)
    return ComponentsResult(parent, int(count_roots_step(parent)), rounds, looked)


def gather_trees(best_in: np.ndarray, rows: list[Rows], parent: np.ndarray) -> tuple[int, int]:
    """Make ``parent`` point to the smallest vertex of each component; the passes made, and the arcs looked at.

    ``rows`` are the in-rows and, of a directed graph, the out-rows; ``best_in`` is the first of each in-row.
    """
    hook_first_step(best_in, *rows[-1], parent)
    compress_step(parent)
    rounds, looked = 1, parent.size * len(rows)
    giant, share = _largest_tree(parent)
    while share < LARGE and rounds < MAX_ROUNDS:
        for begin, end, neighbours in rows:
            link_place_step(begin, end, neighbours, rounds, parent)
        compress_step(parent)
        giant, share = _largest_tree(parent)
        rounds += 1
        looked += parent.size * len(rows)
    lanes = numba.get_num_threads()
    counted = np.zeros(lanes, np.int64)
    for begin, end, neighbours in rows:
        link_outside_step(begin, end, neighbours, giant, parent, counted, lanes)
    compress_step(parent)
    return rounds + 1, looked + int(counted.sum())


def _largest_tree(parent: np.ndarray) -> tuple[int, float]:
    """The most frequent root among some vertices from all over, and its share of them."""
    roots = parent[:: max(1, parent.size // SAMPLE)]
    found, count = np.unique(roots, return_counts=True)
    most = int(count.argmax())
    return int(found[most]), float(count[most] / roots.size)
