"""One door to all readers: name the format or have it sniffed.

Invariant: an EdgeList or an InputError, never a half-read graph.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import adjacency, dimacs, edge_list, galois, gap, graph500, ldbc, matrix_market, metis
from cpu_engine.graph.formats.bounds import current_bounds
from cpu_engine.graph.formats.part_files import files_of, join, require_joinable
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
    """Read the graph at ``path``: a file, a folder of part files, or the files that fit a pattern.

    ``progress`` is called with (bytes done, bytes in all) of the files on disk.
    """
    path = Path(path)
    files = files_of(path)
    sizes = [check_file(file) for file in files]
    name = common_format(path, files, sizes) if format == AUTO else format
    require_format(name)
    if len(files) == 1:
        edges = READERS[name](files[0], progress)
    else:
        require_joinable(name, path)
        befores = [0, *accumulate(sizes)]
        parts = [
            READERS[name](file, progress and partial(_report, progress, before, befores[-1]))
            for file, before in zip(files, befores, strict=False)
        ]
        edges = join(path, files, parts)
    if edges.id_range is not None:
        current_bounds().require_vertices(edges.id_range[1], path)
    return edges


def require_format(name: str) -> None:
    """InputError, with the nearest name, if there is no such format."""
    if name not in READERS:
        near = difflib.get_close_matches(name, (AUTO, *FORMATS), n=1)
        fix = f"did you mean '{near[0]}'?" if near else f"use {AUTO} or one of {', '.join(FORMATS)}"
        raise InputError("there is no such graph format", value=name, fix=fix)


def common_format(path: Path, files: list[Path], sizes: list[int]) -> str:
    """The format of a file, or of all files that have content; by what they contain."""
    found: tuple[str, Path] | None = None
    for file, size in zip(files, sizes, strict=True):
        if size == 0 and len(files) > 1:
            continue
        name = sniff(file)
        if found is None:
            found = name, file
            if len(files) > 1:
                require_joinable(name, path)
        elif name != found[0]:
            raise InputError(
                f"this part of a graph looks like {name}, but {found[1].name} like {found[0]}",
                path=file,
                fix="name the format (graph.format) if they are of one, or leave out what is no part of the graph",
            )
    return sniff(files[0]) if found is None else found[0]


def _report(progress: Progress, before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)
