"""DIMACS shortest-path graphs (.gr): ``c`` comments, one ``p sp vertices arcs``, then ``a source target weight``.

Invariant: arcs are directed, ids run from 1 to the declared count, and there are as many arcs as declared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.rows import RowLayout, read_rows, wrong_count
from cpu_engine.graph.formats.source import Progress, TextSource
from cpu_engine.graph.formats.survey import as_id

NAME = "dimacs"
_NO_COMMENT = re.compile(rb"^[ \t\r\v\f]*(?!c(?:\s|\Z))\S", re.MULTILINE)


@dataclass(frozen=True)
class Head:
    """What the problem line declares."""

    vertices: int
    arcs: int
    line: str
    line_number: int

    @property
    def layout(self) -> RowLayout:
        return RowLayout(3, weight_column=2, lead="a", comments="c", lowest=1, highest=self.vertices)

    def check(self, rows: int, path: Path) -> None:
        """Refuse another number of arcs than the declared one."""
        if rows != self.arcs:
            raise wrong_count("problem", plural(self.arcs, "arc"), rows, path, self.line_number, self.line)

    def finish(self, edges: EdgeList) -> EdgeList:
        """The list with what the head says of it."""
        return replace(edges, id_range=(1, self.vertices), directed=True, format=NAME)


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read a DIMACS .gr file, plain, gzip or xz."""
    with TextSource(path, progress) as source:
        head = read_head(source)
        edges = read_rows(source, head.layout)
    head.check(edges.rows, path)
    return head.finish(EdgeList(edges.src, edges.dst, edges.weight, path=str(path)))


def read_head(source: TextSource) -> Head:
    """The lines in front of the arcs."""
    vertices, arcs, line = _problem(source)
    return Head(vertices, arcs, line, source.lines_read)


def _problem(source: TextSource) -> tuple[int, int, str]:
    for _ in source.skip_to(_NO_COMMENT):
        pass
    line = source.next_line()
    words = [] if line is None else line.split()
    if line is not None and len(words) == 4 and words[:2] == ["p", "sp"] and min(map(as_id, words[2:])) >= 0:
        return as_id(words[2]), as_id(words[3]), line.strip()
    raise InputError(
        "expected the problem line 'p sp vertices arcs'",
        path=source.path,
        line=source.lines_read,
        value=None if line is None else line[:60].strip(),
        fix="write it in front of the first arc; other DIMACS problems (edge, col, max) are not read",
    )
