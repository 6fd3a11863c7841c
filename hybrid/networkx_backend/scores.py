"""NetworkX's functions that give every vertex a number: ranks, centralities, triangles, core numbers."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from cpu_engine.errors import InputError
from hybrid.api.graph import Graph
from hybrid.api.results import Result

Scores = dict[Any, Any]


def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: None = None,
    weight: str | None = "weight",
    dangling: None = None,
) -> Scores:
    """As often as NetworkX would iterate: until the ranks together change by less than ``len(G) * tol``."""
    from cpu_engine.algorithms.pagerank import pagerank as iterate

    if not G.vertex_count:
        return {}
    weights = G.rows.weight
    if weights is not None and weights.size and (weights.min() != weights.max() or weights.min() <= 0):
        raise NotImplementedError("Tandem's PageRank does not look at weights, and these differ")
    if not 0 <= alpha < 1:
        raise NotImplementedError("Tandem's PageRank takes an alpha below 1")
    tried = iterate(G.rows, damping=alpha, tolerance=G.vertex_count * tol, iterations=max_iter)
    if not tried.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return G.pagerank(damping=alpha, iterations=tried.iterations).to_dict()


def triangles(G: Graph, nodes: Any = None) -> Any:
    return _of_nodes(G, G.triangles(), nodes)


def clustering(G: Graph, nodes: Any = None, weight: None = None) -> Any:
    return _of_nodes(G, G.clustering(), nodes)


def average_clustering(G: Graph, nodes: Any = None, weight: None = None, count_zeros: bool = True) -> float:
    scores: list[float] = list(_of_nodes(G, G.clustering(), None if nodes is None else list(nodes)).values())
    counted = scores if count_zeros else [score for score in scores if abs(score) > 0]
    return sum(counted) / len(counted)


def transitivity(G: Graph) -> float:
    corners = 2 * int(G.triangles().triangles.sum())
    rows = G.rows
    source = np.repeat(np.arange(rows.n), np.diff(rows.out_offsets))
    degree = np.bincount(source[source != rows.out_targets], minlength=rows.n)
    pairs = int((degree * (degree - 1)).sum())
    return 0 if corners == 0 else corners / pairs


def core_number(G: Graph) -> Scores:
    if getattr(G, "loops", 0):
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return G.k_core().to_dict()


def betweenness_centrality(
    G: Graph,
    k: None = None,
    normalized: bool = True,
    weight: None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> Scores:
    return G.betweenness(normalised=bool(normalized)).to_dict()


def closeness_centrality(G: Graph, u: Any = None, distance: None = None, wf_improved: bool = True) -> Any:
    if u is None:
        return G.closeness().to_dict()
    return G.closeness(vertices=[u]).to_dict().get(u, 0.0)


def harmonic_centrality(G: Graph, nbunch: Any = None, distance: None = None, sources: None = None) -> Scores:
    if nbunch is None:
        return G.closeness(harmonic=True).to_dict()
    chosen = [nbunch] if _is_node(G, nbunch) else [node for node in nbunch if _is_node(G, node)]
    found = G.closeness(harmonic=True, vertices=chosen).to_dict()
    return {node: found.get(node, 0.0) for node in dict.fromkeys(chosen)}


def _of_nodes(graph: Graph, found: Result, nodes: Any) -> Any:
    """Of all, of one, or of those among some that are in the graph - as NetworkX understands ``nodes``."""
    if nodes is None:
        return found.to_dict()
    if _is_node(graph, nodes):
        return found[nodes]
    return {node: found[node] for node in dict.fromkeys(nodes) if _is_node(graph, node)}


def _is_node(graph: Graph, node: Any) -> bool:
    try:
        graph.source(node)
    except (InputError, TypeError):
        return False
    return True
