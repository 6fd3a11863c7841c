"""One door to all readers: name the format or have it sniffed.

Invariant: an EdgeList or an InputError, never a half-read graph.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import adjacency, dimacs, edge_list, galois, gap, graph500, ldbc, matrix_market, metis
from cpu_engine.graph.formats.bounds import current_bounds
from cpu_engine.graph.formats.sniffing import sniff
from cpu_engine.graph.formats.source import Progress, check_file

AUTO = "auto"
READERS: dict[str, Callable[[Path, Progress | None], EdgeList]] = {
    edge_list.NAME: edge_list.read,
    adjacency.NAME: adjacency.read,
    matrix_market.NAME: matrix_market.read,
    dimacs.NAME: dimacs.read,
    galois.NAME: galois.read,
    gap.NAME: gap.read,
    metis.NAME: metis.read,
    ldbc.NAME: ldbc.read,
    graph500.PLAIN: graph500.read_plain,
    graph500.PACKED: graph500.read_packed,
}
FORMATS: tuple[str, ...] = tuple(READERS)


def read_graph(path: str | Path, *, format: str = AUTO, progress: Progress | None = None) -> EdgeList:
    """Read the graph at ``path``. ``progress`` is called with (bytes done, bytes in all) of the file on disk."""
    path = Path(path)
    check_file(path)
    name = sniff(path) if format == AUTO else format
    if name not in READERS:
        near = difflib.get_close_matches(name, (AUTO, *FORMATS), n=1)
        fix = f"did you mean '{near[0]}'?" if near else f"use {AUTO} or one of {', '.join(FORMATS)}"
        raise InputError("there is no such graph format", value=name, fix=fix)
    edges = READERS[name](path, progress)
    if edges.id_range is not None:
        current_bounds().require_vertices(edges.id_range[1], path)
    return edges
