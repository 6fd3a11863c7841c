"""NetworkX graphs to Tandem's and back. NetworkX keeps what was converted with the graph, until that changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.graph import Graph as Rows
from hybrid.api.edges import Named, edges_of_networkx
from hybrid.api.graph import Graph


class ConvertedGraph(Graph):
    """A graph that came from NetworkX; loops are kept, of parallel edges the one of least weight."""

    def __init__(self, rows: Rows, named: Named, *, multigraph: bool, loops: int) -> None:
        super().__init__(rows, names=named.names, name=named.edges.path)
        self.multigraph, self.loops = multigraph, loops
        if named.numbers is not None:
            self.__dict__["_number_of"] = named.numbers  # found out once

    def is_multigraph(self) -> bool:
        return self.multigraph


def convert_from_nx(
    graph: Any, *, edge_attrs: dict[str, Any] | None = None, graph_name: str | None = None, **preserve: Any
) -> Graph:
    """A NetworkX graph with the one attribute of edges that is asked for.

    NotImplementedError for weights that are no numbers: NetworkX then does it by itself.
    """
    if isinstance(graph, Graph):
        return graph
    weight, default = next(iter(edge_attrs.items())) if edge_attrs else (None, 1)
    try:
        named = edges_of_networkx(graph, weight, 1 if default is None else default)
        loops = int(np.count_nonzero(named.edges.src == named.edges.dst))
        rows = build_graph(named.edges, self_loops="keep", consume=True)
    except (InputError, TypeError, ValueError) as error:
        raise NotImplementedError(f"Tandem cannot take this graph: {error}") from error
    return ConvertedGraph(rows, named, multigraph=bool(graph.is_multigraph()), loops=loops)


def as_asked(graph: Graph, weight: str | None) -> Rows:
    """The graph's rows, without weights where none are asked for: NetworkX may hand over an earlier conversion."""
    return graph.rows if weight is not None or graph.rows.weight is None else replace(graph.rows, weight=None)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """A graph as NetworkX has it, with weights; anything else as it is."""
    if not isinstance(result, Graph):
        return result
    rows = result.rows
    graph = nx.DiGraph() if result.directed else nx.Graph()
    vertices = result.vertices.tolist()
    graph.add_nodes_from(vertices)
    source = rows.user_position[np.repeat(np.arange(rows.n), np.diff(rows.out_offsets))].tolist()
    target = rows.user_position[rows.out_targets].tolist()
    ends = [(vertices[u], vertices[v]) for u, v in zip(source, target, strict=True)]
    if rows.weight is None:
        graph.add_edges_from(ends)
    else:
        weighted = zip(ends, rows.weight.tolist(), strict=True)
        graph.add_weighted_edges_from((u, v, weight) for (u, v), weight in weighted)
    return graph
