"""Direction optimisation over any two strategies: push while the frontier is thin, pull while it is thick.

As shipped it joins the push without atomics and the pull with node-local bitmaps.
Invariant: the side at work knows the frontier; the other learns it from the levels when it takes over. A second
expansion of a level stays with the side that began it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.numa import NumaPullExpander
from cpu_engine.bfs.strategies.push_edge import EdgePushExpander
from cpu_engine.bfs.strategies.strategy import Expander, Expansion
from cpu_engine.bfs.traversal import CoreSplit, EdgeView

ALPHA = 15  # pull when the frontier's edges exceed 1/ALPHA of the unexplored ones; Beamer 2012
BETA = 18  # push again when the frontier is below 1/BETA of the vertices; Beamer 2012


class Side(Expander, Protocol):
    """A strategy that can go on where another stopped."""

    def take_over(self, depth: int) -> None:
        """Learn everything from the levels; those at ``depth`` are the frontier."""


class PushSide(Side, Protocol):
    """A push whose frontier can be read."""

    @property
    def frontier(self) -> np.ndarray:
        """The vertices about to be expanded."""


class SwitchingExpander:
    """``switching``: see the module."""

    def __init__(
        self,
        split: CoreSplit,
        tree: Tree,
        *,
        push: Callable[[CoreSplit, Tree], PushSide] = EdgePushExpander,
        pull: Callable[[CoreSplit, Tree], Side] = NumaPullExpander,
        alpha: float = ALPHA,
        beta: float = BETA,
    ) -> None:
        self._push, self._pull = push(split, tree), pull(split, tree)
        self._n, self._m, self._alpha, self._beta = tree.level.size, split.graph.m, alpha, beta
        self._unexplored = self._count = 0
        self._side: Side = self._push
        self._chosen = False  # for this level

    def start(self, root: int) -> None:
        self._push.start(root)
        self._side, self._chosen = self._push, False
        self._unexplored, self._count = self._m, 1

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        if not self._chosen:
            side = self._choose(view)
            if side is not self._side:
                side.take_over(depth)
            self._side, self._chosen = side, True
        return self._side.expand(view, depth)

    def advance(self, extra: np.ndarray, depth: int) -> int:
        self._chosen = False
        self._count = self._side.advance(extra, depth)
        return self._count

    def _choose(self, view: EdgeView) -> Side:
        if self._side is self._pull:
            return self._push if self._count * self._beta < self._n else self._pull
        frontier = self._push.frontier
        edges = int((view.out_end[frontier] - view.out_begin[frontier]).sum())
        if edges * self._alpha > self._unexplored:
            return self._pull
        self._unexplored -= edges
        return self._push
