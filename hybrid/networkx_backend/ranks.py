"""NetworkX's PageRank, with everything that it takes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from cpu_engine.graph.graph import Graph as Rows
from cpu_engine.pagerank.check_weighted import check_pagerank_weighted
from cpu_engine.pagerank.engine import pagerank as iterate
from cpu_engine.pagerank.weighted import pagerank_weighted
from cpu_engine.repair.engine import plain_ranks
from hybrid.api.graph import Graph
from hybrid.networkx_backend.checked import proven
from hybrid.networkx_backend.conversion import as_asked

Ranks = dict[Any, float]


def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: Ranks | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Ranks | None = None,
    weight: str | None = "weight",
    dangling: Ranks | None = None,
) -> Ranks:
    """As often as NetworkX would iterate: until the ranks together change by less than ``len(G) * tol``."""
    if not G.vertex_count:
        return {}
    rows = as_asked(G, weight)
    weights = rows.weight
    if weights is not None and weights.size and not (np.isfinite(weights).all() and weights.min() >= 0):
        raise NotImplementedError("Tandem takes finite weights of 0 or more only")
    if not 0 <= alpha <= 1:
        raise NotImplementedError("Tandem's PageRank takes an alpha from 0 to 1")
    equal = weights is None or not weights.size or weights.min() == weights.max() > 0
    if equal and alpha < 1 and personalization is nstart is dangling is None:
        tried = iterate(G.rows, damping=alpha, tolerance=G.vertex_count * tol, iterations=max_iter)
        if not tried.converged:
            raise nx.PowerIterationFailedConvergence(max_iter)
        return G.pagerank(damping=alpha, iterations=tried.iterations).to_dict()
    return _weighted(G, rows, alpha, personalization, max_iter, G.vertex_count * tol, nstart, dangling)


def _weighted(
    graph: Graph,
    rows: Rows,
    alpha: float,
    personalization: Ranks | None,
    max_iter: int,
    tolerance: float,
    nstart: Ranks | None,
    dangling: Ranks | None,
) -> Ranks:
    vertices = graph.vertices.tolist()
    even = np.full(len(vertices), 1 / len(vertices))
    teleport = even if personalization is None else _shares(vertices, personalization)
    lost = teleport if dangling is None else _shares(vertices, dangling)
    start = even if nstart is None else _shares(vertices, nstart)
    found = pagerank_weighted(rows, start, teleport, lost, damping=alpha, tolerance=tolerance, iterations=max_iter)
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    rank = proven(
        "pagerank_weighted", rows, found.rank,
        lambda one: check_pagerank_weighted(rows, one, teleport, lost, damping=alpha, tolerance=tolerance),
        lambda: plain_ranks(
            rows, start, teleport, lost, damping=alpha, tolerance=tolerance, iterations=max_iter, weighted=True
        ).rank,
        "Jacobi iterations",
    )  # fmt: skip
    return dict(zip(vertices, rank.tolist(), strict=True))


def _shares(vertices: list[Any], given: Ranks) -> np.ndarray:
    """A vector that sums to 1; who is not mentioned has 0."""
    values = np.array([given.get(vertex, 0) for vertex in vertices], np.float64)
    if not np.isfinite(values).all() or values.min() < 0:
        raise NotImplementedError("Tandem takes finite shares of 0 or more only")
    total = values.sum()
    if total == 0:
        raise ZeroDivisionError
    shares: np.ndarray = values / total
    return shares
