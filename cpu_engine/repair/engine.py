"""Every algorithm a second time, the textbook way: what a result that failed its check is replaced by.

Serial and simple on purpose. Invariant: nothing here is shared with the engines, nor with the checks, so a defect of
one is no defect of the other. All arrays are in internal ids and of the types that the engines give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.repair.kernels.counts import peel_lowest_step, visit_triangles_step
from cpu_engine.repair.kernels.groups import close_cycles_step, count_labels_step, join_ends_step, move_vertices_step
from cpu_engine.repair.kernels.paths import add_dependencies_step, search_with_queue_step, settle_nearest_step

_MOST_SWEEPS = 100  # of Louvain on one level, and levels
_LEAST_GAIN = 1e-12  # of modularity: less is rounding
_ROUNDING = 1e-15  # sums of ranks do not settle below
_HUGE = 1e290  # sums of such weights may be infinite


# --------------------------------------------------------------------------------------------- paths


def plain_bfs(graph: Graph, root: int) -> tuple[np.ndarray, np.ndarray]:
    """Level and parent, by a queue."""
    level, parent = np.full(graph.n, -1, np.int32), np.full(graph.n, -1, np.int32)
    search_with_queue_step(graph.out_offsets, graph.out_targets, root, level, parent, np.empty(graph.n, np.int32))
    return level, parent


def plain_sssp(graph: Graph, root: int) -> tuple[np.ndarray, np.ndarray]:
    """Distance and parent, by Dijkstra's algorithm; every edge counts as 1 where there are no weights."""
    weight = np.ones(graph.m, np.int64) if graph.weight is None else graph.weight
    real = weight.dtype.kind == "f"
    largest = weight.dtype.type(np.finfo(np.float64).max if real else np.iinfo(np.int64).max)
    distance = np.full(graph.n, np.inf if real else -1, weight.dtype)
    distance[root] = 0
    parent, settled = np.full(graph.n, -1, np.int32), np.zeros(graph.n, np.uint8)
    settle_nearest_step(graph.out_offsets, graph.out_targets, weight, root, largest, distance, parent, settled)
    return distance, parent


def plain_closeness(graph: Graph, roots: np.ndarray, *, harmonic: bool) -> np.ndarray:
    """The score of each root: a search by a queue against the arcs."""
    level, parent = np.full(graph.n, -1, np.int32), np.full(graph.n, -1, np.int32)
    queue, score = np.empty(graph.n, np.int32), np.zeros(roots.size)
    for at, root in enumerate(roots.tolist()):
        reached = queue[: search_with_queue_step(graph.in_offsets, graph.in_sources, root, level, parent, queue)]
        distance = level[reached[1:]].astype(np.float64)
        if harmonic:
            score[at] = (1 / distance).sum()
        elif distance.size:
            score[at] = distance.size / distance.sum() * distance.size / (graph.user_ids.size - 1)
        level[reached] = parent[reached] = -1
    return score


def plain_betweenness(graph: Graph, roots: np.ndarray) -> np.ndarray:
    """The sum over roots of Brandes' dependencies."""
    level, queue = np.full(graph.n, -1, np.int32), np.empty(graph.n, np.int32)
    paths, depends, score = np.zeros((3, graph.n))
    roots = np.asarray(roots, np.int64)
    add_dependencies_step(graph.out_offsets, graph.out_targets, roots, level, queue, paths, depends, score)
    return score


# --------------------------------------------------------------------------------------------- groups


def plain_components(graph: Graph) -> np.ndarray:
    """The smallest vertex of each weakly connected component, by union-find."""
    label = np.arange(graph.n, dtype=np.int32)
    join_ends_step(graph.out_offsets, graph.out_targets, label)
    return label


def plain_strong_components(graph: Graph) -> np.ndarray:
    """The smallest vertex of each strongly connected component, by Tarjan's algorithm."""
    met, low, path, open_ones = np.zeros((4, graph.n), np.int32)
    label, cursor = np.full(graph.n, -1, np.int32), np.zeros(graph.n, np.int64)
    close_cycles_step(graph.out_offsets, graph.out_targets, met, low, cursor, path, open_ones, label)
    return label


def plain_labels(graph: Graph, iterations: int) -> np.ndarray:
    """Labels, as user ids, after so many rounds of counting."""
    label = graph.user_position.astype(np.int64)  # in the order of the ids
    count, fresh = np.zeros(graph.user_ids.size, np.int64), np.empty_like(label)
    rows = (graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources)
    for _ in range(iterations):
        count_labels_step(*rows, graph.directed, label, count, fresh)
        label, fresh = fresh, label
    return graph.user_ids[label].astype(np.int64)


def plain_louvain(graph: Graph, resolution: float) -> np.ndarray:
    """Communities, named by their smallest vertex: moves by id until none pays, then the same among communities."""
    source, target, weight = _edges(graph)
    found = np.arange(graph.n)
    for _ in range(_MOST_SWEEPS):
        count = int(found.max(initial=-1)) + 1
        offsets, ends, between = _summed(source, target, weight, count)
        strength = np.bincount(source, weight, count)
        group, inside, near = np.arange(count), strength.copy(), np.zeros(count)
        for _ in range(_MOST_SWEEPS):
            if not move_vertices_step(offsets, ends, between, strength, resolution, _LEAST_GAIN, group, inside, near):
                break
        kept, group = np.unique(group, return_inverse=True)
        if kept.size == count:
            break
        found, source, target = group[found], group[source], group[target]
    first = np.unique(found, return_index=True)[1]
    return first[found].astype(np.int32)


def _edges(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every edge both ways, a loop too, with its share of all weight; nothing where nothing weighs anything."""
    source, target = _arcs(graph)
    weight = np.ones(graph.m) if graph.weight is None else graph.weight.astype(np.float64)
    if weight.max(initial=0.0) > _HUGE:
        weight = weight / weight.max()
    if not graph.directed:
        weight = np.where(source == target, weight, weight / 2)
    if not weight.sum() > 0:
        return source[:0], target[:0], weight[:0]
    weight = weight / (2 * weight.sum())
    return np.concatenate([source, target]), np.concatenate([target, source]), np.concatenate([weight, weight])


def _summed(
    source: np.ndarray, target: np.ndarray, weight: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with one entry for each pair of different ends, and its weight."""
    other = source != target
    code, at = np.unique(source[other] * np.int64(count) + target[other], return_inverse=True)
    offsets = np.searchsorted(code, np.arange(count + 1) * np.int64(count))
    return offsets, code % max(count, 1), np.bincount(at, weight[other], code.size)


# --------------------------------------------------------------------------------------------- counts


@dataclass(frozen=True)
class Neighbours:
    """Rows of distinct neighbours, directions and loops aside."""

    offsets: np.ndarray
    ends: np.ndarray
    arcs: np.ndarray  # 1 or 2: in how many directions the two are joined

    @property
    def degree(self) -> np.ndarray:
        return np.diff(self.offsets)


def neighbours_of(graph: Graph) -> Neighbours:
    """By sorting all arcs, both ways."""
    source, target = _arcs(graph)
    n, other = np.int64(graph.n), source != target
    arcs = np.unique(source[other] * n + target[other])
    source, target = arcs // max(n, 1), arcs % max(n, 1)
    code, count = np.unique(np.concatenate([arcs, target * n + source]), return_counts=True)
    return Neighbours(np.searchsorted(code, np.arange(graph.n + 1) * n), code % max(n, 1), count)


def plain_core_numbers(graph: Graph) -> np.ndarray:
    """By peeling."""
    near = neighbours_of(graph)
    left = near.degree.astype(np.int64)
    order = np.argsort(left, kind="stable")
    place = np.empty(graph.n, np.int64)
    place[order] = np.arange(graph.n)
    begin = np.searchsorted(left[order], np.arange(int(left.max(initial=0)) + 1))
    peel_lowest_step(near.offsets, near.ends, left, begin, order, place)
    return left.astype(np.int32)


def plain_triangles(graph: Graph) -> np.ndarray:
    """Of each vertex the triangles that it is a corner of."""
    near = neighbours_of(graph)
    return _visit(near, np.ones(near.ends.size))[0]


def plain_clustering(graph: Graph) -> np.ndarray:
    """LDBC's coefficient: arcs among the neighbours over ordered pairs of them."""
    near = neighbours_of(graph)
    arcs, pairs = _visit(near, np.ones(near.ends.size))[1], near.degree * (near.degree - 1)
    return np.divide(arcs, pairs, out=np.zeros(graph.n), where=pairs > 0)


def plain_clustering_weighted(graph: Graph) -> np.ndarray:
    """Fagiolo's and Onnela's coefficients: cube roots of products over triangles, for graphs without parallel arcs."""
    near, (source, target) = neighbours_of(graph), _arcs(graph)
    weight = np.ones(graph.m) if graph.weight is None else graph.weight / graph.weight.max(initial=0)
    other = source != target
    source, target, root = source[other], target[other], np.cbrt(weight[other])
    n = np.int64(graph.n)
    code = np.repeat(np.arange(graph.n), near.degree) * n + near.ends
    value = np.bincount(np.searchsorted(code, source * n + target), root, code.size)
    pairs = near.degree * (near.degree - 1)
    if graph.directed:
        value += np.bincount(np.searchsorted(code, target * n + source), root, code.size)
        both = np.bincount(np.repeat(np.arange(graph.n), near.degree), near.arcs == 2, graph.n)
        degree = near.degree + both  # out plus in
        pairs = 2 * (degree * (degree - 1) - 2 * both)
    products = _visit(near, value)[2]
    return np.divide(2 * products, pairs, out=np.zeros(graph.n), where=products != 0)


def _visit(near: Neighbours, value: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = near.degree.size
    corners, opposite, products = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
    mark = np.zeros(n, np.int64)
    visit_triangles_step(near.offsets, near.ends, near.arcs, value, mark, corners, opposite, products)
    return corners, opposite, products


# --------------------------------------------------------------------------------------------- ranks


@dataclass(frozen=True)
class PlainRanks:
    """Ranks by position in user_ids, isolated vertices included."""

    rank: np.ndarray
    base: np.ndarray  # what each has without any arc
    iterations: int
    change: float


def plain_ranks(
    graph: Graph,
    start: np.ndarray,
    teleport: np.ndarray,
    dangling: np.ndarray,
    *,
    damping: float,
    iterations: int,
    tolerance: float | None = None,
    weighted: bool = False,
) -> PlainRanks:
    """Jacobi: so many iterations, or until one moves the ranks by less than ``tolerance`` in all.

    All vectors are by position; what vertices without out-arcs have goes to ``dangling``, which may be 0: then it is
    lost. The arcs count by weight if ``weighted``, else the same.
    """
    source, target = (graph.user_position[one] for one in _arcs(graph))
    value = graph.weight.astype(np.float64) if weighted and graph.weight is not None else np.ones(graph.m)
    leaving = np.bincount(source, value, start.size)
    share, stranded = value / np.where(leaving > 0, leaving, 1.0)[source], leaving == 0
    rank, base, done, change = start, start, 0, np.inf
    while done < iterations and (tolerance is None or not change < tolerance):
        base = (1 - damping) * teleport + damping * rank[stranded].sum() * dangling
        moved = base + damping * np.bincount(target, share * rank[source], start.size)
        rank, change, done = moved, float(np.abs(moved - rank).sum()), done + 1
    return PlainRanks(rank, base, done, change)


def enough_iterations(damping: float, tolerance: float) -> int:
    """After so many, Jacobi moves the ranks by less: each time by ``damping`` of the time before, and 2 at first."""
    reachable = max(tolerance, _ROUNDING)
    return 2 if damping <= 0 else 2 + math.ceil(math.log(reachable / 2) / math.log(damping))


def _arcs(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(graph.n), np.diff(graph.out_offsets)), graph.out_targets.astype(np.int64)
