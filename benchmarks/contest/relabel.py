"""Our graph as its users know it: rows over the positions of the user's ids, isolated vertices included.

Invariant: rows ascend. Each side is made from the other by visiting positions in order, so nothing has to be sorted.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.peers.adapter import Rows
from cpu_engine.graph.graph import Graph


def internal_rows(graph: Graph) -> Rows:
    """The graph in internal ids: its arrays as they are."""
    return Rows(graph.n, graph.directed, graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources)


def user_rows(graph: Graph, *, own_weights: bool = False) -> Rows:
    """The graph in positions of the user's ids, with its weights where they are asked for."""
    out_offsets, out_targets = _renamed(graph, graph.in_offsets, graph.in_sources, graph.out_offsets)
    in_offsets, in_sources = out_offsets, out_targets
    if graph.directed:
        in_offsets, in_sources = _renamed(graph, graph.out_offsets, graph.out_targets, graph.in_offsets)
    weight = _renamed_weights(graph) if own_weights else None
    return Rows(graph.user_ids.size, graph.directed, out_offsets, out_targets, in_offsets, in_sources, weight)


def _renamed_weights(graph: Graph) -> np.ndarray:
    """The weights in the order of the out-rows by position."""
    assert graph.weight is not None
    position = graph.user_position.astype(np.int64)
    row = np.repeat(position, np.diff(graph.out_offsets))
    return graph.weight[np.argsort(row * graph.user_ids.size + position[graph.out_targets])]


def _renamed(
    graph: Graph, offsets: np.ndarray, columns: np.ndarray, other_offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the other side, from this side's rows."""
    sizes = np.zeros(graph.user_ids.size, np.int64)
    sizes[graph.user_position] = np.diff(other_offsets)
    made = np.zeros(graph.user_ids.size + 1, np.int64)
    np.cumsum(sizes, out=made[1:])
    targets = np.empty(graph.m, np.int32)
    transpose_renamed_step(
        graph.internal_of_position, graph.user_position, offsets, columns, made[:-1].copy(), targets
    )  # fmt: skip
    return made, targets


@njit(cache=True)
def transpose_renamed_step(
    internal_of_position: np.ndarray,
    position: np.ndarray,
    offsets: np.ndarray,
    columns: np.ndarray,
    cursor: np.ndarray,
    targets: np.ndarray,
) -> None:
    """Write each row's position into the rows of its columns.

    Invariant  cursor[p] is the next free place of p's row.   Races  none, one thread.   Work  O(m), scattered writes.
    """
    for p in range(internal_of_position.size):
        v = internal_of_position[p]
        if v < 0:
            continue
        for i in range(offsets[v], offsets[v + 1]):
            q = position[columns[i]]
            targets[cursor[q]] = p
            cursor[q] += 1
