"""Adjacency lists: ``vertex neighbour neighbour ...`` per line, the vertex alone when it has no neighbours.

Invariant: every id that occurs, first or later in a line, is in ``vertices``.
"""

from __future__ import annotations

from pathlib import Path

from cpu_engine.counted import plural
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.distinct import distinct_ids
from cpu_engine.graph.formats.rows import RaggedLayout, read_ragged
from cpu_engine.graph.formats.source import Progress, TextSource

NAME = "adjacency"


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read an adjacency list, plain, gzip or xz."""
    with TextSource(path, progress, longest_line=None) as source:
        edges, owners = read_ragged(source, RaggedLayout())
    notes = notes_on(len(owners), len(distinct_ids(owners)))
    vertices = distinct_ids(owners, edges.dst)
    return EdgeList(edges.src, edges.dst, vertices=vertices, format=NAME, path=str(path), notes=notes)


def notes_on(lines: int, owners: int) -> tuple[str, ...]:
    """What to say of a file with so many lines, of so many different vertices."""
    if lines > owners:
        some = plural(lines - owners, "line continues", "lines continue")
        return (f"{some} the neighbours of a vertex that has a line already",)
    return () if lines else ("the file has no vertices",)
