"""Connected components with a dense core whose own edges a partner looks at.

The engine links everything else. ``core_labels`` then holds, of each core vertex, the smallest id known in its
component; a partner spreads the smallest labels over the core's edges, and what it joins is joined here. Invariant: two
vertices only get the same label if they are connected, by arcs looked at here or by the partner's word.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit, EdgeView
from cpu_engine.components.kernels.weak import compress_step, count_roots_step, link_listed_step
from cpu_engine.components.weak import ComponentsResult, Rows, gather_trees
from cpu_engine.errors import InputError


class CoreComponents:
    """One run after another on the same split."""

    def __init__(self, split: CoreSplit) -> None:
        self.split = split
        self._parent = np.empty(split.graph.n, np.int32)
        self._rounds = self._looked = 0

    def start(self) -> None:
        """Forget the last run and link all arcs but those inside the core."""
        self._rounds, self._looked = self._gather(self.split.outside_core)

    def core_labels(self) -> np.ndarray:
        """The smallest id known in each core vertex's component, int32[k]."""
        return self._parent[: self.split.core_size].copy()

    def adopt(self, closed: np.ndarray) -> int:
        """Join each core vertex with the label that it was given; how many of that were new.

        InputError if a label is no vertex that a smaller one could have come from.
        """
        core = self.split.core_vertices
        false = (closed < 0) | (closed > self._parent[: core.size])
        if false.any():
            v = int(np.flatnonzero(false)[0])
            raise InputError(f"core vertex {v} was given the label {int(closed[v])}", fix="labels only become smaller")
        joined = int(link_listed_step(core, closed, self._parent))
        compress_step(self._parent)
        return joined

    def take_core_back(self) -> None:
        """The partner is gone, or lied: link everything, from the beginning."""
        rounds, looked = self._gather(self.split.all_edges)
        self._rounds, self._looked = self._rounds + rounds, self._looked + looked

    def finish(self) -> ComponentsResult:
        return ComponentsResult(self._parent.copy(), int(count_roots_step(self._parent)), self._rounds, self._looked)

    def _gather(self, view: EdgeView) -> tuple[int, int]:
        graph = self.split.graph
        if graph.n == 0:
            return 0, 0
        rows: list[Rows] = [(view.in_begin, view.in_end, graph.in_sources)]
        if graph.directed:
            rows.append((view.out_begin, view.out_end, graph.out_targets))
        return gather_trees(view.best_in.view(np.int32), rows, self._parent)


def core_both_ways(split: CoreSplit) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and targets of the core's edges in both directions: connection has none."""
    graph, k = split.graph, split.core_size
    if not graph.directed:
        return graph.out_offsets, graph.out_targets
    offsets = graph.out_offsets[: k + 1]
    source = np.repeat(np.arange(k), np.diff(offsets))
    target = graph.out_targets[: int(offsets[-1])]
    inside = target < k
    both = np.unique(
        np.concatenate((source[inside] * k + target[inside], target[inside] * np.int64(k) + source[inside]))
    )
    counted = np.zeros(k + 1, np.int64)
    np.cumsum(np.bincount(both // max(k, 1), minlength=k), out=counted[1:])
    return counted, (both % max(k, 1)).astype(np.int32)
