"""Level-synchronous BFS that changes direction: push while the frontier is thin, pull while it is thick.

Invariant: between steps every vertex within ``depth`` hops carries its exact level, and no other vertex does (while a
level is open, some of the next level's members may already be marked). Core values from a partner wait in
``tentative`` until their level comes, unless the vertex is reached before.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.algorithms.traversal import Adoption, CoreSplit, Step, complete_parents, merge_core
from cpu_engine.kernels.pull import collect_level_step, count_edges_step, pull_step
from cpu_engine.kernels.push import gather_found_step, push_share_step, push_step

ALPHA = 15  # pull once the frontier's edges exceed the unexplored ones / ALPHA (Beamer 2012)
SERIAL_EDGES = 4096  # below this a level costs less than waking the other threads
BETA = 18  # push again once the frontier is thinner than n / BETA (Beamer 2012)


class LevelBfs:
    """See the module; satisfies ``Traversal``."""

    name = "level"

    def __init__(self, split: CoreSplit, serial_edges: int = SERIAL_EDGES) -> None:
        n, threads, k = split.graph.n, numba.get_num_threads(), split.core_size
        self._split = split
        self._serial_edges = serial_edges
        self._level = np.empty(n, np.int32)
        self._parent = np.empty(n, np.int32)
        self._frontier = np.empty(n, np.int32)
        self._next = np.empty(n, np.int32)
        self._found = np.empty((threads, n), np.int32)
        self._found_sizes = np.zeros(threads, np.int64)
        self._tally = np.zeros((threads, 2), np.int64)
        self._tentative = np.full(k, -1, np.int32)
        self._closed = np.full(k, -1, np.int32)
        self._edges = split.all_edges
        self._root = self._depth = self._count = self._next_count = self._unexplored = 0
        self._expanded = self._pulling = self._listed = self._withheld = False

    def start(self, root: int, *, withhold_core: bool) -> None:
        self._level.fill(-1)
        self._parent.fill(-1)
        self._tentative.fill(-1)
        self._closed.fill(-1)
        self._level[root], self._parent[root] = 0, root
        self._frontier[0] = root
        self._root, self._depth, self._count, self._next_count = root, 0, 1, 0
        self._unexplored = self._split.graph.m
        self._expanded = self._pulling = False
        self._listed = True  # whether _frontier holds the frontier, or only _level knows it
        self._withheld = withhold_core
        self._edges = self._split.outside_core if withhold_core else self._split.all_edges

    def settle(self) -> None:
        if not self._expanded or self._core_is_open():
            return
        self._admit()
        self._depth += 1
        self._frontier, self._next = self._next, self._frontier
        self._count, self._next_count = self._next_count, 0
        self._listed = not self._pulling
        self._expanded = False

    def can_step(self) -> bool:
        return self._count > 0 and not self._expanded

    def step(self) -> Step:
        frontier, edges = self._count, self._choose_direction()
        self._admit()
        view, tally = self._edges, self._tally
        if self._pulling:
            pull_step(view.in_begin, view.in_end, view.in_sources, self._level, self._parent, self._depth, tally)
            edges, new = (int(total) for total in tally.sum(axis=0))
            self._next_count += new
        else:
            self._push(edges)
        self._expanded = True
        return Step("pull" if self._pulling else "push", self._depth, frontier, edges)

    def _push(self, edges: int) -> None:
        view = self._edges
        rows = (view.out_begin, view.out_end, view.out_targets, self._frontier, self._count)
        if edges < self._serial_edges:
            found, sizes = self._found[:1], self._found_sizes[:1]
            push_share_step(0, *rows, self._level, self._parent, self._depth, found, sizes)
        else:
            found, sizes = self._found, self._found_sizes
            push_step(*rows, self._level, self._parent, self._depth, found, sizes)
        self._next_count = gather_found_step(found, sizes, self._next, self._next_count)

    def core_values(self) -> np.ndarray:
        return merge_core(self._level[: self._split.core_size], self._tentative)

    def adopt(self, closed: np.ndarray) -> Adoption:
        level = self._level[: closed.size]
        # Levels up to depth are complete: a value that says otherwise has no path behind it.
        false = (closed >= 0) & np.where(level >= 0, closed < level, closed <= self._depth)
        before = self._tentative.copy()
        self._closed = np.where(false, -1, closed).astype(np.int32)
        news = np.where((level >= 0) | false, -1, closed).astype(np.int32)
        self._tentative = merge_core(self._tentative, news)
        return Adoption(int(np.count_nonzero(before != self._tentative)), int(np.count_nonzero(false)))

    def take_core_back(self) -> None:
        self._edges = self._split.all_edges
        self._withheld = self._expanded = False

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        level, parent = self._level.copy(), self._parent.copy()
        complete_parents(self._split.graph, level, parent, self._root)
        return level, parent

    def _core_is_open(self) -> bool:
        """Whether a core vertex of this level still waits for the partner to say what its core edges reach."""
        mine = self._level[: self._split.core_size]
        return self._withheld and bool(np.any((mine == self._depth) & (self._closed != self._depth)))

    def _admit(self) -> None:
        """Core values of the next level that the partner found are exact: they join the next frontier."""
        mine = self._level[: self._split.core_size]
        due = np.flatnonzero((self._tentative == self._depth + 1) & (mine == -1))
        mine[due] = self._depth + 1
        if not self._pulling:
            self._next[self._next_count : self._next_count + due.size] = due
        self._next_count += due.size

    def _choose_direction(self) -> int:
        """Decide push or pull for this level; list the frontier if a push needs it; return its edges."""
        graph = self._split.graph
        if self._pulling and self._count < graph.n // BETA:
            self._pulling = False
        if not self._listed:
            if self._pulling:
                return 0
            collect_level_step(self._level, self._depth, self._frontier)
            self._listed = True
        edges = int(count_edges_step(graph.out_offsets, self._frontier, self._count))
        if not self._pulling and edges > self._unexplored // ALPHA:
            self._pulling = True
        self._unexplored -= edges
        return edges
