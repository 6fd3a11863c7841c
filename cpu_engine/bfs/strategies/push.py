"""Push strategies that list each vertex once, by claiming it.

They differ in which thread looks at which edge, and in how a find gets into the next frontier. ``thread_edges`` counts,
per thread, the edges looked at in the last expansion.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.frontier import QueueExpander
from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.kernels.buckets import bucket_frontier_step, push_buckets_step
from cpu_engine.bfs.strategies.kernels.push_claim import push_claim_step
from cpu_engine.bfs.strategies.kernels.push_private import push_private_step
from cpu_engine.bfs.strategies.strategy import Expansion
from cpu_engine.bfs.traversal import CoreSplit, EdgeView

PRIVATE_VERTICES = 1024  # 4 KiB per thread: stays in the nearest cache
MEDIUM_EDGES = 64  # from here on a list is worth cutting into chunks
HUGE_EDGES = 8192  # from here on all threads share it


class PushExpander(QueueExpander):
    """``push``: the threads share the frontier's vertices, finds go to one list."""

    def __init__(self, split: CoreSplit, tree: Tree) -> None:
        super().__init__(tree, room=tree.level.size)

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        return Expansion("push", self._queue.frontier.size, self._push(view, depth))

    def _push(self, view: EdgeView, depth: int) -> int:
        """Find the next level; return the edges looked at."""
        queue = self._queue
        return int(push_claim_step(view.out_rows, queue.frontier, self._level, self._parent, depth, *queue.finds))


class PrivatePushExpander(PushExpander):
    """``push-private``: as ``push``, but finds are collected per thread and published by the bufferful."""

    def __init__(
        self, split: CoreSplit, tree: Tree, *, threads: int | None = None, private_vertices: int = PRIVATE_VERTICES
    ) -> None:
        super().__init__(split, tree)
        threads = threads or numba.get_num_threads()
        self._private = np.empty((threads, private_vertices), np.int32)
        self.thread_edges = np.zeros(threads, np.int64)

    def _push(self, view: EdgeView, depth: int) -> int:
        queue = self._queue
        push_private_step(
            view.out_rows, queue.frontier, self._tree, depth, self._private, queue.finds, self.thread_edges
        )
        return int(self.thread_edges.sum())


class BucketedPushExpander(PrivatePushExpander):
    """``push-bucketed``: as ``push-private``, but long lists are cut: into chunks, or among all threads."""

    def __init__(
        self,
        split: CoreSplit,
        tree: Tree,
        *,
        medium_edges: int = MEDIUM_EDGES,
        huge_edges: int = HUGE_EDGES,
        **private: int,
    ) -> None:
        super().__init__(split, tree, **private)
        self._medium_edges, self._huge_edges = medium_edges, huge_edges
        self._ordered = np.empty(tree.level.size, np.int32)

    def _push(self, view: EdgeView, depth: int) -> int:
        queue, ordered = self._queue, self._ordered[: self._queue.frontier.size]
        medium, huge = bucket_frontier_step(
            view.out_begin, view.out_end, queue.frontier, self._medium_edges, self._huge_edges, ordered
        )
        push_buckets_step(
            view.out_rows, ordered, medium, huge, self._tree, depth, self._private, queue.finds, self.thread_edges
        )
        return int(self.thread_edges.sum())
