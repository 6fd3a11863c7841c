"""NetworkX's functions about triangles as shares: clustering of every kind of graph, transitivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.repair.engine import plain_clustering_weighted
from cpu_engine.triangles.check_clustering_weighted import check_clustering_weighted
from cpu_engine.triangles.clustering_weighted import clustering_weighted
from hybrid.api.graph import Graph
from hybrid.networkx_backend.checked import proven
from hybrid.networkx_backend.conversion import as_asked
from hybrid.networkx_backend.scores import of_nodes


def clustering(G: Graph, nodes: Any = None, weight: str | None = None) -> Any:
    """Fagiolo's definition where the graph is directed, the geometric mean of weights where there are any."""
    if not G.directed and weight is None:
        return of_nodes(G, G.clustering(), nodes)
    rows = as_asked(G, weight)
    if rows.weight is not None and rows.m and not (np.isfinite(rows.weight).all() and rows.weight.max() > 0):
        raise NotImplementedError("Tandem takes finite weights with a largest one above 0 only")
    found = proven(
        "clustering", rows, clustering_weighted(rows).coefficient, lambda one: check_clustering_weighted(rows, one),
        lambda: plain_clustering_weighted(rows), "listing every triangle",
    )  # fmt: skip
    score = np.zeros(G.vertex_count)
    score[rows.user_position] = found
    return of_nodes(G, dict(zip(G.vertices.tolist(), score.tolist(), strict=True)), nodes)


def average_clustering(G: Graph, nodes: Any = None, weight: str | None = None, count_zeros: bool = True) -> float:
    scores: list[float] = list(clustering(G, None if nodes is None else list(nodes), weight).values())
    counted = scores if count_zeros else [score for score in scores if abs(score) > 0]
    return sum(counted) / len(counted)


def transitivity(G: Graph) -> float:
    corners = 2 * int(G.triangles().triangles.sum())
    rows = G.rows
    source = np.repeat(np.arange(rows.n), np.diff(rows.out_offsets))
    degree = np.bincount(source[source != rows.out_targets], minlength=rows.n)
    pairs = int((degree * (degree - 1)).sum())
    return 0 if corners == 0 else corners / pairs
