"""Asynchronous vertex-centric BFS: active vertices push their distance, improved ones become active again.

Two ways to hold the active set. *Listed*: a worklist, which the threads share in strides, plus a ring per thread for
what it activates itself; a step is a quantum of edges, after which leftovers are shared out again. That is for active
vertices of many distances; where there are two, the nearer go first, and where there is one on a deep graph, they run
on level by level: nothing is then relaxed twice. *Implicit from a bound*: every reached vertex at ``bound`` or further
counts as active; a step relaxes all of distance ``bound`` from the other side (pull_bound) and raises the bound. A
thick worklist turns implicit, a thin remainder is listed again. Either way a smaller value from outside can be merged
between any two steps, and there is no barrier that it would have to wait for.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.kernels.pull_bound import (
    bring_forward_step,
    collect_from_step,
    list_found_step,
    pull_bound_all_step,
    pull_bound_rest_step,
    survey_work_step,
)
from cpu_engine.bfs.kernels.relax import (
    adopt_smaller_step,
    collect_leftover_step,
    relax_alone_step,
    relax_even_step,
    relax_quantum_step,
)
from cpu_engine.bfs.strategies.kernels.pull import clear_run_step
from cpu_engine.bfs.strategies.kernels.push import measure_frontier_step
from cpu_engine.bfs.strategies.small_levels import TINY_EDGES, TINY_VERTICES, SmallLevelsExpander
from cpu_engine.bfs.traversal import Adoption, CoreSplit, Step, complete_parents

QUANTUM_EDGES = 1 << 17  # per thread and step: about 0.3 ms, the longest that an answer from outside waits
THIN_QUANTUM_EDGES = 1 << 14
THIN_EDGES = 4096  # a worklist with fewer edges runs on one thread: waking the others costs more
PULL_SHARE = 1 / 8  # if the nearest in a worklist have more than this share of all edges, they are pulled from
SPREAD = 1  # a worklist whose distances differ by no more than this is relaxed nearest first
DEEP = 16  # from this distance on the graph is of the kind with thousands of thin levels
LEVELS_PER_LEAP = 512  # of these, run at a time


class AsyncBfs:
    """See the module; satisfies ``Traversal``."""

    name = "async"

    def __init__(
        self,
        split: CoreSplit,
        quantum_edges: int = QUANTUM_EDGES,
        thin_edges: int = THIN_EDGES,
        pull_share: float = PULL_SHARE,
        deep: int = DEEP,
        spread: int = SPREAD,
    ) -> None:
        n, threads = split.graph.n, numba.get_num_threads()
        self._split = split
        self.work = n + split.graph.m
        self._quantum, self._thin_edges, self._pull_share = quantum_edges, thin_edges, pull_share
        self._deep, self._spread = deep, spread
        self._level = np.empty(n, np.int32)
        self._distance = self._level.view(np.uint32)
        self._parent = np.empty(n, np.int32)
        self._distances = Tree(self._distance, self._parent)
        self._active = np.zeros(n, np.uint8)
        self._work = np.empty(n, np.int32)
        self._spare = np.empty(n, np.int32)
        self._rings = np.empty((threads, n), np.int32)
        self._left = np.zeros((threads, 3), np.int64)
        self._tally = np.zeros((threads, 3), np.int64)  # of pulls: left in _rest, found, edges looked at
        self._effort = np.zeros((threads, 2), np.int64)  # of a quantum: edges looked at, vertices taken
        self._rest = np.empty((threads, n), np.int32)
        self._starts = np.empty(n + 1, np.int64)
        self._sizes = np.zeros(threads, np.int64)
        self._root: int | None = None
        self._count = 0
        self._bound: int | None = None  # of the implicit active set; None while it is listed
        self._rest_bound = 0  # _rest lists every vertex further than this; 0: nothing is listed yet
        self._furthest = 0  # no vertex that was active when the set turned implicit, or came from outside, is further
        self._found = 0
        self._doubtful = False  # whether a parent may have been overtaken by a better value, or came without
        self._edges = split.all_edges
        self._in_step: SmallLevelsExpander | None = None  # for deep graphs

    def start(self, root: int | None, *, withhold_core: bool) -> None:
        """Begin at ``root``; with None no vertex has a level yet, and ``notice`` brings the first."""
        clear_run_step(self._level, self._parent, self._active, self._active)
        self._root = root
        self._edges = self._split.outside_core if withhold_core else self._split.all_edges
        self._count, self._bound, self._rest_bound, self._doubtful = 0, None, 0, False
        if root is not None:
            self._activate(np.array([root], np.int32), np.array([0], np.uint32))

    def resume(self, level: np.ndarray, root: int) -> None:
        """Begin from levels that are true path lengths (not necessarily shortest), every reached vertex active."""
        self.start(root, withhold_core=False)
        reached = np.flatnonzero(level > 0).astype(np.int32)
        self._doubtful = True
        self._activate(reached, level[reached].view(np.uint32))

    def settle(self) -> None:
        """Nothing to close: there are no levels."""

    def can_step(self) -> bool:
        return self._count > 0 or self._bound is not None

    def step(self) -> Step:
        if self._bound is not None:
            return self._pull(self._bound, self._found)
        view, thick = self._edges, self._pull_share * self._split.graph.m
        edges, near_edges, nearest, furthest = (
            int(figure)
            for figure in survey_work_step(view.out_begin, view.out_end, self._distance, self._work, self._count)
        )
        if near_edges > thick:
            listed, self._count = self._count, 0
            self._active[self._work[:listed]] = 0
            self._furthest = furthest
            return self._pull(nearest, listed)
        deep, in_order = nearest >= self._deep, furthest - nearest <= self._spread
        # One thread alone leaps to the end, whatever comes: for that the graph must be known to be deep.
        threads = self._rings.shape[0]
        few = self._count <= TINY_VERTICES * threads  # more would be a team's, which is for deep graphs only
        tiny = threads > 1 and few and edges <= min(TINY_EDGES, self._thin_edges)
        if in_order and nearest == furthest and (deep or tiny):
            return self._leap(nearest)
        if edges > thick or (in_order and (deep or edges >= self._thin_edges)):
            return self._relax_nearest(nearest, furthest)
        if edges < self._thin_edges:
            return self._relax_alone(min(self._quantum, THIN_QUANTUM_EDGES))
        return self._relax_alone(self._quantum) if threads == 1 else self._relax()

    def core_values(self) -> np.ndarray:
        return self._level[: self._split.core_size].copy()

    def adopt(self, closed: np.ndarray) -> Adoption:
        theirs = closed.view(np.uint32)
        better = np.flatnonzero(theirs < self._distance[: theirs.size]).astype(np.int32)
        self._distance[better] = theirs[better]
        self.notice(better)
        return Adoption(adopted=better.size, rejected=0)

    @property
    def distance(self) -> np.ndarray:
        """The levels as uint32, -1 being the largest. A caller that lowers one calls ``notice``."""
        return self._distance

    def notice(self, vertices: np.ndarray) -> None:
        """The distances of these were lowered from outside."""
        if vertices.size == 0:
            return
        self._doubtful = True
        if self._bound is not None:
            values = self._distance[vertices]
            if values.min() >= self._bound:  # they are in the implicit set already
                self._furthest = max(self._furthest, int(values.max()))
                return
            self._list_from(self._bound)
        sizes = np.array([vertices.size])
        self._count = list_found_step(vertices.reshape(1, -1), sizes, self._active, self._work, self._count)

    def take_core_back(self) -> None:
        if self._bound is not None:
            self._list_from(self._bound)
        self._edges = self._split.all_edges
        core = self._split.core_vertices
        self.notice(core[self._level[core] >= 0])
        self._rest_bound = 0  # vertices that were passed over may gain again

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        assert self._root is not None
        if self._doubtful:
            self._parent[self._root] = -1
            complete_parents(self._split.graph, self._level, self._parent, self._root)
        self._parent[self._root] = self._root
        return self._level, self._parent

    def unfinished(self) -> tuple[np.ndarray, np.ndarray]:
        """Levels, and parents as far as the run kept them: some may be missing or overtaken."""
        return self._level, self._parent

    # --------------------------------------------------------------------------------- the listed set

    def _activate(self, vertices: np.ndarray, values: np.ndarray) -> None:
        self._count = adopt_smaller_step(vertices, values, self._distance, self._active, self._work, self._count)

    def _relax(self) -> Step:
        relax_quantum_step(
            self._edges.out_rows, self._distances, self._active, self._work, self._count, self._rings, self._left,
            self._quantum, self._effort,
        )  # fmt: skip
        self._doubtful = True
        self._collect_leftover(self._rings, self._left)
        edges, taken = self._effort.sum(axis=0)
        return Step("async", -1, int(taken), int(edges))

    def _relax_alone(self, quantum: int) -> Step:
        *left, edges, taken = relax_alone_step(
            self._edges.out_rows, self._distances, self._active, self._work, self._count, self._rings[0], quantum
        )
        self._collect_leftover(self._rings[:1], np.array([left]))
        return Step("async", -1, int(taken), int(edges))

    def _relax_nearest(self, nearest: int, furthest: int) -> Step:
        """Relax those at ``nearest`` only: what is further would mostly be relaxed again."""
        view, graph = self._edges, self._split.graph
        near = bring_forward_step(self._distance, self._work, self._count, nearest)
        starts = self._starts[: near + 1]
        edges = measure_frontier_step(view.out_begin, view.out_end, self._work, near, starts)
        reach = np.uint32(nearest + 1)
        relax_even_step(view.out_rows, self._distances, reach, self._work, starts, self._rings, self._sizes)
        waiting = self._count - near + int(self._sizes.sum())
        if furthest <= nearest + 1 and waiting * graph.m > self._pull_share * graph.m * graph.n:
            self._active.fill(0)  # so many that their edges need no counting, and all are equally far
            self._count, self._bound, self._furthest, self._found = 0, nearest + 1, nearest + 1, waiting
        else:
            self._active[self._work[:near]] = 0
            self._work[: self._count - near] = self._work[near : self._count]
            self._count = list_found_step(self._rings, self._sizes, self._active, self._work, self._count - near)
        return Step("async", -1, near, int(edges))

    def _leap(self, distance: int) -> Step:
        """Everything that waits is equally far: run on in step, which relaxes nothing twice and needs no atomics."""
        if self._in_step is None:
            tree = Tree(self._level, self._parent)
            self._in_step = SmallLevelsExpander(self._split, tree, levels_per_launch=LEVELS_PER_LEAP)
        waiting = self._work[: self._count]
        self._active[waiting] = 0
        leap, frontier = self._in_step.leap_from(waiting, self._edges, distance)
        sizes = np.array([frontier.size])
        self._count = list_found_step(frontier.reshape(1, -1), sizes, self._active, self._work, 0)
        return Step("async", distance, leap.expanded, leap.edges)

    def _collect_leftover(self, rings: np.ndarray, left: np.ndarray) -> None:
        self._count = collect_leftover_step(self._work, self._count, rings, left, self._spare)
        self._work, self._spare = self._spare, self._work

    # -------------------------------------------------------------------------------- the implicit set

    def _pull(self, bound: int, frontier: int) -> Step:
        """Relax everything at ``bound``; then go on from ``bound + 1``, implicitly or, if little is left, listed."""
        run = (self._edges.in_rows, self._distances, np.uint32(bound))
        looking_at_all = not 0 < self._rest_bound <= bound + 1
        if looking_at_all:
            pull_bound_all_step(*run, self._rest, self._tally)
        else:
            pull_bound_rest_step(*run, self._rest, self._rings, self._tally)
        left, found, edges = (int(total) for total in self._tally.sum(axis=0))
        self._rest_bound = self._bound = bound + 1
        self._found, few = found, found == 0 or (not looking_at_all and found < left)
        if few and self._furthest > bound:  # not only the finds are at the new bound or further
            self._list_from(bound + 1)
        elif few:
            self._bound = None
            if found:
                self._count = list_found_step(self._rings, self._tally[:, 1], self._active, self._work, 0)
        return Step("pull", bound, frontier, edges)

    def _list_from(self, bound: int) -> None:
        """Turn the implicit set into a worklist."""
        self._count = collect_from_step(self._distance, np.uint32(bound), self._active, self._work)
        self._bound = None
