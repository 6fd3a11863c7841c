"""Shortest paths by loops that look at few edges: for_each pushes the light ones, do_all pulls the rest from afar.

The loop of vertex_programs/sssp_loop.py looks at every edge of every vertex that it reaches, as Dijkstra's algorithm
does: a push cannot know that an edge is too heavy to matter. Here rows are lightest first and pushes end at a bound.
When the loop is over, all distances below the bound are final, and a vertex beyond it pulls along its in-edges,
lightest first, for as long as they could help. Then comes the next bound, and last none.

    python examples/sssp_stages.py [SCALE]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.schedule import Reduction, add_task, atomic_add, atomic_lower, do_all, for_each
from cpu_engine.sssp.rows import prepare_rows

NONE = np.iinfo(np.int64).max
PUSHED_SHARE = 1 / 64  # of all edges: looked at before there is a bound
SPANS = (1 / 32, 1 / 8)  # quantiles of the weights: how far beyond the nearest cut row a bound lies
MIN_DEGREE = 8  # with fewer edges per vertex nearly all of them matter, and there is no bound
BUCKETS_PER_SPAN = 4


def push(task, tasks, offsets, targets, weight, distance, delta, bound, near, pushed, span, enough, lowered):  # type: ignore[no-untyped-def]
    """Offer along a row, up to the bound; there is one once ``enough`` was looked at. ``near``: the nearest cut row."""
    vertex, length = task & 0xFFFFFFFF, task >> 32
    if distance[vertex] < length:  # overtaken: a nearer task of this vertex has been created
        return 0
    first, last = offsets[vertex], offsets[vertex + 1]
    if bound[0] == NONE and enough >= 0 and atomic_add(pushed, 0, last - first) + last - first > enough:
        atomic_lower(bound, 0, length + span)
    for e in range(first, last):
        reach = length + weight[e]
        if reach >= bound[0]:
            atomic_lower(near, 0, length)
            return e - first
        if atomic_lower(distance, targets[e], reach):
            lowered[0] += 1
            add_task(tasks, reach << 32 | targets[e], reach // delta)
    return last - first


def pull(vertex, offsets, sources, weight, distance, settled, bound, near, lowered):  # type: ignore[no-untyped-def]
    """Look along in-edges for what was cut, as far as it may lead nearer; no other task writes distance[vertex]."""
    e, best = offsets[vertex], distance[vertex]
    if best < settled:
        return 0
    while e < offsets[vertex + 1] and near[0] + weight[e] < min(best, bound[0]):
        if distance[sources[e]] < best - weight[e]:
            best = distance[sources[e]] + weight[e]
        e += 1
    if best < distance[vertex]:
        distance[vertex] = best
        lowered[0] += 1
    return e - offsets[vertex]


@dataclass(frozen=True)
class Paths:
    """Distances, -1 where there is no path; edges whose target's distance was compared, and how often it fell."""

    distance: np.ndarray
    edges: int
    decreases: int


class StagedPaths:
    """A graph whose weights are whole numbers, made ready for any root; distances must be below 2**31.

    ``delta``: the width of a bag's priority where there is no bound. ``options``: of the loops, such as threads.
    """

    def __init__(self, graph: Graph, *, delta: int = 16, **options: Any) -> None:
        rows = prepare_rows(graph)
        self._out, self._into = _plain(rows.out), _plain(rows.into)
        self._n, self._delta, self._options = graph.n, delta, options
        weights = np.sort(rows.sample) if graph.m >= MIN_DEGREE * graph.n else np.empty(0, np.int64)
        spans = {int(weights[int(share * weights.size)]) for share in SPANS if weights.size}
        self._spans = sorted(span for span in spans if span > 0)
        self._enough = int(graph.m * PUSHED_SHARE)

    def run(self, root: int) -> Paths:
        """From an internal id."""
        distance, lowered = np.full(self._n, NONE), Reduction("sum")
        distance[root] = 0
        bound, near, pushed = np.full(1, NONE), np.full(1, NONE), np.zeros(1, np.int64)
        spans, edges, settled = self._spans, 0, 0
        waiting, enough = np.array([root]), self._enough if self._spans else -1
        while True:
            span = spans[0] if spans else 0
            delta = max(1, span // BUCKETS_PER_SPAN) if spans else self._delta
            tasks = distance[waiting] << 32 | waiting
            report = for_each(
                push, tasks, *self._out, distance, np.int64(delta), bound, near, pushed, np.int64(span),
                np.int64(enough), lowered, priorities=distance[waiting] // delta, **self._options,
            )  # fmt: skip
            edges += int(report.work.sum())
            if bound[0] == NONE or near[0] == NONE:  # no row was cut
                return Paths(np.where(distance == NONE, -1, distance), edges, lowered.value)
            settled, spans, enough = int(bound[0]), spans[1:], -1
            bound[0] = near[0] + spans[0] if spans else NONE
            report = do_all(
                pull, self._n, *self._into, distance, np.int64(settled), bound, near, lowered,
                steal=True, **self._options,
            )  # fmt: skip
            edges += int(report.work.sum())
            waiting = np.flatnonzero((distance >= settled) & (distance < bound[0]))


def _plain(rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, ends and weights of rows that are lightest first."""
    offsets, words, weight, bits = rows
    if weight is None:
        return offsets, (words & ((1 << int(bits)) - 1)).astype(np.int64), (words >> bits).astype(np.int64)
    return offsets, words.astype(np.int64), weight


def main(scale: int) -> None:
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.edges import EdgeList
    from cpu_engine.graph.generators import kronecker

    edges = kronecker(scale)
    weight = np.random.default_rng(1).integers(1, 256, edges.src.size)
    graph = build_graph(EdgeList(edges.src, edges.dst, weight=weight), directed=False)
    found = StagedPaths(graph).run(0)
    all_of_them = int(np.diff(graph.out_offsets)[found.distance >= 0].sum())
    print(f"{np.count_nonzero(found.distance >= 0)} vertices reached, {found.decreases} times a distance fell")
    print(f"{found.edges} edges looked at; Dijkstra's algorithm looks at {all_of_them}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
