"""NetworkX's functions about the distances between all vertices, by searches from 64 of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs
from hybrid.api.graph import Graph
from hybrid.job.proof import prove_levels
from hybrid.networkx_backend.paths import Lengths, weighted
from hybrid.networkx_backend.scores import is_node
from hybrid.results.trace import Trace


def eccentricity(G: Graph, v: Any = None, sp: None = None, weight: None = None) -> Any:
    if v is not None and is_node(G, v):
        return int(_farthest(G, [v])[0])
    try:
        chosen = G.vertices.tolist() if v is None else [node for node in v if is_node(G, node)]
    except TypeError:
        raise nx.NetworkXError(f"Node {v} is not in the graph.") from None
    return dict(zip(chosen, _farthest(G, chosen).tolist(), strict=True))


def diameter(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    return int(_of_all(G).max())


def radius(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    return int(_of_all(G).min())


def periphery(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    far = _of_all(G)
    return list(G.vertices[far == far.max()].tolist())


def center(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    far = _of_all(G)
    return list(G.vertices[far == far.min()].tolist())


def average_shortest_path_length(G: Graph, weight: None = None, method: None = None) -> float:
    count = G.vertex_count
    if count == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if count == 1:
        return 0
    if G.rows.n < count:
        raise _not_connected(G)
    total = 0
    for level in _levels(G, np.arange(count)):
        if level.min() < 0:
            raise _not_connected(G)
        total += int(level.sum(dtype=np.int64))
    return total / (count * (count - 1))


def all_pairs_shortest_path_length(G: Graph, cutoff: float | None = None) -> Iterator[tuple[Any, Lengths]]:
    most, vertices = np.inf if cutoff is None else max(cutoff, 0), G.vertices.tolist()
    names = G.vertices[G.rows.user_position]
    sources = iter(G.rows.internal_of_position.tolist())
    for node, level in zip(vertices, _levels_or_alone(G, sources), strict=True):
        if level is None:
            yield node, {node: 0}
            continue
        at = np.flatnonzero((level >= 0) & (level <= most))
        at = at[np.argsort(level[at], kind="stable")]
        yield node, dict(zip(names[at].tolist(), level[at].tolist(), strict=True))


def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[tuple[Any, Lengths]]:
    for node in G.vertices.tolist():
        yield node, weighted(G, node, weight, cutoff).lengths


def _levels_or_alone(graph: Graph, sources: Iterator[int]) -> Iterator[np.ndarray | None]:
    """Levels from each internal id, None where it is -1."""
    listed = list(sources)
    searched = (row for some in _levels(graph, np.array([s for s in listed if s >= 0], np.int64)) for row in some)
    for source in listed:
        yield None if source < 0 else next(searched)


def _levels(graph: Graph, roots: np.ndarray) -> Iterator[np.ndarray]:
    """Checked levels by [root, vertex], of 64 roots at a time."""
    if not roots.size:
        return
    engine = ManyBfs(graph.rows)
    for first in range(0, roots.size, ROOTS_PER_PASS):
        some = roots[first : first + ROOTS_PER_PASS]
        yield prove_levels(graph.rows, some, engine.run(some), Trace())[0].level


def _of_all(graph: Graph) -> np.ndarray:
    return _farthest(graph, graph.vertices.tolist())


def _farthest(graph: Graph, nodes: list[Any]) -> np.ndarray:
    """The largest distance from each node; NetworkX's error if one cannot reach all."""
    if graph.vertex_count == 1:
        return np.zeros(len(nodes), np.int64)
    roots = np.array([graph.source(node).internal for node in nodes], np.int64)
    if graph.rows.n < graph.vertex_count and roots.size:
        raise _endless(graph)
    far = []
    for level in _levels(graph, roots):
        if level.min() < 0:
            raise _endless(graph)
        far.append(level.max(axis=1).astype(np.int64))
    return np.concatenate(far) if far else np.empty(0, np.int64)


def _endless(graph: Graph) -> nx.NetworkXError:
    what = "digraph is not strongly connected" if graph.directed else "graph is not connected"
    return nx.NetworkXError(f"Found infinite path length because the {what}")


def _not_connected(graph: Graph) -> nx.NetworkXError:
    return nx.NetworkXError("Graph is not strongly connected." if graph.directed else "Graph is not connected.")
