"""The pull for machines of several memory nodes: a copy of the visited bitmap on each node, while it pays.

Early on nearly every vertex is unvisited and reads at random, so a copy saves more remote reads than it costs; later
few do, and it does not. The rule is measured: reads expected, as the last level went, against bytes copied, at this
machine's costs.
Invariant: all bitmaps that threads read during an expansion are equal, and hold the vertices within ``depth``.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.frontier import begin_run
from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.numa import MemoryCost, copy_pays, count_nodes, measure_memory
from cpu_engine.bfs.strategies.kernels.pull_numa import copy_visited_step, pack_visited_step, pull_local_step
from cpu_engine.bfs.strategies.strategy import Expansion
from cpu_engine.bfs.traversal import CoreSplit, EdgeView


class NumaPullExpander:
    """``pull-numa``: see the module. ``nodes`` may be simulated; ``cost`` may be given instead of measured.

    With one node nothing is copied. ``copies_made`` counts the levels for which it was.
    """

    def __init__(
        self,
        split: CoreSplit,
        tree: Tree,
        *,
        threads: int | None = None,
        nodes: int | None = None,
        cost: MemoryCost | None = None,
    ) -> None:
        threads = threads or numba.get_num_threads()
        nodes = min(nodes or count_nodes(), threads)
        self._tree = tree
        self._level, self._parent = tree
        self._m = split.graph.m
        self.visited = np.zeros((tree.level.size + 63) // 64, np.uint64)
        self.copies = np.zeros((nodes if nodes > 1 else 0, self.visited.size), np.uint64)
        self._found, self._looked = np.zeros(threads, np.int64), np.zeros(threads, np.int64)
        self._cost = cost or (measure_memory(self.visited) if nodes > 1 else None)
        self._count = self._fresh = self._unvisited = 0
        self._looks_each = 0.0
        self.copies_made = 0

    def start(self, root: int) -> None:
        begin_run(self._tree, root)
        self.take_over(0)
        self.copies_made = 0

    def take_over(self, depth: int) -> None:
        """Go on from levels that another strategy found, with those at ``depth`` as the frontier."""
        self._count, self._fresh = int(np.count_nonzero(self._level == depth)), 0
        self._unvisited = int(np.count_nonzero(self._level == -1))
        self._looks_each = self._m / self._level.size  # until a level has shown how many it really takes

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        pack_visited_step(self._level, depth, self.visited)
        pull_local_step(view.in_rows, self._bitmaps(), self._tree, depth, self._found, self._looked)
        looked = int(self._looked.sum())
        self._looks_each = looked / max(1, self._unvisited)
        found = int(self._found.sum())
        self._fresh += found
        self._unvisited -= found
        return Expansion("pull", self._count, looked)

    def advance(self, extra: np.ndarray, depth: int) -> int:
        self._count, self._fresh = self._fresh + extra.size, 0
        self._unvisited -= extra.size
        return self._count

    def _bitmaps(self) -> np.ndarray:
        """One bitmap per node, or the one for all."""
        nodes = self.copies.shape[0]
        looks = self._looks_each * self._unvisited
        if self._cost is None or not nodes or not copy_pays(looks, self.visited.nbytes, nodes, self._cost):
            return self.visited[np.newaxis]
        copy_visited_step(self.visited, self.copies, self._found.size)
        self.copies_made += 1
        return self.copies
