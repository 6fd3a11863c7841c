"""Asynchronous vertex-centric BFS: active vertices push their distance, improved ones become active again.

Data structure: one worklist dealt to threads in strides, plus a ring per thread for what it activates itself. A step is
a quantum of edges, after which leftovers are dealt anew; values from outside can be merged between any two steps.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.algorithms.traversal import Adoption, CoreSplit, Step, complete_parents
from cpu_engine.kernels.relax import adopt_smaller_step, collect_leftover_step, relax_quantum_step

QUANTUM_EDGES = 1 << 17  # per thread and step: about 0.3 ms, the longest that an answer from outside waits


class AsyncBfs:
    """See the module; satisfies ``Traversal``."""

    name = "async"

    def __init__(self, split: CoreSplit, quantum_edges: int = QUANTUM_EDGES) -> None:
        n, threads = split.graph.n, numba.get_num_threads()
        self._split = split
        self._quantum = quantum_edges
        self._level = np.empty(n, np.int32)
        self._distance = self._level.view(np.uint32)
        self._active = np.zeros(n, np.uint8)
        self._work = np.empty(n, np.int32)
        self._spare = np.empty(n, np.int32)
        self._rings = np.empty((threads, n), np.int32)
        self._left = np.zeros((threads, 3), np.int64)
        self._tally = np.zeros((threads, 2), np.int64)
        self._count = 0
        self._root = 0
        self._edges = split.all_edges

    def start(self, root: int, *, withhold_core: bool) -> None:
        self._level.fill(-1)
        self._active.fill(0)
        self._root = root
        self._edges = self._split.outside_core if withhold_core else self._split.all_edges
        self._count = 0
        self._activate(np.array([root], np.int32), np.array([0], np.uint32))

    def resume(self, level: np.ndarray, root: int) -> None:
        """Begin from levels that are true path lengths (not necessarily shortest), every reached vertex active."""
        self.start(root, withhold_core=False)
        reached = np.flatnonzero(level > 0).astype(np.int32)
        self._activate(reached, level[reached].view(np.uint32))

    def settle(self) -> None:
        """Nothing to close: there are no levels."""

    def can_step(self) -> bool:
        return self._count > 0

    def step(self) -> Step:
        view = self._edges
        relax_quantum_step(
            view.out_begin, view.out_end, view.out_targets, self._distance, self._active,
            self._work, self._count, self._rings, self._left, self._quantum, self._tally,
        )  # fmt: skip
        self._count = collect_leftover_step(self._work, self._count, self._rings, self._left, self._spare)
        self._work, self._spare = self._spare, self._work
        edges, taken = self._tally.sum(axis=0)
        return Step("async", -1, int(taken), int(edges))

    def core_values(self) -> np.ndarray:
        return self._level[: self._split.core_size].copy()

    def adopt(self, closed: np.ndarray) -> Adoption:
        theirs = closed.view(np.uint32)
        better = np.flatnonzero(theirs < self._distance[: theirs.size]).astype(np.int32)
        self._activate(better, theirs[better])
        return Adoption(adopted=better.size, rejected=0)

    def take_core_back(self) -> None:
        self._edges = self._split.all_edges
        known = np.flatnonzero(self._level[: self._split.core_size] >= 0).astype(np.int32)
        waiting = known[self._active[known] == 0]
        self._active[waiting] = 1
        self._work[self._count : self._count + waiting.size] = waiting
        self._count += waiting.size

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        level = self._level.copy()
        parent = np.full(level.size, -1, np.int32)
        complete_parents(self._split.graph, level, parent, self._root)
        return level, parent

    def _activate(self, vertices: np.ndarray, values: np.ndarray) -> None:
        self._count = adopt_smaller_step(vertices, values, self._distance, self._active, self._work, self._count)
