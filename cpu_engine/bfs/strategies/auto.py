"""The direction-optimised strategy: push thin frontiers, pull thick ones, and never look at a vertex needlessly.

A frontier is a list while levels are pushed. The first pull looks at every vertex and lists the unvisited ones per
thread; later pulls look at these only, and list what they find, so that going back to push costs nothing. Thin levels
run on one thread: waking the others costs more.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.kernels.pull import (
    clear_run_step,
    collect_level_step,
    mark_found_step,
    pull_all_share_step,
    pull_all_step,
    pull_rest_share_step,
    pull_rest_step,
    settle_fresh_step,
)
from cpu_engine.bfs.strategies.kernels.push import (
    gather_found_step,
    measure_frontier_step,
    push_share_step,
    push_step,
)
from cpu_engine.bfs.strategies.small_levels import SmallLevelsExpander
from cpu_engine.bfs.strategies.strategy import NO_LEAP, Expansion, Leap
from cpu_engine.bfs.traversal import CoreSplit, EdgeView

PULL_SHARE = 1 / 8  # pull once the frontier's edges exceed this share of the unexplored ones
FIRST_PULL_SHARE = 1 / 8  # ... and this share of the vertices
SERIAL_EDGES = 4096  # below this, one thread is faster than waking the others
SERIAL_VERTICES = 4096
SMALL_GRAPH = 16  # a graph with fewer edges than this many thin levels is one thread's from the start
SURE_FRONTIER = 64  # a frontier of more than this fraction of the vertices is judged by its size alone
RELIST = 16  # after the first pull, list the frontier if it is smaller than the unvisited vertices by this factor


class AutoExpander:
    """See the module; satisfies ``Expander``."""

    def __init__(
        self,
        split: CoreSplit,
        tree: Tree,
        *,
        pull_share: float = PULL_SHARE,
        serial_edges: int = SERIAL_EDGES,
        serial_vertices: int = SERIAL_VERTICES,
    ) -> None:
        n, threads = tree.level.size, numba.get_num_threads()
        self._alone = split.graph.m < serial_edges * SMALL_GRAPH or threads == 1
        self._split, self._tree = split, tree
        self._level, self._parent = tree
        self._pull_share, self._serial_edges, self._serial_vertices = pull_share, serial_edges, serial_vertices
        self._visited = np.zeros(n, np.uint8)
        self._fresh = np.zeros(n, np.uint8)
        # Room for a vertex to be listed once per thread (see push_step). Pages that are never touched cost nothing.
        self._frontier = np.empty((threads + 1) * n, np.int32)
        self._next = np.empty((threads + 1) * n, np.int32)
        self._starts = np.empty((threads + 1) * n + 1, np.int64)
        self._found = np.empty((threads, n), np.int32)
        self._sizes = np.zeros(threads, np.int64)
        self._rest = np.empty((threads, n), np.int32)
        self._tally = np.zeros((threads, 3), np.int64)  # per thread: left in rest, found, edges looked at
        self._count = self._next_count = self._unexplored = 0
        self._listed = self._next_listed = self._have_rest = False
        self._stale = False  # whether visited lags behind level
        self._direction = ""  # of this level, once it was expanded
        self._small: SmallLevelsExpander | None = None  # for deep graphs

    def start(self, root: int | None) -> None:
        if self._alone:
            for array, value in ((self._level, -1), (self._parent, -1), (self._visited, 0), (self._fresh, 0)):
                array.fill(value)
        else:
            clear_run_step(self._level, self._parent, self._visited, self._fresh)
        if root is not None:
            self._level[root], self._parent[root], self._visited[root] = 0, root, 1
            self._frontier[0] = root
        self._count, self._next_count, self._unexplored = int(root is not None), 0, self._split.graph.m
        self._listed, self._next_listed, self._have_rest, self._direction = True, True, False, ""
        self._sizes.fill(0)
        self._stale = False

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        # A second expansion keeps the direction: after a push, visited says more than pull may know.
        if self._stale:  # leaps go by level alone
            np.not_equal(self._level, -1, out=self._visited.view(np.bool_))
            self._stale = False
        edges = self._measure(view) if self._listed else 0
        self._direction = self._direction or self._choose(edges)
        if self._direction == "push":
            self._push(view, depth, edges)
        else:
            edges = self._pull(view, depth)
        self._unexplored -= edges
        return Expansion(self._direction, self._count, edges)

    def advance(self, extra: np.ndarray, depth: int) -> int:
        count = self._next_count + int(self._sizes.sum())
        self._listed = self._next_listed and not self._surely_thick(count + extra.size)
        if self._listed:
            self._gather()
        if self._direction == "pull":
            self._settle()
        self._sizes.fill(0)
        if extra.size:
            self._visited[extra] = 1
            self._next[self._next_count : self._next_count + extra.size] = extra
        self._frontier, self._next = self._next, self._frontier
        self._count, self._next_count = count + extra.size, 0
        self._next_listed, self._direction = True, ""
        if not self._listed and self._have_rest and self._count < self._unvisited() // RELIST:
            self._count = collect_level_step(self._level, depth, self._frontier)
            self._listed = True
        return self._count

    @property
    def visited(self) -> np.ndarray:
        """1 for each vertex with a level. A caller that gives one marks it here, and calls ``advance`` or ``admit``."""
        return self._visited

    def finds(self) -> np.ndarray | None:
        """What this level's expansion found, if it was listed."""
        if not self._next_listed:
            return None
        self._gather()
        return self._next[: self._next_count]

    def admit(self, unlisted: int) -> None:
        """Count vertices of the next level that the caller has marked and not listed."""
        self._next_count += int(self._sizes.sum()) + unlisted
        self._sizes.fill(0)
        self._next_listed = False

    def _surely_thick(self, count: int) -> bool:
        """Whether the next level is pulled whatever its frontier's edges are: then it needs no list."""
        if self._have_rest:
            return count > self._unvisited()
        graph = self._split.graph
        typical = count * graph.m // max(1, graph.n)
        return count * SURE_FRONTIER > graph.n and typical > self._worth_pulling()

    def _worth_pulling(self) -> float:
        # The first pull looks at every vertex, so it must save that many edges at least.
        return max(self._pull_share * self._unexplored, FIRST_PULL_SHARE * self._level.size)

    def _gather(self) -> None:
        """Put the threads' finds of this level into one list."""
        self._next_count = gather_found_step(self._found, self._sizes, self._next, self._next_count)
        self._sizes.fill(0)

    def _settle(self) -> None:
        """What a pull found becomes visited."""
        if self._listed and self._next_count < self._serial_vertices:
            mark_found_step(self._next, self._next_count, self._visited, self._fresh)
        elif self._alone:
            np.bitwise_or(self._visited, self._fresh, out=self._visited)
            self._fresh.fill(0)
        else:
            settle_fresh_step(self._visited, self._fresh)

    def leap(self, view: EdgeView, depth: int) -> Leap:
        if not self._listed or self._direction or self._have_rest:
            return NO_LEAP
        if self._small is None:
            self._small = SmallLevelsExpander(self._split, self._tree)
        leap, frontier = self._small.leap_from(self._frontier[: self._count], view, depth)
        self._stale = True
        self._frontier[: frontier.size] = frontier
        self._count = frontier.size
        self._unexplored -= leap.edges
        return leap

    def _measure(self, view: EdgeView) -> int:
        return int(measure_frontier_step(view.out_begin, view.out_end, self._frontier, self._count, self._starts))

    def _unvisited(self) -> int:
        return int(self._tally[:, 0].sum())

    def _choose(self, edges: int) -> str:
        if not self._listed:
            return "pull"
        if self._have_rest:
            return "push" if edges < self._unvisited() else "pull"
        return "pull" if edges > self._worth_pulling() else "push"

    def _push(self, view: EdgeView, depth: int, edges: int) -> None:
        self._gather()
        run = (view.out_rows, self._frontier, self._count, self._starts, self._visited, self._tree, depth)
        if edges < self._serial_edges or self._alone:
            room = self._next[self._next_count :]
            self._next_count += push_share_step(0, 1, *run, room)
        else:
            push_step(*run, self._found, self._sizes)

    def _pull(self, view: EdgeView, depth: int) -> int:
        self._gather()
        run = (view.in_rows, self._visited, self._fresh, self._tree, depth)
        if not self._have_rest:
            if self._alone:
                self._tally.fill(0)
                pull_all_share_step(0, 1, *run, self._rest[0], self._tally[0])
            else:
                pull_all_step(*run, self._rest, self._tally)
            self._have_rest = True
            self._next_listed = False
            self._next_count = int(self._tally[:, 1].sum())
        elif self._unvisited() < self._serial_vertices or self._alone:
            for rest, found, tally in zip(self._rest, self._found, self._tally, strict=True):
                pull_rest_share_step(*run, rest, found, tally)
            self._sizes[:] = self._tally[:, 1]
        else:
            pull_rest_step(*run, self._rest, self._found, self._tally)
            self._sizes[:] = self._tally[:, 1]
        return int(self._tally[:, 2].sum())
