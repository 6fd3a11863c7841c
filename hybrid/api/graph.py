"""The graph as users hold it: counts, ids, and every algorithm as a method. Buffers are made once and used again."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph as Rows
from hybrid.api import algorithms
from hybrid.graphs.sources import Source
from hybrid.terminal import plural

if TYPE_CHECKING:
    from hybrid.algorithms.algorithm import Algorithm
    from hybrid.job.engines import Engine, SearchEngine


class Graph:
    """A graph in memory, ready for every algorithm.

    Make one with `hybrid.load`, `hybrid.generate` or `hybrid.from_edges`. Searches reuse its buffers, so the second
    ``graph.bfs(source)`` is much quicker than the first.

    Examples:
        >>> import hybrid
        >>> graph = hybrid.from_edges([("a", "b"), ("b", "c")], directed=False)
        >>> graph.vertex_count, graph.edge_count, graph.directed, graph.weighted
        (3, 2, False, False)
        >>> graph.vertices.tolist()
        ['a', 'b', 'c']
    """

    __networkx_backend__ = "tandem"  # networkx functions take it as it is (docs/how-to/networkx.md)

    def __init__(self, rows: Rows, *, names: np.ndarray | None = None, name: str = "") -> None:
        self.rows = rows  # in internal ids; read only
        self.names = names  # object[N], where the user's vertices are not whole numbers
        self.name = name

    bfs = algorithms.bfs
    sssp = algorithms.sssp
    components = algorithms.components
    strong_components = algorithms.strong_components
    pagerank = algorithms.pagerank
    personalised_pagerank = algorithms.personalised_pagerank
    label_propagation = algorithms.label_propagation
    louvain = algorithms.louvain
    k_core = algorithms.k_core
    triangles = algorithms.triangles
    clustering = algorithms.clustering
    closeness = algorithms.closeness
    betweenness = algorithms.betweenness

    @property
    def vertex_count(self) -> int:
        """All vertices, those without edges included."""
        return int(self.rows.user_ids.size)

    @property
    def edge_count(self) -> int:
        """Edges, or arcs if the graph is directed."""
        known = self.rows.meta.get("edges")
        return int(known) if known is not None else self.rows.m if self.directed else self.rows.m // 2

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.rows.directed

    @property
    def weighted(self) -> bool:
        """Whether edges have weights of their own."""
        return self.rows.weight is not None

    def is_directed(self) -> bool:
        """The same as ``directed``, for NetworkX."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Whether parallel edges were kept, for NetworkX."""
        return self.rows.meta.get("duplicates") == "keep"

    @cached_property
    def vertices(self) -> np.ndarray:
        """The user's vertices; every result's arrays are in this order."""
        return self.rows.user_ids if self.names is None else self.names[self.rows.user_ids]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a folder that `hybrid.load` opens at once; names cannot be kept there."""
        from cpu_engine.graph.store.graph_store import save_store

        if self.names is not None:
            raise InputError(
                "a stored graph has whole numbers for vertices", fix="number them, and keep the names apart"
            )
        save_store(self.rows, os.fspath(path))

    def source(self, vertex: Any) -> Source:
        """A vertex of the user's to start from; InputError if there is none of that name."""
        user_id = self.user_id(vertex)
        return Source(user_id, self.rows.internal_id(user_id))

    def user_id(self, vertex: Any) -> int:
        """The whole number that stands for a vertex: itself, or its name's."""
        if self.names is None:
            try:
                return int(vertex.__index__())
            except AttributeError:
                raise InputError(
                    "the graph's vertices are whole numbers", value=vertex, fix=f"for example {self._some()}"
                ) from None
        try:
            return self._number_of[vertex]
        except (KeyError, TypeError):
            raise InputError(f"vertex {vertex!r} is not in the graph", fix=f"for example {self._some()}") from None

    def named(self, user_ids: np.ndarray) -> np.ndarray:
        """The user's vertices for such numbers; None where it is -1."""
        if self.names is None:
            return user_ids
        result: np.ndarray = self.names[user_ids]
        result[user_ids < 0] = None
        return result

    def engine(self, algorithm: Algorithm) -> Engine:
        """What runs the algorithm on this graph."""
        from hybrid.job.engines import PlainEngine

        return self.searcher if algorithm.name == "bfs" and self.rows.n else PlainEngine(algorithm)

    @cached_property
    def searcher(self) -> SearchEngine:
        """The BFS engine on this graph, with its buffers."""
        from cpu_engine.bfs.traversal import CoreSplit
        from hybrid.job.engines import SearchEngine

        return SearchEngine(CoreSplit(self.rows), "async")

    @cached_property
    def _number_of(self) -> dict[Any, int]:
        assert self.names is not None
        return {name: number for number, name in enumerate(self.names.tolist())}

    def _some(self) -> str:
        return repr(self.vertices[:1].tolist()[0]) if self.vertex_count else "nothing: it has no vertices"

    def __repr__(self) -> str:
        called = f"{self.name}: " if self.name else ""
        kind = ("directed" if self.directed else "undirected") + (", weighted" if self.weighted else "")
        return f"Graph({called}{plural(self.vertex_count, 'vertex')}, {plural(self.edge_count, 'edge')}, {kind})"
