"""Shortest paths from one vertex over weights that are not negative; docs/explanation/sssp.md compares the strategies.

Distances are int64 (-1: not reached) where weights are integers or there are none (each edge then counts 1), float64
(infinite: not reached) where not. They are exact: an integer that does not fit is refused, and a floating-point
distance is the smallest sum, rounded edge by edge from the root, over all paths - whatever the strategy and the number
of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.bfs.traversal import Adoption, Step
from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.sssp.delta import MIN_DEGREE, SPANS, Buckets
from cpu_engine.sssp.kernels.tree import adopt_orphans_step, find_tight_parents_step
from cpu_engine.sssp.pull import PullRounds
from cpu_engine.sssp.rows import WeightedRows, prepare_rows
from cpu_engine.sssp.skeleton import SkeletonSearch, prepare_skeleton
from cpu_engine.threads import alone_if_small, threads_for

STRATEGIES = ("delta", "push", "pull")
WIDTH_DEGREE = 7  # a bucket is as wide as a typical weight at this degree, wider where there are fewer edges,
MIN_WIDTH_SHARE = 1 / 2  # and not much narrower where there are more
PLAIN_RUNS = 1  # of a graph, before its skeleton is made: to prepare that takes as long as several runs
ROUNDS_PER_STEP = 64  # while a core solver may have an answer


@dataclass(frozen=True)
class SsspResult:
    """Distances and a tree of shortest paths, in internal ids."""

    distance: np.ndarray  # int64, -1 not reached; or float64, infinite
    parent: np.ndarray  # int32; the root's is itself, -1 where there is none
    steps: int  # rounds in which threads waited for one another
    relaxations: int  # edges looked at
    delta: float | None  # width of a bucket; None where there are no buckets


class SsspEngine:
    """A graph prepared for any number of runs; satisfies ``Traversal``, with distances for levels."""

    def __init__(
        self, graph: Graph, *, core_size: int = 0, strategy: str = "delta", delta: float | None = None,
        plain_runs: int = PLAIN_RUNS,
    ) -> None:  # fmt: skip
        if strategy not in STRATEGIES:
            raise InputError(
                "there is no such strategy of shortest paths",
                value=strategy,
                fix=f"name one of {', '.join(STRATEGIES)}",
            )
        if delta is not None and not 0 < delta < np.inf:
            raise InputError("delta, the width of a bucket, must be above 0", value=delta, fix="leave it out")
        self.name = f"sssp-{strategy}"
        self.work = graph.n + graph.m
        self._rows = prepare_rows(graph)
        self._core_size, self._strategy, self._chosen = core_size, strategy, delta
        self._plain_runs = plain_runs
        self._by_skeleton: SkeletonSearch | None = None
        self.delta = None if strategy != "delta" else choose_delta(self._rows) if delta is None else delta
        self._dtype: type = self._narrowest()
        self._solver: Buckets | PullRounds | None = None
        self._pushing: Buckets | None = None  # beside a solver that cannot do without edges
        self._distance = np.empty(graph.n, np.float64 if self._rows.is_float else np.int64)
        self._parent = np.empty(graph.n, np.int32)
        self._root = -1

    # --------------------------------------------------------------------------------------- whole runs

    def run(self, root: int) -> SsspResult:
        """Distances and parents from ``root``; the arrays are the engine's own, valid until its next run."""
        self._check_root(root)
        with threads_for(self.work):
            return self._run(root)

    def _run(self, root: int) -> SsspResult:
        search = self._skeleton_search()
        if search is not None:
            steps, edges = search.run(root, self._distance, self._parent)
            return SsspResult(self._distance, self._parent, steps, edges, search.width)
        steps, edges = self._run_to_end(root)
        while self._too_far() is not None and self._dtype is np.int32:
            self._dtype, self._solver = np.int64, None
            steps, edges = self._run_to_end(root)
        distance, parent = self.finish()
        return SsspResult(distance, parent, steps, edges, self.delta)

    def _run_to_end(self, root: int) -> tuple[int, int]:
        self.start(root, withhold_core=False)
        steps, edges = 0, 0
        while self._active.waiting:
            effort = self._active.step()
            steps += effort.rounds
            edges += effort.edges
        return steps, edges

    def _skeleton_search(self) -> SkeletonSearch | None:
        """The short way, if the graph has a skeleton and enough runs were made without it."""
        rows = self._rows
        rows.runs += 1
        if self._by_skeleton is None and rows.runs > self._plain_runs and self._strategy == "delta":
            skeleton = None if self._core_size else prepare_skeleton(rows)
            if skeleton is not None:
                width = choose_delta(skeleton.rows) if self._chosen is None else self._chosen
                self._by_skeleton = SkeletonSearch(skeleton, width)
        return self._by_skeleton

    def give_away(self) -> None:
        """Leave the last result's arrays to the caller, and write the next result into others."""
        self._distance, self._parent = np.empty_like(self._distance), np.empty_like(self._parent)

    # -------------------------------------------------------------------------------------- in small steps

    def start(self, root: int, *, withhold_core: bool) -> None:
        self._check_root(root)
        self._root = root
        core = self._core_size if withhold_core else 0
        if core and self._strategy == "pull":
            self._pushing = self._pushing or Buckets(self._rows, self._dtype, None, ())
            self._active: Buckets | PullRounds = self._pushing
        else:
            self._solver = self._solver or self._make_solver()
            self._active = self._solver
        if isinstance(self._active, Buckets):
            self._active.start(root, core=core)
        else:
            self._active.start(root)

    def resume(self, distance: np.ndarray, root: int) -> None:
        """Begin from distances that are lengths of paths, not necessarily shortest, encoded as in a result."""
        self.start(root, withhold_core=False)
        if isinstance(self._active, Buckets):
            self._active.start(root, stages=False)
        values = self._inner(distance)
        np.minimum(self._active.dist, values, out=self._active.dist)
        self._active.refill()

    def settle(self) -> None:
        """Nothing to close."""

    def can_step(self) -> bool:
        return self._active.waiting

    def step(self) -> Step:
        active = self._active
        effort = active.step(ROUNDS_PER_STEP) if isinstance(active, Buckets) else active.step()
        return Step("pull" if effort.pulled else "push", -1, effort.expanded, effort.edges)

    def core_values(self) -> np.ndarray:
        """The core's distances, int32 or int64 (-1: none), or float64 (infinite: none)."""
        values = self._active.dist[: self._core_size].copy()
        if not self._rows.is_float:
            values[values == self._active.unreached] = -1
        return values

    def adopt(self, closed: np.ndarray) -> Adoption:
        mine, theirs = self._active.dist[: closed.size], self._inner(closed)
        better = np.flatnonzero(theirs < mine)
        if better.size:
            mine[better] = theirs[better]
            self._active.refill()
        return Adoption(adopted=better.size, rejected=0)

    def take_core_back(self) -> None:
        if isinstance(self._active, Buckets):
            self._active.reactivate(np.arange(self._core_size), 0)

    @np.errstate(over="ignore")
    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        too_far = self._too_far()
        if too_far is not None:
            graph = self._rows.graph
            raise InputError(
                f"the distance to vertex {int(graph.user_ids[graph.user_position[too_far]])} does not fit into 64 bits",
                fix="divide all weights by a common factor",
            )
        rows, active = self._rows, self._active
        orphans = np.zeros(numba.get_num_threads(), np.int64)
        none = self._distance.dtype.type(np.inf if rows.is_float else -1)
        find_tight_parents_step(
            rows.in_cuts, rows.into, active.dist, self._root, active.unreached, none, np.zeros(1, np.int64),
            self._distance, self._parent, orphans,
        )  # fmt: skip
        if orphans.sum() > 0:
            queue = np.empty(active.dist.size, np.int32)
            adopt_orphans_step(rows.into, rows.out, active.dist, active.unreached, self._parent, queue)
        return self._distance, self._parent

    # ------------------------------------------------------------------------------------------ its parts

    def _check_root(self, root: int) -> None:
        n = self._rows.graph.n
        if not 0 <= root < n:
            raise InputError("the root is not a vertex with edges", value=root, fix=f"choose one of 0..{n - 1}")

    def _narrowest(self) -> type:
        """Of the distances. int32 is tried where a run on nothing but heavy edges would not fit, but most will."""
        if self._rows.is_float:
            return np.float64
        return np.int32 if self._rows.max_weight < 2**31 - 1 and not self._core_size else self._surely_wide_enough()

    def _surely_wide_enough(self) -> type:
        return np.int32 if self._rows.longest_path() < 2**31 - 1 else np.int64

    def _make_solver(self) -> Buckets | PullRounds:
        if self._strategy == "pull":
            return PullRounds(self._rows, self._dtype)
        spans = choose_spans(self._rows) if self._strategy == "delta" else ()
        return Buckets(self._rows, self._dtype, self.delta, spans)

    def _inner(self, values: np.ndarray) -> np.ndarray:
        """Values from outside, as distances are kept."""
        unreached, dtype = self._active.unreached, self._active.dist.dtype
        if self._rows.is_float:
            return np.asarray(values, dtype)
        kept: np.ndarray = np.where((values < 0) | (values > unreached), unreached, values).astype(dtype)
        return kept

    def _too_far(self) -> int | None:
        """A vertex whose distance does not fit into the type, if there is one."""
        return self._rows.too_far(self._active.dist, self._active.unreached)


@alone_if_small
def sssp(graph: Graph, root: int, *, strategy: str = "delta", delta: float | None = None) -> SsspResult:
    """Shortest paths from ``root``, an internal id. The graph is prepared at its first call and kept so, with buffers.

    ``strategy`` is one of STRATEGIES; ``delta`` the width of a bucket, chosen from the weights if it is not given.
    """
    made = prepare_rows(graph).engines
    wanted = (strategy, delta, numba.get_num_threads())
    if wanted not in made:
        made[wanted] = SsspEngine(graph, strategy=strategy, delta=delta)
    engine: SsspEngine = made[wanted]
    found = engine.run(root)
    engine.give_away()
    return found


def choose_delta(rows: WeightedRows) -> float:
    """The width of a bucket: see docs/explanation/sssp.md for the measurements behind it."""
    above = rows.sample[rows.sample > 0]
    typical = 1.0
    if above.size:
        median, largest = float(above[above.size // 2]), float(above[-1])
        typical = np.sqrt(median) * np.sqrt(float((above / largest).mean()) * largest)  # half way to the mean
    degree = rows.graph.m / max(rows.graph.n, 1)
    width = float(typical) * max(MIN_WIDTH_SHARE, (WIDTH_DEGREE / max(degree, 1)) ** 1.5)
    return width if rows.is_float else float(2 ** max(0, round(np.log2(max(width, 1)))))


def choose_spans(rows: WeightedRows) -> tuple[float, ...]:
    """How far beyond the nearest hub each stage reaches: quantiles of the weights, none where stages do not pay."""
    graph = rows.graph
    if graph.m < MIN_DEGREE * graph.n or not rows.sample.size:
        return ()
    spans = [rows.sample[int(share * rows.sample.size)].item() for share in SPANS]
    return tuple(dict.fromkeys(span for span in spans if 0 < span < rows.max_weight))
