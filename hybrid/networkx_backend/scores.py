"""NetworkX's functions that give every vertex a number: centralities, PageRank, triangles and clustering, core numbers.

What is computed beyond the library is proven or repaired as well: never an unchecked number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph as Rows
from cpu_engine.pagerank.check_weighted import check_pagerank_weighted
from cpu_engine.pagerank.engine import pagerank as iterate
from cpu_engine.pagerank.weighted import pagerank_weighted
from cpu_engine.repair.engine import plain_clustering_weighted, plain_ranks
from cpu_engine.triangles.check_clustering_weighted import check_clustering_weighted
from cpu_engine.triangles.clustering_weighted import clustering_weighted
from hybrid.algorithms.algorithm import Check
from hybrid.api.graph import Graph
from hybrid.api.results import Result
from hybrid.job.proof import Claim, prove_claim
from hybrid.networkx_backend.conversion import as_asked
from hybrid.results.trace import Trace

Scores = dict[Any, Any]


def triangles(G: Graph, nodes: Any = None) -> Any:
    return of_nodes(G, G.triangles(), nodes)


def core_number(G: Graph) -> Scores:
    if getattr(G, "loops", 0):
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return G.k_core().to_dict()


def betweenness_centrality(
    G: Graph, k: None = None, normalized: bool = True, weight: None = None, endpoints: bool = False, seed: Any = None
) -> Scores:
    return G.betweenness(normalised=bool(normalized)).to_dict()


def closeness_centrality(G: Graph, u: Any = None, distance: None = None, wf_improved: bool = True) -> Any:
    if u is None:
        return G.closeness().to_dict()
    if not is_node(G, u):
        raise nx.NodeNotFound(f"Source {u} is not in G")
    return G.closeness(vertices=[u]).to_dict().get(u, 0.0)


def harmonic_centrality(G: Graph, nbunch: Any = None, distance: None = None, sources: None = None) -> Scores:
    if nbunch is None:
        return G.closeness(harmonic=True).to_dict()
    chosen = [nbunch] if is_node(G, nbunch) else [node for node in nbunch if is_node(G, node)]
    if not chosen:
        return {}
    found = G.closeness(harmonic=True, vertices=chosen).to_dict()
    return {node: found.get(node, 0.0) for node in dict.fromkeys(chosen)}


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


def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: Scores | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Scores | None = None,
    weight: str | None = "weight",
    dangling: Scores | None = None,
) -> Scores:
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
    vertices, limits = G.vertices.tolist(), {"damping": alpha, "tolerance": G.vertex_count * tol}
    even = np.full(len(vertices), 1 / len(vertices))
    teleport = even if personalization is None else _shares(vertices, personalization)
    lost = teleport if dangling is None else _shares(vertices, dangling)
    start = even if nstart is None else _shares(vertices, nstart)
    found = pagerank_weighted(rows, start, teleport, lost, **limits, iterations=max_iter)
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    rank = proven(
        "pagerank_weighted", rows, found.rank,
        lambda one: check_pagerank_weighted(rows, one, teleport, lost, **limits),
        lambda: plain_ranks(rows, start, teleport, lost, **limits, iterations=max_iter, weighted=True).rank,
        "Jacobi iterations",
    )  # fmt: skip
    return dict(zip(vertices, rank.tolist(), strict=True))


def _shares(vertices: list[Any], given: Scores) -> np.ndarray:
    """A vector that sums to 1; who is not mentioned has 0."""
    values = np.array([given.get(vertex, 0) for vertex in vertices], np.float64)
    if not np.isfinite(values).all() or values.min() < 0:
        raise NotImplementedError("Tandem takes finite shares of 0 or more only")
    total = values.sum()
    if total == 0:
        raise ZeroDivisionError
    shares: np.ndarray = values / total
    return shares


def proven(
    what: str,
    rows: Rows,
    found: np.ndarray,
    check: Callable[[np.ndarray], Check],
    recompute: Callable[[], np.ndarray],
    method: str,
) -> np.ndarray:
    """The array, or the one computed again by ``method``; NotCertified if neither passes the check."""
    claim = Claim(what, rows, check, lambda _: recompute(), method, lambda one: {what: one})
    return prove_claim(claim, found, Trace())[0]


def of_nodes(graph: Graph, found: Result | Scores, nodes: Any) -> Any:
    """Of all, of one, or of those among some that are in the graph - as NetworkX understands ``nodes``."""
    if nodes is None:
        return found if isinstance(found, dict) else found.to_dict()
    if is_node(graph, nodes):
        return found[nodes]
    return {node: found[node] for node in dict.fromkeys(nodes) if is_node(graph, node)}


def is_node(graph: Graph, node: Any) -> bool:
    try:
        graph.source(node)
    except (InputError, TypeError):
        return False
    return True
