"""Level-synchronous BFS beside a core solver: a level closes only when the solver has answered for its core vertices.

Invariant: between steps every vertex within ``depth`` hops carries its exact level, and no other vertex does (while a
level is open, some of the next level's members may already be marked). Core values from the solver wait
in ``tentative`` until their level comes, unless the vertex is reached before. How a level is expanded is up to the
strategy (strategies/strategy.py); the default pushes thin frontiers and pulls thick ones.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.names import Factory, load_strategy
from cpu_engine.bfs.strategies.strategy import Expander, LeapingExpander
from cpu_engine.bfs.traversal import Adoption, CoreSplit, Step, complete_parents, merge_core

DEEP = 16  # beyond this depth a graph is of the kind with thousands of thin levels, which are run many at a time
_NO_VERTEX = np.empty(0, np.int64)


class LevelBfs:
    """See the module; satisfies ``Traversal``."""

    name = "level"

    def __init__(self, split: CoreSplit, strategy: str | Factory = "auto") -> None:
        n, k = split.graph.n, split.core_size
        self._split = split
        self.work = n + split.graph.m
        self._level = np.empty(n, np.int32)
        self._parent = np.empty(n, np.int32)
        factory = load_strategy(strategy) if isinstance(strategy, str) else strategy
        self._expander: Expander = factory(split, Tree(self._level, self._parent))
        self._leaper = self._expander if isinstance(self._expander, LeapingExpander) else None
        self._tentative = np.full(k, -1, np.int32)
        self._closed = np.full(k, -1, np.int32)
        self._edges = split.all_edges
        self._root = self._depth = self._count = 0
        self._expanded = self._withheld = self._merged = False

    def start(self, root: int, *, withhold_core: bool) -> None:
        self._expander.start(root)
        self._tentative.fill(-1)
        self._closed.fill(-1)
        self._root, self._depth, self._count = root, 0, 1
        self._expanded = self._merged = False
        self._withheld = withhold_core
        self._edges = self._split.outside_core if withhold_core else self._split.all_edges

    def settle(self) -> None:
        if not self._expanded or self._core_is_open():
            return
        extra = self._admit() if self._merged else _NO_VERTEX
        self._depth += 1
        self._count = self._expander.advance(extra, self._depth)
        self._expanded = False

    def can_step(self) -> bool:
        return self._count > 0 and not self._expanded

    def step(self) -> Step:
        if self._leaper is not None and self._depth >= DEEP and not self._withheld and not self._merged:
            leap = self._leaper.leap(self._edges, self._depth)
            if leap.levels:
                first, self._depth, self._count = self._depth, self._depth + leap.levels, leap.frontier
                return Step("push", first, leap.expanded, leap.edges)
        done = self._expander.expand(self._edges, self._depth)
        self._expanded = True
        return Step(done.direction, self._depth, done.frontier, done.edges)

    def core_values(self) -> np.ndarray:
        return merge_core(self._level[: self._split.core_size], self._tentative)

    def adopt(self, closed: np.ndarray) -> Adoption:
        level = self._level[: closed.size]
        # Levels up to depth are complete: a value that says otherwise has no path behind it.
        false = (closed >= 0) & np.where(level >= 0, closed < level, closed <= self._depth)
        before = self._tentative.copy()
        self._closed = np.where(false, -1, closed).astype(np.int32)
        waiting = np.where((level >= 0) | false, -1, closed).astype(np.int32)
        self._tentative = merge_core(self._tentative, waiting)
        self._merged = True
        return Adoption(int(np.count_nonzero(before != self._tentative)), int(np.count_nonzero(false)))

    def take_core_back(self) -> None:
        self._edges = self._split.all_edges
        self._withheld = self._expanded = False

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        if self._merged:
            complete_parents(self._split.graph, self._level, self._parent, self._root)
        return self._level, self._parent

    def _core_is_open(self) -> bool:
        """Whether the core solver has yet to answer what the core edges of a vertex of this level reach."""
        mine = self._level[: self._split.core_size]
        return self._withheld and bool(np.any((mine == self._depth) & (self._closed != self._depth)))

    def _admit(self) -> np.ndarray:
        """Core values of the next level that the core solver found are exact: they join the next frontier."""
        mine = self._level[: self._split.core_size]
        due = np.flatnonzero((self._tentative == self._depth + 1) & (mine == -1))
        mine[due] = self._depth + 1
        return due
