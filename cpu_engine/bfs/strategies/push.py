"""Push strategies that list each vertex once, by claiming it: they differ in who looks at which edge, and in how a find
gets into the next frontier. ``thread_edges`` tells, per thread, the edges looked at in the last expansion.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.frontier import LevelQueue, begin_run
from cpu_engine.bfs.strategies.kernels.buckets import bucket_frontier_step, push_buckets_step
from cpu_engine.bfs.strategies.kernels.push_claim import push_claim_step
from cpu_engine.bfs.strategies.kernels.push_private import push_private_step
from cpu_engine.bfs.strategies.strategy import Expansion
from cpu_engine.bfs.traversal import CoreSplit, EdgeView

PRIVATE_VERTICES = 1024  # 4 KiB per thread: stays in the nearest cache
MEDIUM_EDGES = 64  # from here on a list is worth cutting into chunks
HUGE_EDGES = 8192  # from here on it is worth everyone's attention


class PushExpander:
    """``push``: the frontier's vertices are dealt to the threads, finds go to one shared list."""

    def __init__(self, split: CoreSplit, level: np.ndarray, parent: np.ndarray) -> None:
        self._level, self._parent = level, parent
        self._queue = LevelQueue(level.size)

    @property
    def frontier(self) -> np.ndarray:
        return self._queue.frontier

    def start(self, root: int) -> None:
        begin_run(self._level, self._parent, root)
        self._queue.restart(np.array([root]))

    def take_over(self, depth: int) -> None:
        """Go on from levels that someone else found, with those at ``depth`` as the frontier."""
        self._queue.restart(np.flatnonzero(self._level == depth))

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        return Expansion("push", self._queue.frontier.size, self._push(view, depth))

    def advance(self, extra: np.ndarray, depth: int) -> int:
        return self._queue.advance(extra)

    def _push(self, view: EdgeView, depth: int) -> int:
        queue = self._queue
        return int(
            push_claim_step(
                view.out_begin, view.out_end, view.out_targets, queue.frontier,
                self._level, self._parent, depth, queue.vertices, queue.tail,
            )
        )  # fmt: skip


class PrivatePushExpander(PushExpander):
    """``push-private``: as ``push``, but finds are collected per thread and published by the bufferful."""

    def __init__(
        self,
        split: CoreSplit,
        level: np.ndarray,
        parent: np.ndarray,
        *,
        threads: int | None = None,
        private_vertices: int = PRIVATE_VERTICES,
    ) -> None:
        super().__init__(split, level, parent)
        threads = threads or numba.get_num_threads()
        self._private = np.empty((threads, private_vertices), np.int32)
        self.thread_edges = np.zeros(threads, np.int64)

    def _push(self, view: EdgeView, depth: int) -> int:
        queue = self._queue
        push_private_step(
            view.out_begin, view.out_end, view.out_targets, queue.frontier, self._level, self._parent, depth,
            self._private, queue.vertices, queue.tail, self.thread_edges,
        )  # fmt: skip
        return int(self.thread_edges.sum())


class BucketedPushExpander(PrivatePushExpander):
    """``push-bucketed``: as ``push-private``, but long lists are shared out, by chunk or by everyone."""

    def __init__(
        self,
        split: CoreSplit,
        level: np.ndarray,
        parent: np.ndarray,
        *,
        threads: int | None = None,
        private_vertices: int = PRIVATE_VERTICES,
        medium_edges: int = MEDIUM_EDGES,
        huge_edges: int = HUGE_EDGES,
    ) -> None:
        super().__init__(split, level, parent, threads=threads, private_vertices=private_vertices)
        self._medium_edges, self._huge_edges = medium_edges, huge_edges
        self._ordered = np.empty(level.size, np.int32)

    def _push(self, view: EdgeView, depth: int) -> int:
        queue, count = self._queue, self._queue.frontier.size
        medium, huge = bucket_frontier_step(
            view.out_begin, view.out_end, queue.frontier, self._medium_edges, self._huge_edges, self._ordered
        )
        push_buckets_step(
            view.out_begin, view.out_end, view.out_targets, self._ordered, count, medium, huge,
            self._level, self._parent, depth, self._private, queue.vertices, queue.tail, self.thread_edges,
        )  # fmt: skip
        return int(self.thread_edges.sum())
