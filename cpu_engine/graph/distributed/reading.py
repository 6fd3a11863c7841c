"""A share of what is in a file, or in several: every rank reads a range of it, as far as the format can be cut.

    edge list, adjacency, Matrix Market, DIMACS, LDBC   plain: byte ranges cut at line ends
    the same packed, and METIS                          one rank reads, in pieces that it passes on
    part files                                          runs of whole files; passed on where there are too few
    Graph500, Galois, GAP                               ranges of edges, read when the build asks for them

Invariant: the edges, ids, direction, weights and notes are those that ``read_graph`` finds, and so is the first error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cpu_engine.comm.agreement import together
from cpu_engine.comm.collectives import RankInfo, share_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.build.idspace import distinct
from cpu_engine.graph.distributed import binary_shares
from cpu_engine.graph.distributed.files import agreed_files, in_file_lines, is_plain, range_of, runs_of_files
from cpu_engine.graph.distributed.held import Held, ReadPiece, hold
from cpu_engine.graph.distributed.numbering import count_distinct, mentioned_in
from cpu_engine.graph.distributed.shares import Described, Share, share_of
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import adjacency, dimacs, edge_list, galois, gap, graph500, ldbc, matrix_market, metis
from cpu_engine.graph.formats.part_files import Summary, agree_on
from cpu_engine.graph.formats.reading import AUTO
from cpu_engine.graph.formats.rows import Numbers, RaggedLayout, RowLayout, ragged_pieces, row_pieces
from cpu_engine.graph.formats.source import TextSource
from cpu_engine.graph.formats.symmetry import direction_sums

_NO_IDS = np.empty(0, np.int64)
Span = tuple[int, int]


@dataclass(frozen=True)
class _Reading:
    """What every format's driver gets."""

    info: RankInfo
    path: Path  # as the user names it
    weighted: bool


@dataclass(frozen=True)
class _Found:
    """Over all ranks."""

    rows: int
    floats: bool


def share_of_path(
    info: RankInfo, path: str | Path, *, format: str = AUTO, directed: bool | None = None, weighted: bool = False
) -> Driver[Share]:
    """This rank's share of the graph at ``path``: a file, a folder of part files, or the files that fit a pattern.

    ``directed`` None means what the input says. ``weighted``: the build will ask for the weights.
    """
    path = Path(path)
    files, sizes, name = yield from agreed_files(info, path, format)
    if len(files) == 1:
        path = files[0]
    reading = _Reading(info, path, weighted)
    if name in graph500.EDGE_BYTES:
        described = yield from binary_shares.read_edges(info, path, files, name)
    elif name in (galois.NAME, gap.NAME):
        described = yield from binary_shares.read_rows(info, path, name)
    elif name in (matrix_market.NAME, dimacs.NAME):
        described = yield from _read_declared(reading, files[0], name)
    elif name == metis.NAME:
        described = yield from _read_metis(reading, files[0])
    elif name == ldbc.NAME:
        described = yield from _read_ldbc(reading, files[0])
    elif len(files) == 1 and (yield from together(info, partial(is_plain, files[0]))):
        read = _read_edge_list if name == edge_list.NAME else _read_adjacency
        described = yield from read(reading, files[0])
    else:
        described = yield from _read_files(reading, files, sizes, name)
    return share_of(described, directed)


# ------------------------------------------------------------------------------------------------ a plain file


def _read_edge_list(reading: _Reading, file: Path) -> Driver[Described]:
    info, held = reading.info, Held(weighted=reading.weighted)
    head, start = yield from _head_of(info, file, edge_list.read_head)
    if head.first is None:
        return _described(held, edge_list.finish(head, _no_edges(reading.path), None, 0), 0)
    span = range_of(info, file, start)
    first = 0 if span[0] == start < span[1] and not head.apart else None
    yield from hold(info, _marked(_rows(file, span, head.layout), first), held, spread=False)
    found = yield from _found(held)
    behind, rows_behind = None, found.rows - (not head.apart)
    if edge_list.may_be_header(head, rows_behind):
        ids = [ids for piece in held.pieces(marked=False) for ids in mentioned_in(piece)]
        ends = np.array([-min((int(one.min()) for one in ids), default=2**62), max(map(np.max, ids), default=-1)])
        lowest, highest = (yield AllReduce(ends.astype(np.int64), "max")).tolist()
        count = yield from count_distinct(info, distinct(ids))
        behind = edge_list.Behind(rows_behind, -lowest, highest, count)
    if edge_list.has_header(head, behind):
        held.drop(0)
    rest = _no_edges(reading.path)
    edges = yield from together(info, lambda: edge_list.finish(head, rest, behind, found.rows))
    return _described(held, edges, found.rows, found.floats if head.columns == 3 else None)


def _read_adjacency(reading: _Reading, file: Path) -> Driver[Described]:
    info, held = reading.info, Held(weighted=False)
    _, start = yield from _head_of(info, file, lambda _: None, longest_line=None)
    yield from hold(info, _ragged(file, range_of(info, file, start)), held, spread=False)
    owners = [piece.vertices for piece in held.pieces() if piece.vertices is not None]
    lines = int((yield AllReduce(np.array([sum(one.size for one in owners)], np.int64)))[0])
    count = yield from count_distinct(info, distinct(owners))
    notes = adjacency.notes_on(lines, count)
    edges = EdgeList(_NO_IDS, _NO_IDS, format=adjacency.NAME, path=str(reading.path), notes=notes)
    return _described(held, edges, held.rows)


# ------------------------------------------------------------------------------------------------ formats with a head


class _Head(Protocol):
    @property
    def layout(self) -> RowLayout: ...

    def check(self, rows: int, path: Path) -> None: ...

    def finish(self, edges: EdgeList) -> EdgeList: ...


def _read_declared(reading: _Reading, file: Path, name: str) -> Driver[Described]:
    """Matrix Market and DIMACS: rows behind a head that declares how many there are."""
    info, held = reading.info, Held(weighted=reading.weighted)
    read_head: Callable[[TextSource], Any] = {
        matrix_market.NAME: matrix_market.read_head,
        dimacs.NAME: dimacs.read_head,
    }[name]
    head, start = yield from _head_of(info, file, read_head)

    def whole() -> Iterator[Numbers]:
        with TextSource(file) as source:
            read_head(source)
            yield from row_pieces(source, head.layout)

    pieces, packed = _rows_or_whole(info, file, start, head.layout, whole)
    finished = (_finished(head, piece) for piece in pieces)
    yield from hold(info, finished, held, spread=packed)
    found = yield from _found(held)
    yield from together(info, lambda: head.check(found.rows, file))
    edges = head.finish(_no_edges(reading.path))
    return _described(held, edges, found.rows, found.floats if head.layout.columns == 3 else None, in_turns=packed)


def _finished(head: _Head, piece: Numbers) -> ReadPiece:
    edges = head.finish(EdgeList(piece.src, piece.dst, piece.weight))
    return ReadPiece(edges.src, edges.dst, edges.weight)


def _read_metis(reading: _Reading, file: Path) -> Driver[Described]:
    """A line's number is its vertex, so that one rank reads them all."""
    info, held = reading.info, Held(weighted=reading.weighted)
    head, _ = yield from _head_of(info, file, metis.read_head, longest_line=None)
    lines, sums = [0], np.zeros(2, np.uint64)

    def whole() -> Iterator[ReadPiece]:
        with TextSource(file, longest_line=None) as source:
            metis.read_head(source)
            for piece, _ in ragged_pieces(source, head.layout):
                lines[0] += piece.rows
                sums[:] += direction_sums(piece.src, piece.dst)
                yield ReadPiece(piece.src, piece.dst, piece.weight)

    yield from hold(info, whole() if info.rank == 0 else iter(()), held, spread=True)
    found = yield from _found(held)

    def check() -> None:
        metis.check_counts(head, lines[0], found.rows, file)
        if sums[0] != sums[1]:
            metis.read(file)  # once more, for the message

    yield from together(info, check if info.rank == 0 else lambda: None)
    edges = head.finish(_no_edges(reading.path))
    return _described(held, edges, found.rows, found.floats if head.header.weighted else None, in_turns=True)


def _read_ldbc(reading: _Reading, file: Path) -> Driver[Described]:
    info, held, listed = reading.info, Held(weighted=reading.weighted), Held(weighted=False)
    described = yield from together(info, lambda: ldbc.describe_or_refuse(file))
    layout, start = yield from _head_of(info, described.vertex_file, ldbc.vertex_layout)
    pieces, packed = _rows_or_whole(info, described.vertex_file, start, layout)
    named = (ReadPiece(_NO_IDS, _NO_IDS, vertices=piece.src) for piece in pieces)
    yield from hold(info, named, listed, spread=packed)
    layout, start = yield from _head_of(info, described.edge_file, partial(ldbc.edge_layout, described))
    pieces, packed = _rows_or_whole(info, described.edge_file, start, layout)
    yield from hold(info, (ReadPiece(one.src, one.dst, one.weight) for one in pieces), held, spread=packed)
    found = yield from _found(held)
    vertices = [piece.vertices for piece in listed.pieces() if piece.vertices is not None]
    ids = distinct(vertices)
    count = yield from count_distinct(info, ids)
    ends = (ids for piece in held.pieces() for ids in mentioned_in(piece))
    every = yield from count_distinct(info, distinct(chain([ids], ends)))
    lines = int((yield AllReduce(np.array([sum(one.size for one in vertices)], np.int64)))[0])

    def check() -> None:
        ldbc.check_counts(described, lines, found.rows)
        if count < lines or every > count:
            ldbc.read(file)  # once more, for the message

    yield from together(info, check if info.rank == 0 else lambda: None)
    held.add(ReadPiece(_NO_IDS, _NO_IDS, vertices=ids))
    edges = EdgeList(
        _NO_IDS, _NO_IDS, directed=described.directed, format=ldbc.NAME, path=str(reading.path),
        notes=tuple(described.notes),
    )  # fmt: skip
    return _described(held, edges, found.rows, found.floats if layout.weight_column >= 0 else None, in_turns=packed)


# ------------------------------------------------------------------------------------------------ whole files


def _read_files(reading: _Reading, files: list[Path], sizes: list[int], name: str) -> Driver[Described]:
    """Part files, or a packed one, each read by one rank from its beginning to its end."""
    info, held = reading.info, Held(weighted=reading.weighted)
    mine, uneven = runs_of_files(info, sizes)
    read = _edge_list_file if name == edge_list.NAME else _adjacency_file
    ends: list[_End] = []
    yield from hold(info, chain.from_iterable(read(files[at], at, ends) for at in mine), held, spread=uneven)
    facts = [(end.mark, end.header, end.edges, end.weighted, end.directed, list(end.notes), end.ids) for end in ends]
    told = [one for ranks in (yield from share_facts(info, facts)) for one in ranks]
    for mark, header, *_ in told:
        if header:
            held.drop(mark)
    found = yield from _found(held)
    parts = [Summary(files[one[0]], one[2], one[3], one[4], tuple(one[5])) for one in told]
    if len(parts) == 1:
        stated, notes, ids = parts[0].directed, parts[0].notes, told[0][6]
    else:
        (stated, notes), ids = (yield from together(info, lambda: agree_on(parts))), None
    weighted = any(part.weighted for part in parts if part.edges)
    edges = EdgeList(
        _NO_IDS, _NO_IDS, id_range=None if ids is None else tuple(ids), directed=stated, format=name,
        path=str(reading.path), notes=notes,
    )  # fmt: skip
    return _described(held, edges, found.rows, found.floats if weighted else None, in_turns=uneven)


@dataclass(frozen=True)
class _End:
    """What is known of a file once it has been read."""

    mark: int
    header: bool
    edges: int
    weighted: bool
    directed: bool | None
    notes: tuple[str, ...]
    ids: tuple[int, int] | None = None


def _edge_list_file(file: Path, mark: int, ends: list[_End]) -> Iterator[ReadPiece]:
    with TextSource(file) as source:
        head = edge_list.read_head(source)
        rows = 0
        if head.first is not None:
            first = None if head.apart else mark
            for piece in _marked(row_pieces(source, head.layout), first):
                rows += piece.src.size
                yield piece
    behind, rows_behind = None, rows - (head.first is not None and not head.apart)
    if edge_list.may_be_header(head, rows_behind):
        behind = _behind(file, head, rows_behind)
    edges = edge_list.finish(head, _no_edges(file), behind, rows)
    header = edge_list.has_header(head, behind) and not head.apart
    weighted = head.first is not None and head.columns == 3
    ends.append(_End(mark, header, rows - header, weighted, edges.directed, edges.notes, edges.id_range))


def _behind(file: Path, head: edge_list.Head, rows: int) -> edge_list.Behind:
    """Read the file once more, for the ids behind the first line."""
    with TextSource(file) as source:
        edge_list.read_head(source)
        pieces = _marked(row_pieces(source, head.layout), None if head.apart else 0)
        ids = distinct(ends for piece in pieces if piece.mark is None for ends in (piece.src, piece.dst))
    return edge_list.Behind(rows, int(ids[0]), int(ids[-1]), len(ids))


def _adjacency_file(file: Path, mark: int, ends: list[_End]) -> Iterator[ReadPiece]:
    edges, owners = 0, []
    for piece in _ragged(file, None):
        edges += piece.src.size
        owners.append(_NO_IDS if piece.vertices is None else piece.vertices.copy())
        yield piece
    notes = adjacency.notes_on(sum(one.size for one in owners), len(distinct(owners)))
    ends.append(_End(mark, False, edges, False, None, notes))


# ------------------------------------------------------------------------------------------------ pieces


def _head_of(info: RankInfo, file: Path, read_head: Callable[[TextSource], Any], **how: Any) -> Driver[tuple[Any, int]]:
    """What the head of a file says, which every rank reads for itself; and where a plain file's rows begin.

    -1: the file is packed.
    """

    def look() -> tuple[Any, int]:
        with TextSource(file, **how) as source:
            head = read_head(source)
            return head, -1 if source.compression else source.offset

    return (yield from together(info, look))


def _rows_or_whole(
    info: RankInfo, file: Path, start: int, layout: RowLayout, whole: Callable[[], Iterator[Numbers]] | None = None
) -> tuple[Iterator[Numbers], bool]:
    """This rank's rows of a plain file; of a packed one all of them at rank 0, and that they are to be passed on."""
    if start >= 0:
        return _rows(file, range_of(info, file, start), layout), False
    if info.rank:
        return iter(()), True
    return (_rows(file, None, layout) if whole is None else whole()), True


def _rows(file: Path, span: Span | None, layout: RowLayout) -> Iterator[Numbers]:
    with TextSource(file, span=span) as source:
        yield from in_file_lines(file, 0 if span is None else span[0], row_pieces(source, layout))


def _ragged(file: Path, span: Span | None) -> Iterator[ReadPiece]:
    with TextSource(file, span=span, longest_line=None) as source:
        pieces = in_file_lines(file, 0 if span is None else span[0], ragged_pieces(source, RaggedLayout()))
        for piece, owners in pieces:
            yield ReadPiece(piece.src, piece.dst, vertices=owners)


def _marked(pieces: Iterator[Numbers], mark: int | None) -> Iterator[ReadPiece]:
    """The pieces; the first row, where there is a mark for it, as one of its own."""
    for piece in pieces:
        if mark is None or not piece.rows:
            yield ReadPiece(piece.src, piece.dst, piece.weight)
            continue
        for cut, name in ((slice(0, 1), mark), (slice(1, None), None)):
            yield ReadPiece(
                piece.src[cut], piece.dst[cut], None if piece.weight is None else piece.weight[cut], None, name
            )
        mark = None


def _found(held: Held) -> Driver[_Found]:
    rows = yield AllReduce(np.array([held.rows, held.floats], np.int64), "sum", patient=True)
    return _Found(int(rows[0]), bool(rows[1]))


def _no_edges(path: Path) -> EdgeList:
    return EdgeList(_NO_IDS.copy(), _NO_IDS.copy(), path=str(path))


def _described(
    held: Held, edges: EdgeList, rows: int, floats: bool | None = None, *, in_turns: bool = False
) -> Described:
    """What is held, and what ``edges``, an empty list, says of it; ``floats`` None: there are no weights."""
    dtype = None if floats is None else "float64" if floats else "int64"
    return Described(
        held.pieces, held.spend, edges.id_range, edges.directed, edges.symmetric_stored, dtype, in_turns, edges.format,
        edges.path, edges.notes, rows,
    )  # fmt: skip
