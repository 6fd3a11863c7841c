"""What a right answer is, for ``bench soak``: each graph and all twelve algorithms in plain SciPy and NumPy.

Shares nothing with the engines: graphs are made from edge lists in the user's ids, every value is found by another
method or by the definition itself. Invariant: a reference does not change once made; threads only read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

Arrays = dict[str, np.ndarray]


class Reference:
    """One graph; vertices are positions in ``ids``, which ascend."""

    def __init__(
        self, name: str, ids: np.ndarray, src: np.ndarray, dst: np.ndarray, weight: np.ndarray | None, *, directed: bool
    ) -> None:  # fmt: skip
        self.name, self.ids, self.directed = name, np.asarray(ids, np.int64), directed
        self.weighted = weight is not None
        a, b = np.searchsorted(self.ids, src), np.searchsorted(self.ids, dst)
        cost = np.ones(a.size, np.int64) if weight is None else np.asarray(weight, np.int64)
        if not directed:
            a, b, cost = np.concatenate((a, b)), np.concatenate((b, a)), np.concatenate((cost, cost))
        kept = a != b
        a, b, cost = a[kept], b[kept], cost[kept]
        order = np.lexsort((cost, b, a))  # of parallel arcs, the lightest comes first
        key = (a * self.n + b)[order]
        self.arcs, first = np.unique(key, return_index=True)
        self.cost_of = cost[order][first]
        self.tail, self.head = self.arcs // self.n, self.arcs % self.n
        self.near = self._matrix(np.ones(self.arcs.size))
        self.far = self._matrix(self.cost_of.astype(float))
        self.joined = ((self.near + self.near.T) > 0).astype(np.float64)  # in either direction
        self._lock = threading.RLock()
        self._hops: dict[int, np.ndarray] = {}
        self._costs: dict[int, np.ndarray] = {}
        self._found: dict[tuple[object, ...], Arrays] = {}

    @property
    def n(self) -> int:
        return int(self.ids.size)

    def _matrix(self, values: np.ndarray) -> csr_matrix:
        return csr_matrix((values, (self.tail, self.head)), shape=(self.n, self.n))

    def position(self, vertex: int) -> int:
        return int(np.searchsorted(self.ids, vertex))

    def hops(self, vertex: int) -> np.ndarray:
        """Edges from a vertex to each, -1 = not reached."""
        return self._distances(self._hops, self.near, vertex)

    def costs(self, vertex: int) -> np.ndarray:
        """The same by weight."""
        return self._distances(self._costs, self.far, vertex)

    def _distances(self, known: dict[int, np.ndarray], arcs: csr_matrix, vertex: int) -> np.ndarray:
        with self._lock:
            if vertex not in known:
                found = dijkstra(arcs, indices=self.position(vertex))
                known[vertex] = np.where(np.isfinite(found), found, -1).astype(np.int64)
            return known[vertex]

    def cost(self, tail: np.ndarray, head: np.ndarray) -> np.ndarray:
        """Weights of arcs; -1 where there is none."""
        at = np.searchsorted(self.arcs, tail * self.n + head)
        at[at == self.arcs.size] = 0
        there = self.arcs[at] == tail * self.n + head
        return np.where(there, self.cost_of[at], -1)

    def expected(self, algorithm: str, options: dict[str, Any]) -> Arrays:
        """The arrays of an algorithm without source, by position; made once."""
        key = (algorithm, *sorted((name, str(value)) for name, value in options.items() if "." in name))
        with self._lock:
            if key not in self._found:
                self._found[key] = MAKERS[algorithm](self, options)
            return self._found[key]


def _labels(reference: Reference, connection: str) -> np.ndarray:
    """Each vertex's component, called after its smallest id."""
    _, group = connected_components(reference.near, directed=True, connection=connection)
    _, first = np.unique(group, return_index=True)
    return reference.ids[first[group]]


def _wcc(reference: Reference, options: dict[str, Any]) -> Arrays:
    return {"component": _labels(reference, "weak")}


def _scc(reference: Reference, options: dict[str, Any]) -> Arrays:
    return {"component": _labels(reference, "strong")}


def push_rank(reference: Reference, rank: np.ndarray, damping: float, *, spread: bool) -> np.ndarray:
    """One iteration of PageRank, by its definition."""
    degree = np.diff(reference.near.indptr)
    given = reference.near.T @ np.divide(rank, degree, out=np.zeros_like(rank), where=degree > 0)
    lost = rank[degree == 0].sum() if spread else 0.0
    pushed: np.ndarray = (1 - damping) / rank.size + damping * (given + lost / rank.size)
    return pushed


def _pagerank(reference: Reference, options: dict[str, Any]) -> Arrays:
    damping = options.get("pagerank.damping", 0.85)
    spread = options.get("pagerank.definition", "ldbc") == "ldbc"
    rank = np.full(reference.n, 1 / reference.n)
    for _ in range(options.get("pagerank.iterations", 10) if spread else 200):
        rank = push_rank(reference, rank, damping, spread=spread)
    return {"rank": rank}


def _cdlp(reference: Reference, options: dict[str, Any]) -> Arrays:
    label = reference.ids.copy()
    to, about = reference.tail, reference.head
    if reference.directed:
        to, about = np.concatenate((to, reference.head)), np.concatenate((about, reference.tail))
    for _ in range(options.get("cdlp.iterations", 10)):
        order = np.lexsort((label[about], to))
        pair = np.stack((to[order], label[about][order]))
        starts = np.flatnonzero(np.any(pair[:, 1:] != pair[:, :-1], axis=0)) + 1
        starts = np.concatenate(([0], starts))
        times = np.diff(np.append(starts, pair.shape[1]))
        vertex, name = pair[0, starts], pair[1, starts]
        best = np.lexsort((name, -times, vertex))  # the most frequent, of these the smallest
        _, first = np.unique(vertex[best], return_index=True)
        label = label.copy()
        label[vertex[best][first]] = name[best][first]
    return {"community": label}


def _kcore(reference: Reference, options: dict[str, Any]) -> Arrays:
    core, left = np.zeros(reference.n, np.int64), np.ones(reference.n, bool)
    k = 0
    while left.any():
        degree = reference.joined @ left
        gone = left & (degree <= k)
        core[gone] = k
        left &= ~gone
        k += not gone.any()
    return {"core": core}


def _triangles(reference: Reference, options: dict[str, Any]) -> Arrays:
    both = reference.joined
    corners = np.asarray((both @ both).multiply(both).sum(axis=1)).ravel() / 2
    return {"triangles": np.rint(corners).astype(np.int64)}


def _lcc(reference: Reference, options: dict[str, Any]) -> Arrays:
    both = reference.joined
    arcs = np.asarray((both @ reference.near).multiply(both).sum(axis=1)).ravel()
    degree = np.diff(both.indptr).astype(float)
    pairs = degree * (degree - 1)
    return {"coefficient": np.divide(arcs, pairs, out=np.zeros_like(arcs), where=pairs > 0)}


def _closeness(reference: Reference, options: dict[str, Any]) -> Arrays:
    """Wasserman and Faust's, over incoming paths; of those that were asked for, else -1."""
    wanted = options.get("centrality.sources", "all")
    asked = np.arange(reference.n) if wanted == "all" else np.searchsorted(reference.ids, wanted)
    distance = dijkstra(reference.near.T.tocsr(), indices=asked)
    others = np.isfinite(distance) & (distance > 0)
    score = np.full(reference.n, -1.0)
    if options.get("centrality.harmonic", False):
        score[asked] = np.divide(1, distance, out=np.zeros_like(distance), where=others).sum(axis=1)
    else:
        reached, farness = others.sum(axis=1), np.where(others, distance, 0).sum(axis=1)
        score[asked] = reached / np.maximum(farness, 1) * reached / (reference.n - 1)
    return {"closeness": score}


def _betweenness(reference: Reference, options: dict[str, Any]) -> Arrays:
    """Brandes' sums, level by level; from those that were asked for, as an estimate."""
    roots = options["centrality.sources"]
    score = np.zeros(reference.n)
    for root in roots:
        level = reference.hops(root)
        paths = (level == 0).astype(float)
        for depth in range(1, int(level.max()) + 1):
            paths += np.where(level == depth, reference.near.T @ np.where(level == depth - 1, paths, 0), 0)
        share = np.zeros(reference.n)
        for depth in range(int(level.max()), 0, -1):
            deeper = np.divide(1 + share, paths, out=np.zeros_like(share), where=level == depth)
            share += np.where(level == depth - 1, paths * (reference.near @ deeper), 0)
        score += np.where(level > 0, share, 0)
    with_edges = np.count_nonzero(np.diff(reference.joined.indptr))
    score *= with_edges / len(roots)
    if options.get("centrality.normalised", True):
        score /= (reference.n - 1) * (reference.n - 2)
    elif not reference.directed:
        score /= 2
    return {"betweenness": score}


def modularity(reference: Reference, group: np.ndarray, resolution: float) -> float:
    """Of communities, by the definition; u -> v and v -> u add up in a directed graph."""
    _, group = np.unique(group, return_inverse=True)
    heavy = reference.cost_of.astype(float) * (2 if reference.directed else 1)
    inside = heavy[group[reference.tail] == group[reference.head]].sum()
    ends = np.bincount(group[reference.tail], heavy / 2) + np.bincount(group[reference.head], heavy / 2)
    return float(inside / heavy.sum() - resolution * np.square(ends / heavy.sum()).sum())


MAKERS: dict[str, Callable[[Reference, dict[str, Any]], Arrays]] = {
    "wcc": _wcc, "scc": _scc, "pagerank": _pagerank, "cdlp": _cdlp, "kcore": _kcore, "triangles": _triangles,
    "lcc": _lcc, "closeness": _closeness, "betweenness": _betweenness,
}  # fmt: skip
