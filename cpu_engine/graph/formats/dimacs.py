"""DIMACS shortest-path graphs (.gr): ``c`` comments, one ``p sp vertices arcs``, then ``a source target weight``.

Invariant: arcs are directed, ids run from 1 to the declared count, and there are as many arcs as declared.
"""

from __future__ import annotations

import re
from pathlib import Path

from cpu_engine.counted import count, plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.rows import RowLayout, read_rows
from cpu_engine.graph.formats.source import Progress, TextSource
from cpu_engine.graph.formats.survey import as_id

NAME = "dimacs"
_NO_COMMENT = re.compile(rb"^[ \t\r\v\f]*(?!c(?:\s|\Z))\S", re.MULTILINE)


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read a DIMACS .gr file, plain, gzip or xz."""
    with TextSource(path, progress) as source:
        vertices, arcs, line = _problem(source)
        problem_at = source.lines_read
        layout = RowLayout(3, weight_column=2, lead="a", comments="c", lowest=1, highest=vertices)
        edges = read_rows(source, layout)
    if edges.rows != arcs:
        raise InputError(
            f"the problem line declares {plural(arcs, 'arc')}, there are {count(edges.rows)}",
            path=path,
            line=problem_at,
            value=line,
            fix="download the file again if it is cut off, else correct the problem line",
        )
    return EdgeList(
        edges.src, edges.dst, edges.weight, id_range=(1, vertices), directed=True, format=NAME, path=str(path)
    )


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
