"""Closeness and harmonic centrality: how near a vertex is to all others, exactly, of all vertices or of given ones.

Distances of 64 vertices at a time come from the bit-parallel search (bfs_many.py). In a directed graph the distances
are those *to* the vertex, over incoming paths, as networkx has it; the search then runs on the reversed graph. In an
undirected graph a vertex that hangs on a single edge follows from its neighbour: everyone else is one step further.

Invariant: counts of vertices by distance are exact; the sums of inverses are added up from the smallest distance on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba
import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs
from cpu_engine.centrality.kernels.closeness import count_levels_step
from cpu_engine.graph.graph import Graph, best_in_neighbours
from cpu_engine.threads import threads_for

DEEP = 1024  # beyond this depth a table of counts for all roots at once would be large


@dataclass(frozen=True)
class ClosenessResult:
    """One entry per root, in the order asked for; an isolated vertex, not in here, has 0."""

    roots: np.ndarray  # int64, internal ids
    score: np.ndarray  # float64
    reached: np.ndarray  # int64: vertices that reach the root, itself included
    farness: np.ndarray  # int64: the sum of their distances
    searches: int  # vertices searched from


def closeness(
    graph: Graph, *, roots: np.ndarray | None = None, harmonic: bool = False, improved: bool = True
) -> ClosenessResult:
    """Closeness of the given vertices (internal ids), or of all.

    With r vertices reaching v and N in all: (r - 1) / farness, times (r - 1) / (N - 1) if ``improved`` (Wasserman and
    Faust; networkx's default), 0 if no vertex reaches it. ``harmonic``: the sum of 1 / distance over the others.
    """
    chosen = np.arange(graph.n) if roots is None else np.asarray(roots, np.int64).ravel()
    if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < graph.n:
        raise ValueError(f"roots must be internal ids, 0..{graph.n - 1}")
    near = chosen.copy() if graph.directed else _neighbours_of_hanging(graph, chosen)
    searched, place = np.unique(near, return_inverse=True)
    hangs = near != chosen
    sums = _Sums(_reversed(graph) if graph.directed else graph)
    with threads_for((graph.n + graph.m) * searched.size):
        sums.run(searched)
    reached = sums.reached[place]
    farness = sums.farness[place] + np.where(hangs, reached - 2, 0)
    if harmonic:
        score = np.where(hangs, sums.further[place], sums.inverse[place])
    else:
        others = (reached - 1).astype(np.float64)
        score = others / np.maximum(farness, 1)
        if improved and graph.user_ids.size > 1:
            score *= others / (graph.user_ids.size - 1)
    return ClosenessResult(chosen, score, reached, farness, searched.size)


def _neighbours_of_hanging(graph: Graph, vertices: np.ndarray) -> np.ndarray:
    """Each vertex, or its neighbour if it has no other edge."""
    if not vertices.size:
        return vertices
    begin = graph.out_offsets[vertices]
    first = graph.out_targets[np.minimum(begin, graph.m - 1)].astype(np.int64)
    alone = graph.out_offsets[vertices + 1] - begin == 1
    return np.where(alone, first, vertices)


def _reversed(graph: Graph) -> Graph:
    return replace(
        graph, out_offsets=graph.in_offsets, out_targets=graph.in_sources, in_offsets=graph.out_offsets,
        in_sources=graph.out_targets, weight=None,
        best_in=best_in_neighbours(graph.out_offsets, graph.out_targets),
    )  # fmt: skip


class _Sums:
    """What is needed of the distances from each root, added up 64 roots at a time."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.reached, self.farness = np.empty(0, np.int64), np.empty(0, np.int64)
        self.inverse, self.further = np.empty(0, np.float64), np.empty(0, np.float64)

    def run(self, roots: np.ndarray) -> None:
        self.reached, self.farness = np.zeros(roots.size, np.int64), np.zeros(roots.size, np.int64)
        self.inverse, self.further = np.zeros(roots.size, np.float64), np.zeros(roots.size, np.float64)
        if not roots.size:
            return
        engine = ManyBfs(self._graph)
        for first in range(0, roots.size, ROOTS_PER_PASS):
            some = roots[first : first + ROOTS_PER_PASS]
            padding = ROOTS_PER_PASS - some.size if some.size > ROOTS_PER_PASS // 2 else 0  # the search makes such rows
            level = engine.run(np.concatenate([some, np.full(padding, some[0])])).level
            self._add_up(level, slice(first, first + some.size))

    def _add_up(self, level: np.ndarray, place: slice) -> None:
        deepest = int(level.max())
        if deepest <= DEEP:
            counts = np.zeros((numba.get_num_threads(), level.shape[0], deepest + 2), np.int64)
            count_levels_step(level.T.reshape(-1), level.shape[0], counts)
            self._note(counts.sum(axis=0)[: place.stop - place.start, 1:], place)
            return
        for i in range(place.stop - place.start):
            at = np.bincount(level[i].astype(np.int64) + 1)
            self._note(at[None, 1:], slice(place.start + i, place.start + i + 1))

    def _note(self, at: np.ndarray, place: slice) -> None:
        """``at[i, d]`` vertices are d away from root i."""
        distance = np.arange(at.shape[1])
        self.reached[place] = at.sum(axis=1)
        self.farness[place] = at @ distance
        self.inverse[place] = at[:, 1:] @ (1 / distance[1:])
        # Of a vertex that hangs on the root: the root is 1 away, the others one step further than from the root.
        self.further[place] = 0.5 + at[:, 1:] @ (1 / (distance[1:] + 1))
