"""Communities by label propagation, as LDBC Graphalytics defines it (CDLP).

Every vertex begins with its own id - the user's - as label. In each iteration all vertices at once take the label that
is most frequent among their neighbours, the smallest of several. In a directed graph neighbours over in- and out-edges
both count, so that a pair u -> v, v -> u counts twice; a loop or parallel edge that the graph keeps counts as often as
it is stored. The number of iterations is part of the definition: labels may go on swapping for ever.

Internally a label is the position of the user's id in the ascending list of all ids, so that the smaller label is the
smaller id. Invariant: the result does not depend on threads or internal ids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.communities.kernels.label_propagation import propagate_labels_step
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small

_SMALLEST_TABLE = 8


@dataclass(frozen=True)
class LabelsResult:
    """``label`` of each internal vertex, as a user's id; an isolated vertex, not in here, keeps its own."""

    label: np.ndarray  # int64[n]
    count: int  # different labels among these vertices
    iterations: int  # that were run; fewer than asked for where the labels came to rest before
    changed: int  # labels that the last iteration changed


@alone_if_small
def label_propagation(graph: Graph, *, iterations: int = 10) -> LabelsResult:
    """The labels after ``iterations`` rounds, or when nothing changes any more, which is the same."""
    if iterations < 0:
        raise ValueError(f"iterations is {iterations}, which is below 0")
    threads, done, changed = numba.get_num_threads(), 0, 0
    label = graph.user_position.astype(np.int32)
    fresh = label.copy()
    targets, sources = (ids.view(f"u{ids.itemsize}") for ids in (graph.out_targets, graph.in_sources))
    tables = np.zeros((threads, _table_size(graph)), np.uint64)
    moved = np.zeros(threads, np.int64)
    while graph.n and done < iterations:
        propagate_labels_step(
            graph.out_offsets, targets, graph.in_offsets, sources, graph.directed, label, fresh, tables, moved,
            np.zeros(1, np.int64),
        )  # fmt: skip
        label, fresh = fresh, label
        done += 1
        changed = int(moved.sum())
        if not changed:
            break
    return LabelsResult(graph.user_ids[label].astype(np.int64), np.unique(label).size, done, changed)


def _table_size(graph: Graph) -> int:
    """Entries that the vertex of most neighbours needs: a power of two, at least twice their number."""
    most = int(graph.degree().max()) if graph.n else 0
    return max(_SMALLEST_TABLE, 1 << max(0, 2 * most - 1).bit_length())
