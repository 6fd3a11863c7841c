"""The edge-parallel push without atomics: every owner looks at the frontier's edges into its own vertices.

The lists in shuffled ids are made once per view and number of owners and shared by all expanders of a split.
Invariant: between expansions, owner t's part of the frontier is ``frontier[starts[t] : starts[t] + counts[t]]``, and a
vertex is marked visited iff it has a level.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numba
import numpy as np

from cpu_engine.bfs.frontier import begin_run
from cpu_engine.bfs.kernels.groups import OutRows, Tree
from cpu_engine.bfs.strategies.kernels.push_edges import list_owned_step, push_edges_step
from cpu_engine.bfs.strategies.strategy import Expansion
from cpu_engine.bfs.traversal import CoreSplit, EdgeView
from cpu_engine.graph.kernels.shuffle import shuffle_targets_step


def owner_starts(n: int, owners: int) -> np.ndarray:
    """Where each owner's shuffled ids begin, and the last one's end: owner t has the vertices t, t + owners, ..."""
    sizes = (n - np.arange(owners) + owners - 1) // owners
    starts = np.zeros(owners + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


# The view is kept beside its lists, so that its id cannot become another's.
_Prepared = dict[tuple[int, int], tuple[EdgeView, OutRows]]
_prepared: WeakKeyDictionary[CoreSplit, _Prepared] = WeakKeyDictionary()


def shuffled_rows(split: CoreSplit, view: EdgeView, owners: int) -> OutRows:
    """The view's lists in shuffled ids, ascending; as large as the graph's, and kept as long as the split."""
    known = _prepared.setdefault(split, {})
    key = (id(view), owners)
    if key not in known:
        shuffled = np.empty_like(view.out_targets, subok=False)
        starts = owner_starts(view.out_begin.size, owners)
        shuffle_targets_step(view.out_begin, view.out_end, view.out_targets, starts, shuffled)
        known[key] = (view, view.out_rows._replace(targets=shuffled))
    return known[key][1]


class EdgePushExpander:
    """``push-edge``: see the module. ``threads`` may exceed the real ones: owners are then run in turn."""

    def __init__(self, split: CoreSplit, tree: Tree, *, threads: int | None = None) -> None:
        n, owners = tree.level.size, threads or numba.get_num_threads()
        self._split, self._tree, self._owners = split, tree, owners
        self._level, self._parent = tree
        self._starts = owner_starts(n, owners)
        self._visited = np.zeros(n, np.uint8)
        self._frontier, self._next = np.empty(n, np.int32), np.empty(n, np.int32)
        self._counts, self._sizes = np.zeros(owners, np.int64), np.zeros(owners, np.int64)
        self.thread_edges = np.zeros(owners, np.int64)  # per owner, of the last expansion
        if not split.core_size:  # with a core, which view will be needed first is not known yet
            shuffled_rows(split, split.all_edges, owners)

    @property
    def frontier(self) -> np.ndarray:
        parts = [self._frontier[at : at + size] for at, size in zip(self._starts, self._counts, strict=False)]
        return np.concatenate(parts)

    def start(self, root: int) -> None:
        begin_run(self._tree, root)
        self._visited.fill(0)
        self._counts.fill(0)
        self._sizes.fill(0)
        self._admit(np.array([root]), self._frontier, self._counts)

    def take_over(self, depth: int) -> None:
        """Go on from levels that another strategy found, with those at ``depth`` as the frontier."""
        list_owned_step(self._level, depth, self._starts, self._frontier, self._counts, self._visited)
        self._sizes.fill(0)

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        push_edges_step(
            self._starts, shuffled_rows(self._split, view, self._owners), self._frontier, self._counts, self._visited,
            self._tree, depth, self._next, self._sizes, self.thread_edges,
        )  # fmt: skip
        return Expansion("push", int(self._counts.sum()), int(self.thread_edges.sum()))

    def advance(self, extra: np.ndarray, depth: int) -> int:
        self._admit(extra, self._next, self._sizes)
        self._frontier, self._next = self._next, self._frontier
        self._counts, self._sizes = self._sizes, self._counts
        self._sizes.fill(0)
        return int(self._counts.sum())

    def _admit(self, vertices: np.ndarray, frontier: np.ndarray, counts: np.ndarray) -> None:
        """Enter vertices found elsewhere into their owners' parts."""
        owner = vertices % self._owners
        self._visited[self._starts[owner] + vertices // self._owners] = 1
        for t in np.unique(owner):
            mine = vertices[owner == t]
            at = self._starts[t] + counts[t]
            frontier[at : at + mine.size] = mine
            counts[t] += mine.size
