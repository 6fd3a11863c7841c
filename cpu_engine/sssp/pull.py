"""Bellman and Ford by pulling: every vertex looks along its in-edges, round after round, until nothing falls.

No worklist, no atomics, every round looks at every vertex: good for reading and comparing, and for few rounds.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from cpu_engine.sssp.delta import Effort
from cpu_engine.sssp.kernels.pull import pull_all_step
from cpu_engine.sssp.rows import WeightedRows


class PullRounds:
    """Distances that are pulled; see the module."""

    def __init__(self, rows: WeightedRows, dtype: type) -> None:
        self._rows = rows
        self.unreached: Any = dtype(np.inf) if dtype is np.float64 else np.iinfo(dtype).max
        self.dist: np.ndarray = np.empty(rows.graph.n, dtype)
        self._tally = np.zeros((numba.get_num_threads(), 8), np.int64)
        self.waiting = False

    def start(self, root: int) -> None:
        self.dist.fill(self.unreached)
        self.dist[root] = 0
        self.waiting = True

    @np.errstate(over="ignore")
    def step(self) -> Effort:
        """One round."""
        rows, ticket = self._rows.into, np.zeros(1, np.int64)
        low = self.dist.dtype.type(0)
        pull_all_step(self._rows.in_cuts, rows, self.dist, low, self.unreached, ticket, self._tally)
        fell, edges = (int(total) for total in self._tally[:, :2].sum(axis=0))
        self.waiting = fell > 0
        return Effort(edges, fell, 1, True)

    def refill(self) -> None:
        """Distances were lowered from outside."""
        self.waiting = True
