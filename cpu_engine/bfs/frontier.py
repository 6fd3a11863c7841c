"""Where a frontier lives when vertices are listed as they are found: one queue, level after level.

Invariant: ``vertices[begin:end]`` is the frontier, ``vertices[end:tail]`` what has been found of the next level, and
what lies before ``begin`` the levels that are done. A vertex enters when it gets its level and never again, so that n
places are enough for a whole run.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.bfs.kernels.groups import Finds, Queue, Tree


class LevelQueue:
    """See the module. ``tail`` is an array of one, so that kernels can move it atomically."""

    def __init__(self, n: int) -> None:
        self.vertices = np.empty(n, np.int32)
        self.begin = self.end = 0
        self.tail = np.zeros(1, np.int64)
        self.finds = Finds(self.vertices, self.tail)

    @property
    def frontier(self) -> np.ndarray:
        return self.vertices[self.begin : self.end]

    def bounds(self) -> Queue:
        """The queue as kernels take it that move through several levels."""
        return Queue(self.vertices, self.begin, self.end, int(self.tail[0]))

    def restart(self, frontier: np.ndarray) -> None:
        """Forget everything but these."""
        self.vertices[: frontier.size] = frontier
        self.begin, self.end, self.tail[0] = 0, frontier.size, frontier.size

    def advance(self, extra: np.ndarray) -> int:
        """What was found, and ``extra``, become the frontier; return its size."""
        found = int(self.tail[0])
        self.begin, self.end = self.end, found + extra.size
        self.vertices[found : self.end] = extra
        self.tail[0] = self.end
        return self.end - self.begin


def begin_run(tree: Tree, root: int) -> None:
    """Give the root level 0, and no other vertex a level."""
    level, parent = tree
    level.fill(-1)
    parent.fill(-1)
    level[root], parent[root] = 0, root


class QueueExpander:
    """What the strategies with a queue have in common: all of ``Expander`` but ``expand``."""

    def __init__(self, tree: Tree, room: int) -> None:
        self._tree = tree
        self._level, self._parent = tree
        self._queue = LevelQueue(room)

    @property
    def frontier(self) -> np.ndarray:
        return self._queue.frontier

    def start(self, root: int) -> None:
        begin_run(self._tree, root)
        self._queue.restart(np.array([root]))

    def take_over(self, depth: int) -> None:
        """Go on from levels that another strategy found, with those at ``depth`` as the frontier."""
        self._queue.restart(np.flatnonzero(self._level == depth))

    def advance(self, extra: np.ndarray, depth: int) -> int:
        return self._queue.advance(extra)
