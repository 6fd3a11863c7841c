"""METIS graphs: a header ``vertices edges [fmt [ncon]]``, then one line of neighbours per vertex, numbered from 1.

Invariant: the header's counts hold and each edge stands at both of its ends; vertex weights and sizes are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cpu_engine.counted import count, plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.rows import RaggedLayout, read_ragged, split_columns
from cpu_engine.graph.formats.source import Progress, TextSource
from cpu_engine.graph.formats.survey import as_id
from cpu_engine.graph.formats.symmetry import edge_without_reverse, is_symmetric

NAME = "metis"
_HEADER_FIX = "write 'vertices edges [fmt [ncon]]', fmt of the digits 0 and 1"


@dataclass(frozen=True)
class Header:
    """``skip`` columns of vertex sizes and weights in front of the neighbours; ``weighted`` edges."""

    vertices: int
    edges: int
    skip: int
    weighted: bool


def parse_header(tokens: list[str]) -> Header | None:
    """The header, or None if the tokens are none."""
    if not 2 <= len(tokens) <= 4:
        return None
    vertices, edges = as_id(tokens[0]), as_id(tokens[1])
    flags = tokens[2] if len(tokens) > 2 else "0"
    constraints = as_id(tokens[3]) if len(tokens) > 3 else 1
    if vertices < 0 or edges < 0 or constraints < 1 or len(flags) > 3 or set(flags) - {"0", "1"}:
        return None
    flags = flags.zfill(3)
    # Digits from the left: vertex sizes, vertex weights (ncon of them), edge weights.
    skip = (flags[0] == "1") + (constraints if flags[1] == "1" else 0)
    return Header(vertices, edges, skip, flags[2] == "1")


@dataclass(frozen=True)
class Head:
    """The header and where it stands."""

    header: Header
    line: str
    line_number: int

    @property
    def layout(self) -> RaggedLayout:
        return RaggedLayout(
            implicit=True,
            skip=self.header.skip,
            weighted=self.header.weighted,
            row_limit=self.header.vertices,
            lowest=1,
            highest=self.header.vertices,
        )

    def finish(self, edges: EdgeList) -> EdgeList:
        """The list with what the head says of it."""
        return replace(edges, id_range=(1, self.header.vertices), directed=False, symmetric_stored=True, format=NAME)


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read a METIS graph, plain, gzip or xz."""
    with TextSource(path, progress, longest_line=None) as source:
        head = read_head(source)
        edges, _ = read_ragged(source, head.layout)
    check_counts(head, edges.rows, edges.src.size, path)
    if not is_symmetric(edges.src, edges.dst):
        at = edge_without_reverse(edges.src, edges.dst)
        u, v = int(edges.src[at]), int(edges.dst[at])
        raise InputError(
            f"vertex {u} names neighbour {v}, but {v} does not name {u} as often",
            path=path,
            value=f"{u} {v}",
            fix=f"add {u} to the line of vertex {v}, or use an edge list for a directed graph",
        )
    return head.finish(EdgeList(edges.src, edges.dst, edges.weight, path=str(path)))


def read_head(source: TextSource) -> Head:
    """The lines up to the header."""
    line = _header_line(source)
    header = parse_header(split_columns(line))
    if header is None:
        raise InputError(
            "not a METIS header", path=source.path, line=source.lines_read, value=line[:60], fix=_HEADER_FIX
        )
    return Head(header, line, source.lines_read)


def _header_line(source: TextSource) -> str:
    while (line := source.next_line()) is not None:
        if split_columns(line):
            return line.strip()
    raise InputError("the file is empty, it has no METIS header", path=source.path, fix=_HEADER_FIX)


def check_counts(head: Head, rows: int, neighbours: int, path: Path) -> None:
    """Refuse other numbers of lines and neighbours than the header declares."""
    header = head.header
    if rows != header.vertices:
        raise InputError(
            f"the header declares {plural(header.vertices, 'vertex')}, there are lines for {count(rows)}",
            path=path,
            line=head.line_number,
            value=head.line,
            fix="correct the header; a vertex without neighbours needs its own empty line",
        )
    if neighbours != 2 * header.edges:
        raise InputError(
            f"the header declares {plural(header.edges, 'edge')}, so {count(2 * header.edges)} neighbours, "
            f"there are {count(neighbours)}",
            path=path,
            line=head.line_number,
            value=head.line,
            fix="correct the header; it counts each edge once, the lines name it at both ends",
        )
