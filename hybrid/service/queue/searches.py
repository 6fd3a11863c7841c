"""Single-source queries: those that come together are answered by one bit-parallel pass, each answer proven.

Invariant: no level leaves this module that its certificate did not cover. Engines and their buffers belong to the
computing thread and to queries alone, so that a job may be put aside for them at any moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.centrality.kernels.closeness import count_levels_step
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.algorithm import Task
from hybrid.config.schema import Config
from hybrid.graphs.sources import Source
from hybrid.job.engines import SearchEngine
from hybrid.job.proof import prove_levels
from hybrid.job.units import CpuAlone, prove_unit
from hybrid.results.trace import Trace
from hybrid.service.http.problems import Problem, problem_of

if TYPE_CHECKING:
    from hybrid.service.worker.pool import BatchHelp

Levels = np.ndarray  # of one source, by internal id, -1 = not reached
Answering = Callable[["Searcher", Source, Levels, Any], dict[str, Any]]
_DEEP = 4096  # beyond this depth, counts by level are made one source at a time


class Searcher:
    """The engines of one graph, with their buffers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._single: SearchEngine | None = None
        self._many: ManyBfs | None = None
        self.helper: BatchHelp | None = None  # a resident worker's part in batches

    def alone(self, root: int) -> Levels:
        """One proven search; the levels are the engine's own."""
        if self._single is None:
            self._single = SearchEngine(CoreSplit(self.graph))
        task = Task(self.graph, Config(), Source(int(self.graph.user_id_of[root]), root))
        _, ((found, _),), _ = prove_unit(self._single.algorithm, self._single, [task], CpuAlone())
        return found.arrays["level"]

    def together(self, roots: np.ndarray) -> Levels:
        """Proven levels by [root, vertex]; the engine's own."""
        if self.helper is not None:
            level = self.helper.search(roots)
            if level is not None:
                return level
        if self._many is None:
            self._many = ManyBfs(self.graph)
        return prove_levels(self.graph, roots, self._many.run(roots), Trace())[0].level


def level_sizes(level: np.ndarray) -> np.ndarray:
    """counts[root, d + 1]: vertices at distance d (d = -1: not reached), of levels by [root, vertex]."""
    rows = level.T
    roots, depth, size = level.shape[0], int(level.max(initial=0)), rows.itemsize
    stride = rows.strides[0] // size
    padded = stride != roots and size > 1  # bytes have -1 in unused columns, wider numbers have anything
    if depth > _DEEP or rows.strides[1] != size or padded:
        return np.stack([np.bincount(one.astype(np.int64) + 1, minlength=depth + 2) for one in level])
    flat = np.lib.stride_tricks.as_strided(rows, (rows.shape[0] * stride,), (size,), writeable=False)
    counts = np.zeros((numba.get_num_threads(), stride, depth + 2), np.int64)
    count_levels_step(flat, stride, counts)
    summed: np.ndarray = counts.sum(axis=0)[:roots]
    return summed


@dataclass(eq=False)
class SearchQuery:
    """One question about the distances from one source, and the future that its answer goes to."""

    searcher: Searcher
    source: Source
    answering: Answering
    asked: Any
    deadline: float
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[dict[str, Any]]

    @property
    def group(self) -> object:
        return self.searcher

    @property
    def abandoned(self) -> bool:
        return self.future.cancelled()

    def refuse(self, problem: Problem) -> None:
        deliver([(self, problem)])


def deliver(answers: Sequence[tuple[SearchQuery, dict[str, Any] | Problem]]) -> None:
    """Hand answers to the loop, all at once."""
    if not answers:
        return

    def settle() -> None:
        for query, answer in answers:
            if query.future.done():
                continue
            if isinstance(answer, Problem):
                query.future.set_exception(answer)
            else:
                query.future.set_result(answer)

    try:
        answers[0][0].loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop has ended, and with it every client that asked
        return


def answer(queries: Sequence[Any], observe: Callable[[int, float], None]) -> None:
    """Answer queries about one graph; ``observe`` learns how many there were, and how long that took."""
    began = time.perf_counter()
    searcher: Searcher = queries[0].searcher
    answers: list[tuple[SearchQuery, dict[str, Any] | Problem]] = []
    roots = np.unique([query.source.internal for query in queries if query.source.internal >= 0])
    table = sizes = np.empty((0, 0), np.int32)
    if roots.size:
        table = searcher.together(roots) if roots.size > 1 else searcher.alone(int(roots[0]))[None]
    if roots.size and any(query.answering is tell_sizes for query in queries):
        sizes = level_sizes(table) if roots.size > 1 else np.bincount(table[0] + 1)[None]
    place = {int(root): at for at, root in enumerate(roots)}
    for query in queries:
        at = place.get(query.source.internal)
        level = np.empty(0, np.int32) if at is None else table[at]
        asked = query.asked
        if query.answering is tell_sizes:
            asked = None if at is None else sizes[at]
        try:
            answers.append((query, query.answering(searcher, query.source, level, asked)))
        except Exception as error:
            answers.append((query, problem_of(error)))
    deliver(answers)
    observe(len(queries), time.perf_counter() - began)


def tell_sizes(searcher: Searcher, source: Source, level: Levels, counts: np.ndarray) -> dict[str, Any]:
    sizes = [1] if source.internal < 0 else counts[1:].tolist()
    while sizes and not sizes[-1]:
        sizes.pop()
    return {"source": source.user_id, "reached": sum(sizes), "depth": len(sizes) - 1, "sizes": sizes}


def tell_distance(searcher: Searcher, source: Source, level: Levels, target: Source) -> dict[str, Any]:
    return {"source": source.user_id, "target": target.user_id, "distance": _distance(source, level, target)}


def tell_path(searcher: Searcher, source: Source, level: Levels, target: Source) -> dict[str, Any]:
    """A shortest path: from the target back, each time to an in-neighbour one level nearer."""
    distance = _distance(source, level, target)
    if distance is None:
        path = None
    elif distance == 0:
        path = [source.user_id]
    else:
        graph, at = searcher.graph, target.internal
        found = [at]
        while level[at] > 0:
            near = graph.in_sources[graph.in_offsets[at] : graph.in_offsets[at + 1]]
            at = int(near[np.argmax(level[near] == level[at] - 1)])
            found.append(at)
        path = graph.user_id_of[found[::-1]].tolist()
    return {"source": source.user_id, "target": target.user_id, "distance": distance, "path": path}


@dataclass(frozen=True)
class Reach:
    """Who is within so many edges; a page of them."""

    hops: int
    offset: int
    limit: int


def tell_neighbours(searcher: Searcher, source: Source, level: Levels, asked: Reach) -> dict[str, Any]:
    """The vertices within some edges of the source, nearest first, by id."""
    if source.internal < 0:
        ids, near = np.array([source.user_id]), np.zeros(1, np.int64)
    else:
        inside = np.flatnonzero((level >= 0) & (level <= asked.hops))
        ids, near = searcher.graph.user_id_of[inside], level[inside].astype(np.int64)
    order = np.lexsort((ids, near))[asked.offset : asked.offset + asked.limit]
    return {
        "source": source.user_id, "hops": asked.hops, "total": int(ids.size), "offset": asked.offset,
        "vertex": ids[order].tolist(), "distance": near[order].tolist(),
    }  # fmt: skip


def _distance(source: Source, level: Levels, target: Source) -> int | None:
    if source.user_id == target.user_id:
        return 0
    if source.internal < 0 or target.internal < 0 or level[target.internal] < 0:
        return None
    return int(level[target.internal])


def warm_up_searches(graph: Graph) -> Searcher:
    """A searcher of this graph whose kernels are compiled, or loaded."""
    searcher = Searcher(graph)
    if graph.n:
        searcher.alone(0)
        for width in {min(graph.n, 2), min(graph.n, ROOTS_PER_PASS)}:
            level_sizes(searcher.together(np.arange(width)))
    return searcher
