"""What the planner knows of a graph: edges inside and touching [0, k) for every k, and what a real search looked at.

Invariant: the counts are exact. The search was run on the CPU alone; where none was run, it is None, and the planner
only knows bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cpu_engine.bfs.traversal import Traversal, search
from cpu_engine.graph.graph import Graph
from cpu_engine.hub_core.kernels.statistics import count_core_ends_step, count_few_core_ends_step
from hybrid.config.schema import Config

T = TypeVar("T")
FEWEST_RUNS, MOST_RUNS, SHORT_S = 2, 8, 0.3
FEW_ROWS = 1 << 16  # counted by one thread in a few milliseconds, without waking the others


@dataclass(frozen=True, eq=False)
class SearchFacts:
    """One CPU-only search (or one batch of them, all at once), measured."""

    seconds: float
    steps: int  # levels, or steps of the asynchronous engine
    edges: int  # looked at
    looks: float  # edges of a vertex's list that a pass looks at, at most: the list is cut to this length
    spread: np.ndarray  # by k: levels between the core's first and last vertex, the hops a closure of it needs
    batch: int = 1
    passes: int = 1  # over the graph, one after the other


@dataclass(frozen=True, eq=False)
class CoreStatistics:
    """Counts for the cores [0, k), k = 0..limit, in arcs: an undirected edge counts twice."""

    n: int
    m: int
    inside: np.ndarray  # int64[limit + 1]
    touching: np.ndarray
    degree: np.ndarray  # of the first ``limit`` vertices, descending
    in_degree: np.ndarray  # of the same
    search: SearchFacts | None = None

    @property
    def limit(self) -> int:
        """The largest core that was counted."""
        return self.inside.size - 1

    def density(self, k: int) -> float:
        """The share of all pairs in [0, k) that are edges."""
        return float(self.inside[k]) / (k * (k - 1)) if k > 1 else 0.0

    def looked_at(self, k: int, looks: float) -> float:
        """Edges inside [0, k) that a search looks at if each vertex looks at the first ``looks`` of its list.

        Lists are ascending, so the first ones lead to hubs: they are inside as far as anything is.
        """
        return min(float(self.inside[k]), float(np.minimum(self.in_degree[:k], looks).sum()))


def core_statistics(
    graph: Graph, limit: int | None = None, search: SearchFacts | None = None, few_rows: int = FEW_ROWS
) -> CoreStatistics:
    """Count for every core of up to ``limit`` vertices (default: all), in one pass over their rows."""
    size = graph.n if limit is None else min(limit, graph.n)
    larger, smaller = np.zeros(size, np.int64), np.zeros(size, np.int64)
    count = count_few_core_ends_step if size <= few_rows else count_core_ends_step
    back = (graph.in_offsets, graph.in_sources) if graph.directed else (graph.in_offsets[:0], graph.in_sources[:0])
    count(graph.out_offsets, graph.out_targets, *back, larger, smaller)
    in_degree = np.diff(graph.in_offsets[: size + 1])
    degree = in_degree + np.diff(graph.out_offsets[: size + 1]) if graph.directed else in_degree
    return CoreStatistics(graph.n, graph.m, _sums(larger), _sums(smaller), degree, in_degree, search)


def _sums(histogram: np.ndarray) -> np.ndarray:
    sums = np.zeros(histogram.size + 1, np.int64)
    np.cumsum(histogram, out=sums[1:])
    return sums


def measure_search(graph: Graph, engine: Traversal, root: int, limit: int, most_runs: int = MOST_RUNS) -> SearchFacts:
    """Search from ``root`` on the CPU alone; the fastest of a few counts, as the first one warms the caches."""
    found, best = _fastest(lambda: search(engine, root), most_runs)
    edges = found.edges_looked_at
    return SearchFacts(
        best, found.steps, edges, looks_per_vertex(graph.in_offsets, edges), core_spread(found.level, limit)
    )


def measure_batch(graph: Graph, roots: np.ndarray, limit: int, most_runs: int = MOST_RUNS) -> SearchFacts:
    """All ``roots`` at once, one bit each (levels only)."""
    from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs

    engine = ManyBfs(graph)
    found, best = _fastest(lambda: engine.run(roots), most_runs)
    passes, edges = -(-roots.size // ROOTS_PER_PASS), found.edges_looked_at
    spread = core_spread(np.ascontiguousarray(found.level[0], np.int32), limit)
    looks = looks_per_vertex(graph.in_offsets, edges // passes)
    return SearchFacts(best, found.levels_run, edges, looks, spread, int(roots.size), passes)


def measure_paths(graph: Graph, config: Config, root: int, most_runs: int = MOST_RUNS) -> SearchFacts:
    """Shortest paths on the CPU alone; how many hops the core's closure needs is not known from distances."""
    from cpu_engine.sssp.engine import SsspEngine

    engine = SsspEngine(graph, strategy=config.sssp.strategy, delta=config.sssp.delta)
    found, best = _fastest(lambda: engine.run(root), most_runs)
    looks = looks_per_vertex(graph.in_offsets, found.relaxations)
    return SearchFacts(best, found.steps, found.relaxations, looks, np.empty(0, np.int64))


def several(search: SearchFacts, times: int) -> SearchFacts:
    """Several batches as one: the CPU searches them one after the other, a single round carries them all."""
    return replace(
        search, seconds=times * search.seconds, edges=times * search.edges, batch=times * search.batch,
        passes=times * search.passes,
    )  # fmt: skip


def _fastest(run: Callable[[], T], most_runs: int = MOST_RUNS) -> tuple[T, float]:
    """Run at least twice, more often while runs are short; the result, and the seconds of the fastest."""
    times: list[float] = []
    while len(times) < FEWEST_RUNS or (len(times) < min(MOST_RUNS, most_runs) and sum(times) < SHORT_S):
        began = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - began)
    return found, min(times)


def looks_per_vertex(in_offsets: np.ndarray, edges: int) -> float:
    """The length at which every list would have to be cut so that ``edges`` are left in all; at least 1 if any are.

    A search that pulls leaves a list as soon as it finds a parent; of one that looks at everything, this is the length
    of the longest list. So it is how many edges of the core's vertices a search really looks at.
    """
    degree = np.diff(in_offsets)
    longer = degree.size - np.cumsum(np.bincount(degree))[:-1]  # [j] = lists of more than j edges
    left = np.cumsum(longer)  # [j] = edges left when lists are cut to j + 1
    if not left.size or not edges:
        return 0.0
    cut = int(np.searchsorted(left, min(edges, int(left[-1]))))
    before = int(left[cut - 1]) if cut else 0
    return max(1.0, cut + (min(edges, int(left[cut])) - before) / int(longer[cut]))


def core_spread(level: np.ndarray, limit: int) -> np.ndarray:
    """By k = 0..limit: the levels between the first and the last reached vertex of [0, k); 0 where none is."""
    core = level[:limit]
    deepest = np.maximum.accumulate(core) if core.size else core
    nearest = np.minimum.accumulate(core.view(np.uint32)) if core.size else core.view(np.uint32)
    spread = np.zeros(core.size + 1, np.int64)
    spread[1:] = np.where(deepest >= 0, deepest.astype(np.int64) - nearest.astype(np.int64), 0)
    return spread
