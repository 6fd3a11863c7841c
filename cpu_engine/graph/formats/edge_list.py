"""Edge lists: ``source target`` or ``source target weight`` per line, as SNAP, GAP and most people write them.

Invariant: every line that is not blank or a comment is an edge, except a first line ``vertices edges`` that is
consistent with all the others; what was decided about that line is in the notes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.distinct import distinct_ids
from cpu_engine.graph.formats.rows import Numbers, RowLayout, read_rows, row_error, split_columns
from cpu_engine.graph.formats.source import Block, Progress, TextSource
from cpu_engine.graph.formats.survey import SURVEY_BYTES, as_id, survey_text
from cpu_engine.graph.kernels import parse

NAME = "edge-list"
_SNAP_KIND = re.compile(r"^#\s*(un)?directed\s+graph\b", re.IGNORECASE)
_SNAP_EDGES = re.compile(r"^[#%].*\bEdges:\s*(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Head:
    """The comments in front of the data, the first data line (None: there is none), and the shape of those behind it.

    ``apart``: the first line has two columns and the others three; it is a header, or wrong.
    """

    first: str | None
    line_number: int = 0
    promised: int = -1  # edges, by a comment
    directed: bool | None = None
    columns: int = 2
    apart: bool = False
    style_differs: bool = False

    @property
    def layout(self) -> RowLayout:
        return RowLayout(self.columns, weight_column=2 if self.columns == 3 else -1)


@dataclass(frozen=True)
class Behind:
    """What the lines behind the first one are together."""

    rows: int
    lowest: int
    highest: int
    distinct: int  # ids


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read an edge list, plain, gzip or xz."""
    with TextSource(path, progress) as source:
        head = read_head(source)
        if head.first is None:
            nothing = np.empty(0, np.int64)
            return finish(head, EdgeList(nothing, nothing.copy(), path=str(path)), None, 0)
        edges = read_rows(source, head.layout)
    skip = 0 if head.apart else 1
    behind = edges.src[skip:], edges.dst[skip:]
    facts = None
    if may_be_header(head, len(behind[0])):
        distinct = distinct_ids(*behind)
        lowest = min(int(ends.min()) for ends in behind)
        facts = Behind(len(behind[0]), lowest, int(distinct[-1]), len(distinct))
    if has_header(head, facts):
        edges = Numbers(*behind, None if edges.weight is None else edges.weight[skip:], len(behind[0]))
    whole = EdgeList(edges.src, edges.dst, edges.weight, path=str(path))
    return finish(head, whole, facts, edges.rows)


def read_head(source: TextSource) -> Head:
    """What stands in front of the rows; the source is then at the first of them."""
    first, promised, directed = _first_line(source)
    if first is None:
        return Head(None, promised=promised, directed=directed)
    line_number = source.lines_read
    source.unread_line()
    prefix, whole = source.prefix()
    columns = survey_text(prefix, whole).usual_columns()
    if columns not in (2, 3):
        raise _column_error(source.path, line_number, first, columns)
    style_differs = _written_differently(prefix[:SURVEY_BYTES])
    # Two columns before lines of three: a header, or wrong. It is not parsed with the others.
    apart = columns == 3 and len(split_columns(first)) == 2
    if apart:
        source.next_line()
    return Head(first, line_number, promised, directed, columns, apart, style_differs)


def may_be_header(head: Head, rows_behind: int) -> bool:
    """Whether the first line promises as many edges as there are lines behind it."""
    header = _as_header(head)
    return header is not None and header[1] == rows_behind


def has_header(head: Head, behind: Behind | None) -> bool:
    """Whether the first line is read as a header; ``behind`` None: it cannot be one."""
    header = _agreeing(head, behind)
    return header is not None and (head.apart or header[1] > header[0] or head.style_differs)


def finish(head: Head, edges: EdgeList, behind: Behind | None, rows: int) -> EdgeList:
    """The list - without its first line if that is a header - with what the head says of it."""
    path = Path(edges.path)
    if head.first is None:
        return replace(edges, directed=head.directed, format=NAME, notes=("the file has no edges",))
    header = _agreeing(head, behind)
    if header is not None and behind is not None and has_header(head, behind):
        return _with_header(head, header[0], edges, behind)
    if head.apart:
        block = Block(head.first.encode("utf-8"), head.line_number - 1, 0)
        raise row_error(parse.TOO_FEW_COLUMNS, block, len(block.text), head.layout, path)
    notes = _snap_note(head.promised, rows)
    if header is not None:
        notes += (
            f"line {head.line_number} '{head.first.strip()}' is read as an edge; it could also be a header 'vertices "
            "edges': put '#' in front of it if it is one",
        )
    return replace(edges, directed=head.directed, format=NAME, notes=notes)


def _first_line(source: TextSource) -> tuple[str | None, int, bool | None]:
    """The first line with data, and what SNAP's comments before it say: the edge count (-1: none), the direction."""
    promised, directed = -1, None
    while (line := source.next_line()) is not None:
        if split_columns(line):
            return line, promised, directed
        if match := _SNAP_EDGES.match(line):
            promised = int(match[1])
        if match := _SNAP_KIND.match(line):
            directed = match[1] is None
    return None, promised, directed


def _column_error(path: Path, line: int, text: str, columns: int) -> InputError:
    return InputError(
        f"an edge list has 2 or 3 columns (source target weight), this file has {columns}",
        path=path,
        line=line,
        value=text[:60].strip(),
        fix="keep the first two or three columns; name the format adjacency if the lines are 'vertex neighbour ...'",
    )


def _as_header(head: Head) -> tuple[int, int] | None:
    """(vertices, edges) if the first line has the form of a header."""
    tokens = [] if head.first is None else split_columns(head.first)
    if len(tokens) != 2:
        return None
    vertices, edges = as_id(tokens[0]), as_id(tokens[1])
    return (vertices, edges) if min(vertices, edges) >= 1 else None


def _agreeing(head: Head, behind: Behind | None) -> tuple[int, int] | None:
    """(vertices, edges) if the first line agrees, as a header, with all the other lines."""
    header = _as_header(head)
    if header is None or behind is None or header[1] != behind.rows:
        return None
    vertices = header[0]
    # Ids up to the vertex count may leave some out; of sparse ids there must be exactly as many.
    agrees = behind.distinct <= vertices if behind.highest <= vertices else behind.distinct == vertices
    return header if agrees else None


def _with_header(head: Head, vertices: int, edges: EdgeList, behind: Behind) -> EdgeList:
    assert head.first is not None
    id_range = None
    if behind.lowest == 0 and behind.highest < vertices:
        id_range = (0, vertices)
    elif behind.lowest >= 1 and behind.highest == vertices:
        id_range = (1, vertices)
    note = f"first line '{' '.join(split_columns(head.first))}' read as a header: vertices edges"
    notes = (note, *_snap_note(head.promised, behind.rows))
    return replace(edges, id_range=id_range, directed=head.directed, format=NAME, notes=notes)


def _written_differently(text: bytes) -> bool:
    """Whether the first two data lines have different separators, as a header often has."""
    lines = (line for line in text.decode("latin-1").split("\n") if len(split_columns(line)) > 1)
    styles = [match[1] for line in islice(lines, 2) if (match := re.search(r"[^\s,]([\s,]+)[^\s,]", line))]
    return len(styles) == 2 and styles[0] != styles[1]


def _snap_note(promised: int, found: int) -> tuple[str, ...]:
    if promised in (-1, found):
        return ()
    return (f"a comment says 'Edges: {promised}', the file has {plural(found, 'line of edges', 'lines of edges')}",)
