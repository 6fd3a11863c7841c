"""Betweenness centrality (Brandes 2001): how many of the shortest paths lead through a vertex, exactly or sampled.

Distances of 64 roots at a time come from the bit-parallel search (bfs_many.py); path counts and dependencies are then
made level by level for 16 roots at a time, each vertex summing rows of 16 numbers (kernels/betweenness.py). Where
levels are many and thin (road maps) each root is done by itself, one thread each. Equal roots are done once and
weighted; in an undirected graph a root that hangs on a single edge has the dependencies of its neighbour, and is not
searched either.

Invariant: the score is the sum of dependencies over the given roots, up to the order of floating-point additions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs
from cpu_engine.centrality.kernels.betweenness import (
    COLUMNS,
    GATHERED,
    Rows,
    Sums,
    mark_level_step,
    pull_step,
    push_paths_step,
    turn_around_step,
)
from cpu_engine.centrality.kernels.betweenness_each import depend_each_step
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import threads_for

STRATEGIES = ("auto", "together", "each")
DEEP = 64  # with more levels than this each root is done by itself: a level costs a look at every vertex
PUSH = 32  # the level before gives its path counts away if it has this many times fewer edges than the level


@dataclass(frozen=True)
class BetweennessResult:
    """``score`` of each internal vertex; an isolated vertex has 0."""

    score: np.ndarray  # float64[n]
    roots: int  # that were asked for; all vertices if none were named
    searches: int  # roots searched from, after equal and hanging ones were folded
    scale: float  # what the sums of dependencies were multiplied by


def betweenness(
    graph: Graph, *, roots: np.ndarray | None = None, normalised: bool | None = True, strategy: str = "auto"
) -> BetweennessResult:
    """Betweenness of every vertex from all roots (None), or from those given (internal ids, repeated or not).

    Ends of a path do not count as on it. ``normalised`` as in networkx: True divides by (N - 1)(N - 2), N being all
    vertices, isolated ones included; False halves the sums of an undirected graph, whose pairs are met from both ends.
    Either way scores from k given roots are estimates, multiplied by N / k: one factor for all, which recent networkx
    refines for the roots themselves. None leaves the plain sum over the roots.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy {strategy!r} is none of {', '.join(STRATEGIES)}")
    chosen = np.arange(graph.n) if roots is None else np.asarray(roots, np.int64).ravel()
    if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < graph.n:
        raise ValueError(f"roots must be internal ids, 0..{graph.n - 1}")
    score = np.zeros(graph.n, np.float64)
    searched = 0
    if graph.n and chosen.size:
        weight = np.bincount(chosen, minlength=graph.n).astype(np.float64)
        leaves = np.zeros(graph.n, np.float64) if graph.directed else _fold_hanging(graph, weight)
        with threads_for((graph.n + graph.m) * chosen.size):
            searched = _Brandes(graph, strategy).add(weight, leaves, score)
        if not np.isfinite(score).all():
            raise OverflowError("some vertices have more shortest paths between them than a float64 can count")
    scale = _scale(graph, normalised, None if roots is None else chosen.size)
    score *= scale
    return BetweennessResult(score, chosen.size, searched, scale)


def _scale(graph: Graph, normalised: bool | None, sampled: int | None) -> float:
    if normalised is None:
        return 1.0
    count = int(graph.user_ids.size)
    estimate = count / sampled if sampled else 1.0
    if normalised:
        return estimate / ((count - 1) * (count - 2)) if count > 2 else estimate
    return estimate if graph.directed else estimate / 2


def _fold_hanging(graph: Graph, weight: np.ndarray) -> np.ndarray:
    """Move the weight of vertices with one edge to the neighbour; returns how much each neighbour got.

    From a hanging vertex h at p all paths lead through p, so h's dependencies are p's, but for p itself, on which
    everyone else depends.
    """
    begin = graph.out_offsets[:-1]
    hanging = np.flatnonzero((np.diff(graph.out_offsets) == 1) & (graph.out_targets[begin] != np.arange(graph.n)))
    near = graph.out_targets[begin[hanging]].astype(np.int64)
    folded = np.bincount(near, weights=weight[hanging], minlength=graph.n)
    weight[hanging] = 0.0  # of two that hang on each other, either may keep it: no vertex is between them
    pair = np.isin(near, hanging)
    folded[near[pair]] = 0.0
    return folded


class _Brandes:
    """The engine with its buffers: three rows of 16 numbers and two words per vertex."""

    def __init__(self, graph: Graph, strategy: str) -> None:
        n, threads = graph.n, numba.get_num_threads()
        self._graph, self._strategy = graph, strategy
        self._search = ManyBfs(graph)
        self._targets, self._sources = (ids.view(f"u{ids.itemsize}") for ids in (graph.out_targets, graph.in_sources))
        self._bounds = np.searchsorted(graph.in_offsets, np.arange(threads + 1) * graph.m // threads)
        self._bounds[0], self._bounds[-1] = 0, n
        self._sigma, self._front, self._fresh = (np.zeros(0, np.float64) for _ in range(3))
        self._sums = Sums(
            np.zeros((threads, COLUMNS), np.float64), np.zeros((threads, GATHERED + 1), self._targets.dtype)
        )

    def add(self, weight: np.ndarray, leaves: np.ndarray, score: np.ndarray) -> int:
        """Add the dependencies of all roots with a weight, or leaves; returns how many roots that were."""
        roots = np.flatnonzero((weight > 0) | (leaves > 0))
        each = self._strategy == "each"
        for first in range(0, roots.size, ROOTS_PER_PASS):
            some = roots[first : first + ROOTS_PER_PASS]
            factor = weight[some] + leaves[some]
            if not each:
                padded = _padded(some, some[0])
                found = self._search.run(padded)
                each = self._strategy == "auto" and int(found.level.max()) > DEEP  # and so will the others be
            if each:
                reached = self._each(some, factor, score)
            else:
                reached = np.count_nonzero(found.level >= 0, axis=1)[: some.size]
                self._together(found.level, padded, _padded(factor, 0.0), score)
            score[some] += leaves[some] * (reached - 2)
        return int(roots.size)

    def _each(self, roots: np.ndarray, factor: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Root by root; returns how many vertices each one reaches."""
        graph, threads = self._graph, min(numba.get_num_threads(), roots.size)
        places, numbers = np.empty((threads, 2, graph.n), np.int32), np.empty((threads, 2, graph.n), np.float64)
        mine, reached = np.zeros((threads, graph.n), np.float64), np.zeros(roots.size, np.int64)
        depend_each_step(graph.out_offsets, self._targets, roots, factor, places, numbers, mine, reached)
        score += mine.sum(axis=0)
        return reached

    def _together(self, level: np.ndarray, roots: np.ndarray, factor: np.ndarray, score: np.ndarray) -> None:
        """All roots, COLUMNS at a time; those that only fill the last rows have factor 0."""
        graph, table = self._graph, level.T.reshape(-1)
        if not self._sigma.size:
            self._sigma, self._front, self._fresh = (np.zeros(graph.n * COLUMNS, np.float64) for _ in range(3))
        for column in range(0, roots.size, COLUMNS):
            batch = slice(column, column + COLUMNS)
            if not factor[batch].any():
                break
            levels = _Levels(graph, table, level.shape[0], column)
            self._count_paths(levels, roots[batch])
            self._add_dependencies(levels, factor[batch], score)

    def _count_paths(self, levels: _Levels, roots: np.ndarray) -> None:
        """Outwards: sigma of every level, the path counts of the deepest in ``front``."""
        graph = self._graph
        self._sigma.fill(0)
        self._front.reshape(-1, COLUMNS)[roots] = 0
        for rows in (self._sigma, self._front):
            rows.reshape(-1, COLUMNS)[roots, np.arange(roots.size)] = 1
        for depth in range(1, levels.deepest + 1):
            before, level = levels.at(depth - 1), levels.at(depth)
            if before.out_edges * PUSH < level.in_edges:
                push_paths_step(
                    graph.out_offsets, self._targets, np.flatnonzero(before.word), before.word, level.word,
                    self._front, self._fresh, self._sigma, self._bounds,
                )  # fmt: skip
            else:
                pull_step(
                    Rows(graph.in_offsets, self._sources), before.word, level.word, self._front, self._fresh,
                    self._sigma, None, None, np.zeros(1, np.int64), self._sums,
                )  # fmt: skip
            self._front, self._fresh = self._fresh, self._front

    def _add_dependencies(self, levels: _Levels, factor: np.ndarray, score: np.ndarray) -> None:
        """Back towards the roots, which themselves get nothing."""
        graph = self._graph
        turn_around_step(levels.at(levels.deepest).word, self._sigma, self._front)
        for depth in range(levels.deepest - 1, 0, -1):
            pull_step(
                Rows(graph.out_offsets, self._targets), levels.at(depth + 1).word, levels.at(depth).word, self._front,
                self._fresh, self._sigma, factor, score, np.zeros(1, np.int64), self._sums,
            )  # fmt: skip
            self._front, self._fresh = self._fresh, self._front


@dataclass(frozen=True)
class _Level:
    word: np.ndarray  # bit s: the vertex is in this level of root s
    out_edges: int
    in_edges: int


class _Levels:
    """The levels of one batch of roots, as words; made when first asked for."""

    def __init__(self, graph: Graph, table: np.ndarray, stride: int, column: int) -> None:
        self._graph, self._table, self._stride, self._column = graph, table, stride, column
        self._made: dict[int, _Level] = {}
        self.deepest = int(table.reshape(-1, stride)[:, column : column + COLUMNS].max())

    def at(self, depth: int) -> _Level:
        if depth not in self._made:
            word = np.empty(self._graph.n, np.uint16)
            edges = mark_level_step(
                self._table, self._stride, self._column, depth, self._graph.out_offsets, self._graph.in_offsets, word
            )
            self._made[depth] = _Level(word, *edges)
        return self._made[depth]


def _padded(values: np.ndarray, filling: float) -> np.ndarray:
    """As many as a whole number of batches, such that the search makes whole rows of them: 16, 32 or 64."""
    width = next(size for size in (COLUMNS, 2 * COLUMNS, ROOTS_PER_PASS) if size >= values.size)
    return np.concatenate([values, np.full(width - values.size, filling, values.dtype)])
