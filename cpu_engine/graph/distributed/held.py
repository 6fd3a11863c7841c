"""Edges that a rank has read and keeps until the build deals them out.

Invariant: ids take 4 bytes where those of a piece fit, weights no room unless they are wanted; a piece is freed when it
is spent. What one rank reads for all is dealt out as it comes: no rank holds more than its share of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cpu_engine.comm.agreement import agree
from cpu_engine.comm.collectives import RankInfo, all_to_all
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.build.idspace import MAX_NARROW
from cpu_engine.graph.edges import EdgeList

_NO_IDS = np.empty(0, np.int64)
_PIECE, _ERROR = 1, 2


@dataclass(frozen=True, eq=False)
class ReadPiece:
    """What a reader yields. ``mark``: this is the first row of a file, which may turn out to be its header."""

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray | None = None
    vertices: np.ndarray | None = None
    mark: int | None = None


class Held:
    """This rank's pieces, in the order of reading."""

    def __init__(self, *, weighted: bool) -> None:
        self._weighted = weighted
        self._pieces: list[EdgeList | None] = []
        self._marked: dict[int, int] = {}
        self.rows = 0
        self.floats = False  # a weight is no whole number

    def add(self, piece: ReadPiece) -> None:
        """Keep a copy of a piece."""
        if piece.mark is not None:
            self._marked[piece.mark] = len(self._pieces)
        self.rows += piece.src.size
        self.floats = self.floats or (piece.weight is not None and piece.weight.dtype.kind == "f")
        highest = max((int(ends.max()) for ends in (piece.src, piece.dst) if ends.size), default=0)
        ids = np.int32 if highest <= MAX_NARROW else np.int64
        weight = None if piece.weight is None or not self._weighted else piece.weight.copy()
        vertices = None if piece.vertices is None else piece.vertices.copy()
        self._pieces.append(EdgeList(piece.src.astype(ids), piece.dst.astype(ids), weight, vertices))

    def drop(self, mark: int) -> None:
        """Take back a marked row, if it is here."""
        at = self._marked.pop(mark, None)
        if at is not None:
            self.rows -= 1
            self._pieces[at] = EdgeList(_NO_IDS, _NO_IDS)

    def pieces(self, *, marked: bool = True) -> Iterator[EdgeList]:
        """All pieces that are not spent, with or without those that are marked."""
        left_out = () if marked else set(self._marked.values())
        return (piece for at, piece in enumerate(self._pieces) if piece is not None and at not in left_out)

    def spend(self) -> Iterator[EdgeList]:
        """All pieces, each let go when the next one is asked for."""
        for at in range(len(self._pieces)):
            piece, self._pieces[at] = self._pieces[at], None
            if piece is not None:
                yield piece


def hold(info: RankInfo, stream: Iterator[ReadPiece], held: Held, *, spread: bool) -> Driver[None]:
    """Read this rank's stream to its end; ``spread``: each piece is dealt out to all ranks. Errors are agreed on."""
    if not spread:
        error = None
        try:
            for piece in stream:
                held.add(piece)
        except InputError as wrong:
            error = wrong
        yield from agree(info, error)
        return
    while True:
        taken, error = _take(stream)
        states = np.zeros(info.size, np.int64)
        states[info.rank] = _ERROR if error is not None else _PIECE if taken is not None else 0
        states = yield AllReduce(states, "sum", patient=True)
        if states.max() == _ERROR:
            yield from agree(info, error)
        if not states.any():
            return
        came = yield from all_to_all(info, [_packed(taken, rank, info) for rank in range(info.size)])
        for rank in np.flatnonzero(states).tolist():
            held.add(_unpacked(came[rank]))


def _take(stream: Iterator[ReadPiece]) -> tuple[ReadPiece | None, InputError | None]:
    try:
        return next(stream, None), None
    except InputError as wrong:
        return None, wrong


def _packed(piece: ReadPiece | None, rank: int, info: RankInfo) -> np.ndarray:
    """One rank's part of a piece; all of a marked one stays where it was read."""
    if piece is None or (piece.mark is not None and rank != info.rank):
        return np.zeros(0, np.uint8)

    def part(array: np.ndarray) -> np.ndarray:
        if piece.mark is not None:
            return array
        return array[array.size * rank // info.size : array.size * (rank + 1) // info.size]

    weight, vertices = (_NO_IDS if one is None else one for one in (piece.weight, piece.vertices))
    kind = -1 if piece.weight is None else int(weight.dtype.kind == "f")
    ends = part(piece.src).astype(np.int64), part(piece.dst).astype(np.int64)
    more = part(vertices).astype(np.int64)
    mark = -1 if piece.mark is None else piece.mark
    head = np.array([ends[0].size, more.size if piece.vertices is not None else -1, kind, mark], np.int64)
    heavy = np.ascontiguousarray(part(weight), np.float64 if kind == 1 else np.int64).view(np.int64)
    return np.concatenate((head, *ends, heavy, more)).view(np.uint8)


def _unpacked(payload: np.ndarray) -> ReadPiece:
    if not payload.size:
        return ReadPiece(_NO_IDS, _NO_IDS)
    whole = payload.view(np.int64)
    (rows, more, kind, mark), rest = whole[:4].tolist(), whole[4:]
    src, dst, heavy = rest[:rows], rest[rows : 2 * rows], None
    if kind >= 0:
        heavy = rest[2 * rows : 3 * rows].view(np.float64 if kind == 1 else np.int64)
    vertices = rest[rest.size - more :] if more >= 0 else None
    return ReadPiece(src, dst, heavy, vertices, None if mark < 0 else mark)
