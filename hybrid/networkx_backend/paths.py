"""NetworkX's functions about shortest paths. Lengths come in ascending order, as NetworkX finds them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import best_in_neighbours
from hybrid.api.graph import Graph
from hybrid.api.results import PathsResult

Lengths = dict[Any, Any]
Paths = dict[Any, list[Any]]
_SHORT = 2**15


class Reached:
    """The vertices within ``cutoff`` of a source, nearest first."""

    def __init__(self, found: PathsResult, cutoff: float | None = None) -> None:
        self.found = found
        inside = found.reached if cutoff is None else found.reached & (found.values <= max(cutoff, 0))
        at = np.flatnonzero(inside)
        far = found.values[at]
        if far.dtype.kind == "i" and far.max(initial=0) < _SHORT:
            far = far.astype(np.int16)  # which numpy sorts by digits
        self.order = at[np.argsort(far, kind="stable")]

    @cached_property
    def lengths(self) -> Lengths:
        found = self.found
        return dict(zip(found.vertex[self.order].tolist(), found.values[self.order].tolist(), strict=True))

    @cached_property
    def paths(self) -> Paths:
        """Each path is its parent's and one more: parents come first, but among equals."""
        found = self.found
        parent = dict(zip(found.vertex[self.order].tolist(), found.parent[self.order].tolist(), strict=True))
        paths: Paths = {found.source: [found.source]}
        for vertex in parent:
            waiting = [vertex]
            while waiting[-1] not in paths:
                waiting.append(parent[waiting[-1]])
            known = waiting.pop()
            while waiting:
                paths[waiting[-1]] = [*paths[known], waiting[-1]]
                known = waiting.pop()
        return {vertex: paths[vertex] for vertex in parent}


def require_node(graph: Graph, node: Any, message: str) -> None:
    """NetworkX's own error for a vertex that is not there."""
    try:
        graph.source(node)
    except InputError:
        raise nx.NodeNotFound(message) from None


def hops(graph: Graph, source: Any, cutoff: float | None = None) -> Reached:
    require_node(graph, source, f"Source {source} is not in G")
    return Reached(graph.bfs(source), cutoff)


def weighted(graph: Graph, source: Any, weight: str | None, cutoff: float | None = None) -> Reached:
    """By weight, or by edges where none is named: the graph may have one even so, of an earlier conversion."""
    require_node(graph, source, f"Node {source} not found in graph")
    if weight is None:
        return Reached(graph.bfs(source), cutoff)
    given = graph.rows.weight
    if given is not None and given.size and (given.min() < 0 or not np.isfinite(given).all()):
        raise NotImplementedError("Tandem takes finite weights of 0 or more only")
    return Reached(graph.sssp(source), cutoff)


def single_source_shortest_path_length(G: Graph, source: Any, cutoff: float | None = None) -> Lengths:
    return hops(G, source, cutoff).lengths


def single_target_shortest_path_length(G: Graph, target: Any, cutoff: float | None = None) -> Lengths:
    require_node(G, target, f"Target {target} is not in G")
    return hops(backwards(G), target, cutoff).lengths


def single_source_shortest_path(G: Graph, source: Any, cutoff: float | None = None) -> Paths:
    require_node(G, source, f"Source {source} not in G")
    return hops(G, source, cutoff).paths


def shortest_path_length(
    G: Graph, source: Any = None, target: Any = None, weight: str | None = None, method: str = "dijkstra"
) -> Any:
    reached = _between(G, source, target, weight)
    return reached.lengths if target is None else _at(reached.lengths, source, target)


def shortest_path(
    G: Graph, source: Any = None, target: Any = None, weight: str | None = None, method: str = "dijkstra"
) -> Any:
    reached = _between(G, source, target, weight)
    return reached.paths if target is None else _path(reached, source, target)


def has_path(G: Graph, source: Any, target: Any) -> bool:
    return target in _between(G, source, target, None).lengths


def descendants(G: Graph, source: Any) -> set[Any]:
    _require_for_sets(G, source)
    return set(hops(G, source).lengths) - {source}


def ancestors(G: Graph, source: Any) -> set[Any]:
    _require_for_sets(G, source)
    return set(hops(backwards(G), source).lengths) - {source}


def single_source_dijkstra_path_length(
    G: Graph, source: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Lengths:
    return weighted(G, source, weight, cutoff).lengths


def single_source_dijkstra_path(
    G: Graph, source: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Paths:
    return weighted(G, source, weight, cutoff).paths


def single_source_dijkstra(
    G: Graph, source: Any, target: Any = None, cutoff: float | None = None, weight: str | None = "weight"
) -> tuple[Any, Any]:
    reached = weighted(G, source, weight, cutoff)
    if target is None:
        return reached.lengths, reached.paths
    if target == source:
        return 0, [target]
    if target not in reached.lengths:
        raise nx.NetworkXNoPath(f"No path to {target}.")
    return reached.lengths[target], reached.found.path(target)


def dijkstra_path_length(G: Graph, source: Any, target: Any, weight: str | None = "weight") -> Any:
    return _at(weighted(G, source, weight).lengths, source, target)


def dijkstra_path(G: Graph, source: Any, target: Any, weight: str | None = "weight") -> list[Any]:
    return list(single_source_dijkstra(G, source, target, weight=weight)[1])


def bidirectional_dijkstra(G: Graph, source: Any, target: Any, weight: str | None = "weight") -> tuple[Any, list[Any]]:
    require_node(G, source, f"Source {source} is not in G")
    require_node(G, target, f"Target {target} is not in G")
    if source == target:
        return 0, [source]
    reached = weighted(G, source, weight)
    return _at(reached.lengths, source, target), reached.found.path(target)


def bidirectional_shortest_path(G: Graph, source: Any, target: Any) -> list[Any]:
    return _path(_between(G, source, target, None), source, target)


def single_source_bellman_ford_path_length(G: Graph, source: Any, weight: str | None = "weight") -> Lengths:
    return weighted(G, source, weight).lengths


def single_source_bellman_ford_path(G: Graph, source: Any, weight: str | None = "weight") -> Paths:
    return weighted(G, source, weight).paths


def single_source_bellman_ford(
    G: Graph, source: Any, target: Any = None, weight: str | None = "weight"
) -> tuple[Any, Any]:
    return single_source_dijkstra(G, source, target, weight=weight)


bellman_ford_path, bellman_ford_path_length = dijkstra_path, dijkstra_path_length


def descendants_at_distance(G: Graph, source: Any, distance: int) -> set[Any]:
    _require_for_sets(G, source)
    return {node for node, length in hops(G, source, distance).lengths.items() if length == distance}


def backwards(graph: Graph) -> Graph:
    """The same graph with its arcs turned round."""
    if not graph.directed:
        return graph
    if "_backwards" not in graph.__dict__:
        rows = graph.rows
        turned = replace(
            rows, out_offsets=rows.in_offsets, out_targets=rows.in_sources, in_offsets=rows.out_offsets,
            in_sources=rows.out_targets, weight=None,
            best_in=best_in_neighbours(rows.out_offsets, rows.out_targets),
        )  # fmt: skip
        graph.__dict__["_backwards"] = Graph(turned, names=graph.names, name=graph.name)
    found: Graph = graph.__dict__["_backwards"]
    return found


def _between(graph: Graph, source: Any, target: Any, weight: str | None) -> Reached:
    if target is not None:
        for end, what in ((source, "Source"), (target, "Target")):
            require_node(graph, end, f"{what} {end} is not in G")
    return hops(graph, source) if weight is None else weighted(graph, source, weight)


def _at(lengths: Lengths, source: Any, target: Any) -> Any:
    try:
        return lengths[target]
    except KeyError:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}") from None


def _path(reached: Reached, source: Any, target: Any) -> list[Any]:
    _at(reached.lengths, source, target)
    return reached.found.path(target)


def _require_for_sets(graph: Graph, node: Any) -> None:
    try:
        graph.source(node)
    except InputError:
        raise nx.NetworkXError(f"The node {node} is not in the graph.") from None
