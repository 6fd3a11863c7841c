"""Shares of binary files: ranges of edges, which are read again whenever the build asks for them.

Invariant: nothing is held; what a reader checks over the whole file, ranks check on their ranges and agree on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np

from cpu_engine.comm.agreement import agree, together
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.distributed import shares
from cpu_engine.graph.distributed.shares import Described
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import galois, gap, graph500
from cpu_engine.graph.formats.part_files import Summary, agree_on
from cpu_engine.graph.formats.stored_rows import StoredRows
from cpu_engine.graph.formats.symmetry import direction_sums


def read_edges(info: RankInfo, path: Path, files: list[Path], name: str) -> Driver[Described]:
    """Graph500 edge lists, one after the other: each rank has as many edges."""
    counts = yield from together(info, lambda: [graph500.count_edges(file, name) for file in files])
    begins = [0, *accumulate(counts)]
    total = begins[-1]
    first, last = (total * rank // info.size for rank in (info.rank, info.rank + 1))

    def pieces() -> Iterator[EdgeList]:
        for file, begin, count in zip(files, begins, counts, strict=False):
            begin_here, end_here = (min(max(at - begin, 0), count) for at in (first, last))
            for src, dst in graph500.read_range(file, name, begin_here, end_here):
                yield EdgeList(src, dst)

    notes: tuple[str, ...] = () if total else ("the file has no edges",)
    if len(files) > 1:
        empty = ("the file has no edges",)
        every = zip(files, counts, strict=True)
        notes = agree_on([Summary(file, count, False, False, () if count else empty) for file, count in every])[1]
    return Described(pieces, directed=False, format=name, path=str(path), notes=notes, edges=total)


def read_rows(info: RankInfo, path: Path, name: str) -> Driver[Described]:
    """Galois and GAP graphs: each rank has as many entries of the rows."""
    directed, data_bytes = None, 0
    if name == galois.NAME:
        rows, data_bytes = yield from together(info, lambda: galois.stored_rows(path))
    else:
        rows, directed = yield from together(info, lambda: gap.stored_rows(path))
    borders = [rows.n * rank // info.size for rank in (info.rank, info.rank + 1)]
    yield from together(info, lambda: rows.require_sound_offsets(*borders))
    first, last = (rows.m * rank // info.size for rank in (info.rank, info.rank + 1))
    kind = "int64" if rows.target is gap.PAIR else ""
    if rows.weight:
        kind = yield from _kind_of_data(rows, data_bytes, first, last)
    undirected = directed is False
    yield from _check_targets(info, rows, first, last, symmetric=undirected)

    def pieces() -> Iterator[EdgeList]:
        for src, dst, weight in rows.pieces(first, last, shares.PIECE_EDGES):
            if weight is not None:
                weight = galois.as_weights(weight, kind) if rows.weight else weight.astype(np.int64)
            yield EdgeList(src, dst, weight)

    dtype = None if not kind else "float64" if kind.startswith("float") else "int64"
    notes = galois.data_notes(data_bytes, kind) if name == galois.NAME else ()
    return Described(
        pieces, None, (0, rows.n), directed, undirected, dtype, format=name, path=str(path), notes=notes, edges=rows.m
    )


def _kind_of_data(rows: StoredRows, data_bytes: int, first: int, last: int) -> Driver[str]:
    """Whether the edge data of the whole file is read as integers or as floats."""
    contrary, some = False, False
    for raw in rows.weights(first, last, shares.PIECE_EDGES):
        every, one = galois.float_evidence(raw, data_bytes)
        contrary, some = contrary or not every, some or one
    flags = yield AllReduce(np.array([contrary, some], np.int64), "max", patient=True)
    return galois.weight_kind(data_bytes, bool(not flags[0] and flags[1]))


def _check_targets(info: RankInfo, rows: StoredRows, first: int, last: int, *, symmetric: bool) -> Driver[None]:
    """InputError at every rank for a neighbour that is no vertex or, of a symmetric graph, an edge without reverse."""
    sums, error = np.zeros(2, np.uint64), None
    try:
        for src, dst, _ in rows.pieces(first, last, shares.PIECE_EDGES):
            if symmetric:
                sums += direction_sums(src, dst)
    except InputError as wrong:
        error = wrong
    yield from agree(info, error)
    both = yield AllReduce(sums.view(np.int64), "sum", patient=True)

    def refuse() -> None:
        if both[0] != both[1] and info.rank == 0:
            gap.read(rows.path)  # once more, for the message

    yield from together(info, refuse)
