"""The plain pull: every unvisited vertex looks for an in-neighbour in the frontier, and stops at the first."""

from __future__ import annotations

import numpy as np

from cpu_engine.bfs.frontier import begin_run
from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.kernels.pull_plain import pull_plain_step
from cpu_engine.bfs.strategies.strategy import Expansion
from cpu_engine.bfs.traversal import CoreSplit, EdgeView


class PullExpander:
    """``pull``: the frontier is nothing but the vertices at ``depth``; only its size is kept."""

    def __init__(self, split: CoreSplit, tree: Tree) -> None:
        self._tree = tree
        self._level, self._parent = tree
        self._count = self._found = 0

    def start(self, root: int) -> None:
        begin_run(self._tree, root)
        self._count, self._found = 1, 0

    def take_over(self, depth: int) -> None:
        """Go on from levels that another strategy found, with those at ``depth`` as the frontier."""
        self._count, self._found = int(np.count_nonzero(self._level == depth)), 0

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        found, looked = pull_plain_step(view.in_rows, self._level, self._parent, depth)
        self._found += int(found)
        return Expansion("pull", self._count, int(looked))

    def advance(self, extra: np.ndarray, depth: int) -> int:
        self._count, self._found = self._found + extra.size, 0
        return self._count
