"""Graphs from anywhere: a file, a generator, arrays, matrices, tables, NetworkX; and ``as_graph``, which takes any."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph as Rows
from hybrid.api import edges as reading
from hybrid.api.algorithms import GraphLike
from hybrid.api.graph import Graph
from hybrid.api.options import configured
from hybrid.config.schema import Rule


def load(
    path: str | os.PathLike[str],
    *,
    directed: bool | None = None,
    format: str = "auto",
    self_loops: Rule = "drop",
    duplicates: Rule = "drop",
    cache: bool = True,
) -> Graph:
    """Open a graph file in any known format, several that are one graph, or a stored graph.

    The built graph is kept, so the next time it opens in milliseconds (``cache=False``: it is not).

    Args:
        path: an edge list, Matrix Market, .gr, .sg, METIS, LDBC or Graph500 file, or the folder of a stored graph;
            or a folder of part files, or a pattern such as "edges/*.txt.gz".
        directed: None is what the file says, and directed if it says nothing.
        format: how to read the file; "auto" looks at its content.
        self_loops: "drop" or "keep" edges from a vertex to itself.
        duplicates: "drop" or "keep" repeated edges; of weights the least stays.
        cache: keep what was built.

    Examples:
        >>> import hybrid
        >>> hybrid.load("examples/karate.el", directed=False)
        Graph(karate.el: 34 vertices, 78 edges, undirected)
    """
    from hybrid.graphs.opening import open_graph
    from hybrid.results.trace import Trace

    options = {
        "path": os.fspath(path), "format": format, "directed": "auto" if directed is None else directed,
        "self_loops": self_loops, "duplicates": duplicates, "cache": cache,
    }  # fmt: skip
    config = configured("bfs", {f"graph.{name}": value for name, value in options.items()})
    opened = open_graph(config.graph, Trace())
    return Graph(opened.graph, name=opened.name)


def generate(
    kind: str = "kronecker",
    *,
    scale: int = 16,
    edge_factor: int = 16,
    seed: int = 1,
    rows: int = 256,
    cols: int = 256,
    weights: tuple[int, int] | None = None,
) -> Graph:
    """Make an undirected graph that is the same on every machine.

    Args:
        kind: "kronecker" (power law, as Graph500 has it), "uniform" or "grid".
        scale: log2 of the number of vertices (kronecker, uniform).
        edge_factor: edges per vertex (kronecker, uniform).
        seed: another seed, another graph.
        rows: of the grid, whose vertex (r, c) has id r * cols + c.
        cols: of the grid.
        weights: (least, most) of whole weights drawn evenly; None is no weights.

    Examples:
        >>> import hybrid
        >>> hybrid.generate("grid", rows=3, cols=4)
        Graph(grid-3x4: 12 vertices, 17 edges, undirected)
    """
    from hybrid.graphs.opening import generate_edges, generator_name, require_room_for

    options = {"kind": kind, "scale": scale, "edge_factor": edge_factor, "seed": seed, "rows": rows, "cols": cols}
    graph = configured("bfs", {f"graph.generator.{name}": value for name, value in options.items()}).graph
    require_room_for(graph, weighted=weights is not None)
    config = graph.generator
    made = generate_edges(config)
    if weights is not None:
        least, most = weights
        if not 0 <= least <= most:
            raise InputError("weights are drawn from (least, most)", value=weights, fix="give (1, 255), for example")
        drawn = np.random.default_rng(seed).integers(least, most + 1, made.edge_count)
        made = EdgeList(
            made.src, made.dst, drawn, id_range=made.id_range, directed=False, format=made.format, path=made.path
        )
    return Graph(build_graph(made, consume=True), name=generator_name(config))


def from_edges(
    source: Any,
    target: Any = None,
    weight: Any = None,
    *,
    directed: bool | None = None,
    vertices: Any = None,
    columns: Sequence[str] | None = None,
    self_loops: Rule = "drop",
    duplicates: Rule = "drop",
) -> Graph:
    """Build a graph from edges in memory.

    Args:
        source: one end of every edge; or all edges together - a tuple (source, target) or (source, target, weight) of
            arrays, an array of two or three columns, a list of pairs or triples, a table of pandas, polars or
            pyarrow, a scipy sparse matrix, a NetworkX graph. Whole numbers from 0 on are kept as ids, anything else
            hashable is a name.
        target: the other end of every edge.
        weight: a number per edge. Whole ones stay whole.
        directed: None is what the input says, and directed if it says nothing, as edges and matrices do.
        vertices: further vertices, which may have no edges.
        columns: of a table, those of the ends, and perhaps of the weights; otherwise the first two, and "weight".
        self_loops: "drop" or "keep" edges from a vertex to itself.
        duplicates: "drop" or "keep" repeated edges; of weights the least stays.

    Examples:
        >>> import hybrid
        >>> hybrid.from_edges([0, 0, 1], [1, 2, 2], directed=False)
        Graph(arrays: 3 vertices, 3 edges, undirected)
        >>> hybrid.from_edges([("Rome", "Pisa"), ("Pisa", "Turin")]).bfs("Rome").to_dict()
        {'Rome': 0, 'Pisa': 1, 'Turin': 2}
    """
    if target is None and reading.is_columns(source):
        if weight is not None and len(source) == 3:
            raise InputError("there are weights in the tuple and beside it", fix="leave out one of them")
        source, target, weight = (*source, weight)[:3]
    if target is not None:
        named = reading.edges_of_arrays(source, target, weight, directed=directed, vertices=vertices)
    else:
        if weight is not None or vertices is not None:
            raise InputError("weight and vertices go with two arrays of ends", fix="give source and target apart")
        named = _edges_of(source, directed, columns)
    built = build_graph(named.edges, directed=directed, self_loops=self_loops, duplicates=duplicates)
    return Graph(built, names=named.names, name=named.edges.path or named.edges.format)


def as_graph(given: GraphLike) -> Graph:
    """The graph that ``given`` is, or describes; InputError says what can be given."""
    if isinstance(given, Graph):
        return given
    if isinstance(given, Rows):
        return Graph(given, name=str(given.meta.get("path") or given.meta.get("format") or ""))
    if isinstance(given, str | os.PathLike):
        return load(given)
    return from_edges(given)


def of_anything(algorithm: Callable[..., Any]) -> Callable[..., Any]:
    """An algorithm that takes anything that is a graph: ``hybrid.NAME``."""

    @wraps(algorithm)
    def run(graph: GraphLike, *args: Any, **options: Any) -> Any:
        return algorithm(as_graph(graph), *args, **options)

    run.__module__ = "hybrid"  # where pickle finds it
    return run


def _edges_of(given: Any, directed: bool | None, columns: Sequence[str] | None) -> reading.Named:
    if reading.is_networkx(given):
        if directed not in (None, bool(given.is_directed())):
            raise InputError(
                f"the graph is {'directed' if given.is_directed() else 'undirected'}",
                value=directed,
                fix="use its to_directed() or to_undirected() first",
            )
        return reading.edges_of_networkx(given)
    if reading.is_matrix(given):
        return reading.edges_of_matrix(given, directed=directed)
    if reading.is_table(given):
        return reading.edges_of_table(given, columns, directed=directed)
    if isinstance(given, np.ndarray):
        return reading.edges_of_rows(given, directed=directed)
    if isinstance(given, str | Path):
        raise InputError("a path is opened by load", value=str(given), fix="hybrid.load(path)")
    try:
        ends = [tuple(edge) for edge in given]
    except TypeError:
        ends = []
    widths = {len(edge) for edge in ends}
    if len(widths) != 1 or widths - {2, 3}:
        raise InputError(
            "this is no graph",
            value=type(given).__name__,
            fix="give a path, a Graph, a tuple of arrays (source, target), a list of (u, v) pairs, a sparse matrix, a "
            "table or a NetworkX graph",
        )
    return reading.edges_of_arrays(*map(list, zip(*ends, strict=True)), directed=directed)
