"""Many small levels in one launch, for graphs of high diameter; wide levels in between are pushed by all threads.

While all edges are in view, a launch runs ahead of the engine: the levels it found are exact, and are reported one per
``expand``. With edges withheld it does not, because a partner may add to any level. A view never loses edges in a run.
Invariant: the queue holds the levels end to end; those ahead of the engine end at ``ends[at:levels]``. Vertices that
come from outside while ahead make everything behind them doubtful: it is withdrawn and run again.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.algorithms.expand_push import PRIVATE_VERTICES, PrivatePushExpander
from cpu_engine.algorithms.expander import Expansion
from cpu_engine.algorithms.traversal import CoreSplit, EdgeView
from cpu_engine.kernels.small_levels import run_small_levels_step

SMALL_VERTICES = 4096  # a level with more vertices, or more edges, is worth waking the other threads for
SMALL_EDGES = 16384
LEVELS_PER_LAUNCH = 4096  # so that Ctrl-C and a partner's answer are noticed within a fraction of a second


class SmallLevelsExpander(PrivatePushExpander):
    """``small-levels``: see the module."""

    def __init__(
        self,
        split: CoreSplit,
        level: np.ndarray,
        parent: np.ndarray,
        *,
        threads: int | None = None,
        private_vertices: int = PRIVATE_VERTICES,
        small_vertices: int = SMALL_VERTICES,
        small_edges: int = SMALL_EDGES,
        levels_per_launch: int = LEVELS_PER_LAUNCH,
    ) -> None:
        super().__init__(split, level, parent, threads=threads, private_vertices=private_vertices)
        self._all_edges = split.all_edges
        self._small_vertices, self._small_edges = small_vertices, small_edges
        self._ends = np.zeros(levels_per_launch, np.int64)
        self._looked = np.zeros(levels_per_launch, np.int64)
        self._at = self._levels = 0

    def start(self, root: int) -> None:
        super().start(root)
        self._at = self._levels = 0

    def take_over(self, depth: int) -> None:
        super().take_over(depth)
        self._at = self._levels = 0

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        if self._at == self._levels:
            levels = self._run(view, depth)
            if levels == 0:
                return super().expand(view, depth)
            if view is not self._all_edges:
                return Expansion("push", self._queue.frontier.size, int(self._looked[0]))
            self._at, self._levels = 0, levels
        return Expansion("push", self._queue.frontier.size, int(self._looked[self._at]))

    def advance(self, extra: np.ndarray, depth: int) -> int:
        if self._at == self._levels:
            return super().advance(extra, depth)
        queue, end = self._queue, int(self._ends[self._at])
        self._at += 1
        if extra.size:
            ahead = queue.vertices[end : int(queue.tail[0])]
            self._level[ahead] = self._parent[ahead] = -1
            self._levels, queue.tail[0] = self._at, end
            return super().advance(extra, depth)
        queue.begin, queue.end = queue.end, end
        return queue.end - queue.begin

    def _run(self, view: EdgeView, depth: int) -> int:
        queue, room = self._queue, self._ends.size if view is self._all_edges else 1
        levels = run_small_levels_step(
            view.out_begin, view.out_end, view.out_targets, queue.vertices, queue.begin, queue.end, queue.tail[0],
            self._level, self._parent, depth, self._small_vertices, self._small_edges, self._ends[:room], self._looked,
        )  # fmt: skip
        if levels:
            queue.tail[0] = self._ends[levels - 1]
        return int(levels)
