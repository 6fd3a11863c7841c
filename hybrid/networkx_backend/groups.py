"""NetworkX's functions about components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from cpu_engine.components.kernels.condensation import order_components_step
from hybrid.api.graph import Graph
from hybrid.api.results import ComponentsResult
from hybrid.networkx_backend.paths import hops


def connected_components(G: Graph) -> Iterator[set[Any]]:
    return (set(group) for group in G.components().groups())


def number_connected_components(G: Graph) -> int:
    return G.components().count


def is_connected(G: Graph) -> bool:
    return _is_one(G, G.components())


def node_connected_component(G: Graph, n: Any) -> set[Any]:
    return set(hops(G, n).lengths)


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected


def strongly_connected_components(G: Graph) -> Iterator[set[Any]]:
    """A component comes before those that reach it, as in NetworkX, whose ``condensation`` builds on that."""
    rows, found = G.rows, G.strong_components()
    named, inner = np.unique(found.component_ids[rows.user_position], return_inverse=True)
    member = np.argsort(inner, kind="stable")
    begin = np.searchsorted(inner[member], np.arange(named.size + 1))
    order = np.empty(named.size, np.int64)
    if rows.n:
        order_components_step(
            rows.out_offsets, rows.out_targets, rows.in_offsets, rows.in_sources, inner.astype(np.int64), member, begin,
            np.zeros(named.size, np.int64), order,
        )  # fmt: skip
    place = rows.user_position[member]
    for k in order.tolist():
        yield set(G.vertices[place[begin[k] : begin[k + 1]]].tolist())
    for vertex in G.vertices[rows.internal_of_position < 0].tolist():
        yield {vertex}


def number_strongly_connected_components(G: Graph) -> int:
    return G.strong_components().count


def is_strongly_connected(G: Graph) -> bool:
    return _is_one(G, G.strong_components())


def _is_one(graph: Graph, found: ComponentsResult) -> bool:
    if not graph.vertex_count:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return found.count == 1
