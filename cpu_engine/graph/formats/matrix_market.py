"""Matrix Market: ``%%MatrixMarket matrix coordinate ...``, then ``rows columns entries``, then the entries from 1.

Invariant: row i, column j is the edge i -> j, ids stay 1-based (unless the file says, in a comment of our own writer,
that they were shifted); the number of entries is the declared one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.rows import RowLayout, read_rows, split_columns, wrong_count
from cpu_engine.graph.formats.source import DATA_LINE, Progress, TextSource
from cpu_engine.graph.formats.survey import as_id
from cpu_engine.graph.formats.text_output import highest_id, lowest_id, write_edge_lines

NAME = "matrix-market"
BANNER = "%%MatrixMarket"
FIELDS = ("pattern", "integer", "real")
SYMMETRIES = ("general", "symmetric")
_SHIFT_COMMENT = "% tandem: row and column 1 are vertex 0"
_SHIFT = re.compile(rb"^% tandem: row and column 1 are vertex 0[^\S\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class Head:
    """What banner, comments and size line declare."""

    field: str
    symmetry: str
    n: int
    entries: int
    line: str  # with the sizes
    line_number: int
    shifted: bool

    @property
    def layout(self) -> RowLayout:
        columns = 2 if self.field == "pattern" else 3
        return RowLayout(
            columns,
            weight_column=2 if columns == 3 else -1,
            lowest=1,
            highest=self.n,
            integer_weights=self.field == "integer",
        )

    def check(self, rows: int, path: Path) -> None:
        """Refuse another number of entries than the declared one."""
        if rows != self.entries:
            declared = plural(self.entries, "entry", "entries")
            raise wrong_count("size", declared, rows, path, self.line_number, self.line)

    def finish(self, edges: EdgeList) -> EdgeList:
        """The list, whose memory is written over, with what the head says of it."""
        first, notes = 1, edges.notes
        if self.shifted:
            first, notes = 0, ("ids are one less than rows and columns, as a comment in the file says",)
            np.subtract(edges.src, 1, out=edges.src)
            np.subtract(edges.dst, 1, out=edges.dst)
        directed = self.symmetry != "symmetric"
        return replace(edges, id_range=(first, self.n), directed=directed, format=NAME, notes=notes)


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read a coordinate matrix, plain, gzip or xz."""
    with TextSource(path, progress) as source:
        head = read_head(source)
        edges = read_rows(source, head.layout)
    head.check(edges.rows, path)
    return head.finish(EdgeList(edges.src, edges.dst, edges.weight, path=str(path)))


def read_head(source: TextSource) -> Head:
    """The lines in front of the entries."""
    field, symmetry = _banner(source)
    n, entries, line, line_number, shifted = _size(source)
    return Head(field, symmetry, n, entries, line, line_number, shifted)


def _banner(source: TextSource) -> tuple[str, str]:
    line = source.next_line() or ""
    words = line.lower().split()
    kind = dict(zip(("banner", "object", "layout", "field", "symmetry"), words, strict=False))

    def refuse(reason: str, fix: str) -> InputError:
        return InputError(reason, path=source.path, line=1, value=line[:80], fix=fix)

    if kind.get("banner") != BANNER.lower():
        raise refuse(
            "the Matrix Market banner is missing", f"begin the file with '{BANNER} matrix coordinate pattern general'"
        )
    if kind.get("object") != "matrix" or kind.get("layout") != "coordinate":
        raise refuse("only 'matrix coordinate' is a graph", "convert the matrix to coordinate form")
    if kind.get("field") not in FIELDS:
        raise refuse(
            f"the field must be one of {', '.join(FIELDS)}", "convert the values, or write 'pattern' without any"
        )
    if kind.get("symmetry") not in SYMMETRIES:
        raise refuse(f"the symmetry must be one of {', '.join(SYMMETRIES)}", "write all entries and 'general'")
    return kind["field"], kind["symmetry"]


def _size(source: TextSource) -> tuple[int, int, str, int, bool]:
    """(n, entries, the line, its number, whether ids were shifted)"""
    shifted = False
    for comments in source.skip_to(DATA_LINE):
        shifted = shifted or _SHIFT.search(comments) is not None
    line = source.next_line()
    sizes = [] if line is None else [as_id(token) for token in split_columns(line)]
    if line is not None and len(sizes) == 3 and min(sizes) >= 0:
        if sizes[0] != sizes[1]:
            raise InputError(
                f"the matrix has {plural(sizes[0], 'row')} and {plural(sizes[1], 'column')}, "
                "a graph needs as many of both",
                path=source.path,
                line=source.lines_read,
                value=line.strip(),
                fix="give the columns of a bipartite graph their own ids and make the matrix square",
            )
        return sizes[0], sizes[2], line.strip(), source.lines_read, shifted
    raise InputError(
        "the size line 'rows columns entries' is missing",
        path=source.path,
        line=source.lines_read,
        value=None if line is None else line[:60],
        fix="write it behind the banner and the comments",
    )


def write(file: BinaryIO, edges: EdgeList) -> None:
    """Write a coordinate matrix; ids that begin at 0 are shifted by one, and a comment says so."""
    highest = highest_id(edges)
    shift = 1 if lowest_id(edges) == 0 else 0
    field = "pattern" if edges.weight is None else "integer" if edges.weight.dtype.kind in "iu" else "real"
    src, dst, weight, symmetry = edges.src, edges.dst, edges.weight, "general"
    if edges.directed is False:
        if edges.symmetric_stored:
            once = src >= dst
            src, dst, weight = src[once], dst[once], None if weight is None else weight[once]
        src, dst, symmetry = np.maximum(src, dst), np.minimum(src, dst), "symmetric"  # the lower triangle
    n = max(highest + shift, 0)
    header = [f"{BANNER} matrix coordinate {field} {symmetry}"]
    header += [_SHIFT_COMMENT] if shift else []
    header.append(f"{n} {n} {len(src)}")
    file.write(("\n".join(header) + "\n").encode())
    write_edge_lines(file, src, dst, weight, shift=shift)
