"""How large a graph will be, and the memory that making it takes, known before anything is generated or read.

A generator's size follows from its arguments, a binary file's from its header, a text's from its header or its first
lines. Invariant: no more is read than the first block of a file, and what is guessed from it is guessed low: the exact
check comes when the edges are there (``build_graph``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import estimate_build_bytes
from cpu_engine.graph.formats import (
    adjacency,
    dimacs,
    edge_list,
    galois,
    gap,
    graph500,
    ldbc,
    matrix_market,
    metis,
    sniff,
)
from cpu_engine.graph.formats.part_files import files_of
from cpu_engine.graph.formats.source import TextSource, check_file
from cpu_engine.graph.formats.survey import as_id, survey_text
from cpu_engine.graph.memory import require_bytes

EDGES_PER_VERTEX = 16  # of a text that does not say
SURE_SHARE = 0.75  # of the edges that the first block of a text promises: later lines may be longer, or pack worse


@dataclass(frozen=True)
class Extent:
    """Entries of the edge list, vertices, and what the list holds of each edge."""

    edges: int
    vertices: int
    weighted: bool = False
    directed: bool | None = None
    symmetric_stored: bool = False
    id_bytes: int = 8

    def list_bytes(self) -> int:
        """Memory of the edge list."""
        return self.edges * (2 * self.id_bytes + (8 if self.weighted else 0))

    def write_bytes(self, format: str) -> int:
        """Peak memory of the list and of writing it to a file of this format."""
        ids = min(self.id_bytes, 4) if self.edges < 2**31 else self.id_bytes
        if format not in (gap.NAME, galois.NAME):
            return self.list_bytes() + self.edges * 2 * self.id_bytes  # ends put in order; lines go out by chunks
        entries = self.edges * (2 if self.directed is False and not self.symmetric_stored else 1)
        weight = 8 if self.weighted else 0
        # Both directions, the order of the sort and its workspace, neighbours and weights in that order.
        sorting = entries * (3 * self.id_bytes + 16 + 2 * weight) + entries * (2 * ids + weight) + 24 * self.vertices
        return self.list_bytes() + sorting

    def build_bytes(self, directed: bool | None, *, consume: bool) -> int:
        """Peak memory of the list and of the build from it; ``directed`` None is what the list says."""
        as_directed = directed if directed is not None else self.directed is not False
        once = as_directed or self.symmetric_stored
        return self.list_bytes() + estimate_build_bytes(self.edges, self.vertices, once, self.weighted, consume=consume)


def generated_extent(
    kind: str, *, scale: int = 0, edge_factor: int = 0, rows: int = 0, cols: int = 0, weighted: bool = False
) -> Extent:
    """The size of a generated graph."""
    if kind == "grid":
        edges, vertices = rows * max(cols - 1, 0) + max(rows - 1, 0) * cols, rows * cols
    else:
        edges, vertices = edge_factor << scale, 1 << scale
    return Extent(edges, vertices, weighted, directed=False, id_bytes=4)


def require_room_to_write(extent: Extent, format: str) -> None:
    """Raise InputError when the list and what writing needs beside it exceed the memory that is available now."""
    require_bytes(
        extent.write_bytes(format),
        f"writing a graph of about {plural(extent.edges, 'edge')} and {plural(extent.vertices, 'vertex')} as {format}",
        "use a machine with more memory, a smaller graph, or an edge list (.el, .wel)",
    )


def require_room(extent: Extent, directed: bool | None, *, consume: bool) -> None:
    """Raise InputError when the list and the build together exceed the memory that is available now."""
    require_bytes(
        extent.build_bytes(directed, consume=consume),
        f"building a graph of about {plural(extent.edges, 'edge')} and {plural(extent.vertices, 'vertex')}",
        "use a machine with more memory, or a smaller graph",
    )


def path_extent(path: Path, format: str = "auto") -> Extent:
    """The size of the graph in a file or in several; InputError where one cannot be read as the format."""
    extents = [file_extent(file, format) for file in files_of(path)]
    edges, vertices = sum(one.edges for one in extents), sum(one.vertices for one in extents)
    return extents[0] if len(extents) == 1 else replace(extents[0], edges=edges, vertices=vertices)


def file_extent(path: Path, format: str = "auto") -> Extent:
    """The size of the graph in a file; InputError where the file cannot be read as the format."""
    size = check_file(path)
    name = sniff(path) if format == "auto" else format
    if name in graph500.EDGE_BYTES:
        return _typical(size // graph500.EDGE_BYTES[name], False, directed=False)
    if name in (gap.NAME, galois.NAME):
        return _binary_extent(path, name, size)
    if name == ldbc.NAME:
        described = ldbc.describe(path)
        if described is not None:
            return _text_extent(described.edge_file, edge_list.NAME, described.directed, described.vertices)
    return _text_extent(path, name, None, -1)


def _binary_extent(path: Path, name: str, size: int) -> Extent:
    with path.open("rb") as file:
        start = file.read(galois.HEADER_BYTES)
    if name == gap.NAME and (serialised := gap.parse_header(start)) is not None:
        weighted = bool(serialised.weighted(size))
        return Extent(serialised.m, serialised.n, weighted, serialised.directed, not serialised.directed)
    if name == galois.NAME and (binary := galois.parse_header(start)) is not None:
        return Extent(binary.m, binary.n, binary.datum_bytes > 0)
    raise InputError(f"not a file of the format {name}", path=path, fix="name the format that the file has")


def _text_extent(path: Path, name: str, directed: bool | None, vertices: int) -> Extent:
    with TextSource(path, longest_line=None) as source:
        text, whole = source.prefix()
        total = len(text) if whole else SURE_SHARE * source.expected_bytes()
    survey = survey_text(text, whole)
    if name == metis.NAME and survey.lines and (header := metis.parse_header(survey.lines[0])) is not None:
        return Extent(2 * header.edges, header.vertices, header.weighted, False, symmetric_stored=True)
    if name in (matrix_market.NAME, dimacs.NAME):
        declared = _declared_sizes(text, name)
        if declared is not None:
            return declared
    lines = max(text.count(b"\n"), 1)
    columns = survey.usual_columns()
    if name == adjacency.NAME:
        taken = sum(len(" ".join(line)) + 1 for line in survey.lines)
        per_byte = sum(len(line) - 1 for line in survey.lines) / max(taken, 1)
        return _typical(int(total * per_byte), False, directed)
    return _typical(int(total * lines / max(len(text), 1)), columns > 2, directed, vertices)


def _declared_sizes(text: bytes, name: str) -> Extent | None:
    """What the size line of a matrix or the problem line of a DIMACS graph declares."""
    lines = text[: 1 << 16].decode("latin-1").splitlines()
    for line in lines:
        words = line.split()
        sizes = [as_id(word) for word in words[-3:]]
        if name == dimacs.NAME and words[:2] == ["p", "sp"] and len(words) == 4 and min(sizes[1:]) >= 0:
            return Extent(sizes[2], sizes[1], True, True)
        if name == matrix_market.NAME and len(words) == 3 and min(sizes) >= 0:
            banner = lines[0].lower().split()
            return Extent(sizes[2], sizes[0], "pattern" not in banner, "symmetric" not in banner)
    return None


def _typical(edges: int, weighted: bool, directed: bool | None = None, vertices: int = -1) -> Extent:
    return Extent(edges, vertices if vertices >= 0 else max(edges // EDGES_PER_VERTEX, 1), weighted, directed)
