"""Where a frontier lives when every vertex is listed once: one queue, level after level in the order found.

Invariant: ``vertices[begin:end]`` is the frontier, ``vertices[end:tail]`` what has been found of the next level, and
what lies before ``begin`` the levels that are done. A vertex enters when it gets its level and never again, so that n
places are enough for a whole run.
"""

from __future__ import annotations

import numpy as np


class LevelQueue:
    """See the module. ``tail`` is an array of one, so that kernels can move it atomically."""

    def __init__(self, n: int) -> None:
        self.vertices = np.empty(n, np.int32)
        self.begin = self.end = 0
        self.tail = np.zeros(1, np.int64)

    @property
    def frontier(self) -> np.ndarray:
        return self.vertices[self.begin : self.end]

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


def begin_run(level: np.ndarray, parent: np.ndarray, root: int) -> None:
    """Nobody has a level but the root."""
    level.fill(-1)
    parent.fill(-1)
    level[root], parent[root] = 0, root
