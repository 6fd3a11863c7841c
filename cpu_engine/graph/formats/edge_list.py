"""Edge lists: ``source target`` or ``source target weight`` per line, as SNAP, GAP and most people write them.

Invariant: every line that is not blank or a comment is an edge, except a first line ``vertices edges`` that is
consistent with all the others; what was decided about that line is in the notes.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.distinct import distinct_ids
from cpu_engine.graph.formats.rows import Numbers, RowLayout, read_rows, row_error, split_columns
from cpu_engine.graph.formats.source import DATA_LINE, Block, Progress, TextSource
from cpu_engine.graph.formats.survey import SURVEY_BYTES, as_id, survey_text
from cpu_engine.graph.kernels import parse

NAME = "edge-list"
_SNAP_KIND = re.compile(rb"^#[^\S\n]*(un)?directed[^\S\n]+graph\b", re.IGNORECASE | re.MULTILINE)
_SNAP_EDGES = re.compile(rb"^[#%][^\n]*\bEdges:[^\S\n]*(\d+)", re.IGNORECASE | re.MULTILINE)


def layout_of(columns: int) -> RowLayout:
    """Rows of two ids, with a weight when there are three columns."""
    return RowLayout(columns, weight_column=2 if columns == 3 else -1)


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read an edge list, plain, gzip or xz."""
    with TextSource(path, progress) as source:
        first, promised, directed = _first_line(source)
        if first is None:
            nothing = np.empty(0, np.int64)
            return EdgeList(
                nothing,
                nothing.copy(),
                directed=directed,
                format=NAME,
                path=str(path),
                notes=("the file has no edges",),
            )
        line_number = source.lines_read
        source.unread_line()
        prefix, whole = source.prefix()
        columns = survey_text(prefix, whole).usual_columns()
        if columns not in (2, 3):
            raise _column_error(path, line_number, first, columns)
        style_differs = _written_differently(prefix[:SURVEY_BYTES])
        # Two columns before lines of three: a header, or wrong. It is not parsed with the others.
        apart = columns == 3 and len(split_columns(first)) == 2
        if apart:
            source.next_line()
        edges = read_rows(source, layout_of(columns))
    rest = (
        edges
        if apart
        else Numbers(edges.src[1:], edges.dst[1:], None if edges.weight is None else edges.weight[1:], edges.rows - 1)
    )
    header = _read_as_header(split_columns(first), rest)
    if header is not None and (apart or header[1] > header[0] or style_differs):
        return replace(_with_header(path, first, header, rest, promised), directed=directed)
    if apart:
        block = Block(first.encode("utf-8"), line_number - 1, 0)
        raise row_error(parse.TOO_FEW_COLUMNS, block, len(block.text), layout_of(columns), path)
    notes = _snap_note(promised, edges.rows)
    if header is not None:
        notes += (
            f"line {line_number} '{first.strip()}' is read as an edge; it could also be a header 'vertices edges': "
            "put '#' in front of it if it is one",
        )
    return EdgeList(edges.src, edges.dst, edges.weight, directed=directed, format=NAME, path=str(path), notes=notes)


def _first_line(source: TextSource) -> tuple[str | None, int, bool | None]:
    """The first line with data, and what SNAP's comments before it say: the edge count (-1: none), the direction."""
    promised, directed = -1, None
    for comments in source.skip_to(DATA_LINE):
        for match in deque(_SNAP_EDGES.finditer(comments), 1):  # the last counts
            promised = as_id(match[1].decode())
        for match in deque(_SNAP_KIND.finditer(comments), 1):
            directed = match[1] is None
    return source.next_line(), promised, directed


def _column_error(path: Path, line: int, text: str, columns: int) -> InputError:
    return InputError(
        f"an edge list has 2 or 3 columns (source target weight), this file has {columns}",
        path=path,
        line=line,
        value=text[:60].strip(),
        fix="keep the first two or three columns; name the format adjacency if the lines are 'vertex neighbour ...'",
    )


def _read_as_header(first: list[str], rest: Numbers) -> tuple[int, int] | None:
    """(vertices, edges) if the first line agrees, as a header, with all the other lines."""
    if len(first) != 2:
        return None
    vertices, edges = as_id(first[0]), as_id(first[1])
    if vertices < 1 or edges != rest.rows or edges < 1:
        return None
    distinct = distinct_ids(rest.src, rest.dst)
    # Ids up to the vertex count may leave some out; of sparse ids there must be exactly as many.
    agrees = len(distinct) <= vertices if distinct[-1] <= vertices else len(distinct) == vertices
    return (vertices, edges) if agrees else None


def _with_header(path: Path, first: str, header: tuple[int, int], rest: Numbers, promised: int) -> EdgeList:
    vertices = header[0]
    lowest, highest = int(min(rest.src.min(), rest.dst.min())), int(max(rest.src.max(), rest.dst.max()))
    id_range = None
    if lowest == 0 and highest < vertices:
        id_range = (0, vertices)
    elif lowest >= 1 and highest == vertices:
        id_range = (1, vertices)
    note = f"first line '{' '.join(split_columns(first))}' read as a header: vertices edges"
    return EdgeList(
        rest.src,
        rest.dst,
        rest.weight,
        id_range=id_range,
        format=NAME,
        path=str(path),
        notes=(note, *_snap_note(promised, rest.rows)),
    )


def _written_differently(text: bytes) -> bool:
    """Whether the first two data lines have different separators, as a header often has."""
    lines = (line for line in text.decode("latin-1").split("\n") if len(split_columns(line)) > 1)
    styles = [match[1] for line in islice(lines, 2) if (match := re.search(r"[^\s,]([\s,]+)[^\s,]", line))]
    return len(styles) == 2 and styles[0] != styles[1]


def _snap_note(promised: int, found: int) -> tuple[str, ...]:
    if promised in (-1, found):
        return ()
    return (f"a comment says 'Edges: {promised}', the file has {plural(found, 'line of edges', 'lines of edges')}",)
