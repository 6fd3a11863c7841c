"""How evenly a strategy shares the edges among its threads, counted rather than timed, for any number of threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.push import PrivatePushExpander
from cpu_engine.bfs.strategies.push_edge import EdgePushExpander
from cpu_engine.bfs.traversal import CoreSplit

_NO_VERTEX = np.empty(0, np.int64)


@dataclass(frozen=True)
class Balance:
    """Edges looked at, int64[levels, threads], in one traversal."""

    edges: np.ndarray

    @property
    def busiest_over_mean(self) -> float:
        """The busiest thread's edges over the mean, in the whole run; 1 is perfect."""
        return _ratio(self.edges.sum(axis=0).max(), self.edges.sum(), self.edges.shape[1])

    @property
    def critical_over_mean(self) -> float:
        """The same with a barrier after every level: the sum of each level's busiest over the sum of the means."""
        return _ratio(self.edges.max(axis=1).sum(), self.edges.sum(), self.edges.shape[1])


def measure_balance(
    split: CoreSplit, root: int, threads: int, strategy: type[EdgePushExpander] | type[PrivatePushExpander]
) -> Balance:
    """Traverse from ``root`` with as many shares as ``threads``, real or not, and count each one's edges."""
    n = split.graph.n
    expander = strategy(split, Tree(np.empty(n, np.int32), np.empty(n, np.int32)), threads=threads)
    expander.start(root)
    rows, depth, count = [], 0, 1
    while count:
        expander.expand(split.all_edges, depth)
        rows.append(expander.thread_edges.copy())
        depth += 1
        count = expander.advance(_NO_VERTEX, depth)
    return Balance(np.array(rows))


def _ratio(busiest: int, total: int, threads: int) -> float:
    return float(busiest * threads / total) if total else 1.0
