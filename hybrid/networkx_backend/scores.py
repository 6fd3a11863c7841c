"""NetworkX's functions that give every vertex a number: centralities, triangles, core numbers."""

from __future__ import annotations

from typing import Any

import networkx as nx

from cpu_engine.errors import InputError
from hybrid.api.graph import Graph
from hybrid.api.results import Result

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
