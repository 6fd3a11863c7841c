"""A rank's share of the edges, in pieces: made on the spot, or cut from a list that is there.

Invariant: over all ranks every edge comes once, and in the list's order where ranks follow one another. No piece is
longer than ``PIECE_EDGES``, so that a rank never holds its share whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cpu_engine.graph.edges import DRAWN, EdgeList
from cpu_engine.graph.generators import grid, kronecker, uniform

PIECE_EDGES = 1 << 19  # a piece is there several times while it travels, at 8 to 16 bytes an edge
Pieces = Callable[[], Iterator[EdgeList]]


@dataclass(frozen=True)
class Share:
    """What is known of the whole graph, and this rank's edges.

    ``edges``: in all shares, if that is known. ``mirror``: each edge stands for both directions; None means unless the
    graph is directed. ``in_turns``: the k-th pieces of all ranks come before the next ones in the list, and not all
    pieces of a rank before those of the next. ``spend``: the pieces for the last time, freed on the way.
    ``about``: format, path and notes of the input, whether the direction was assumed: for ``BuiltPart.meta``.
    """

    first: int  # the id of the first vertex
    vertices: int | None  # ids are first .. first + vertices - 1; None: vertices are those that the pieces name
    directed: bool
    pieces: Pieces
    weight_dtype: str | None = None  # None: the edges have no weights
    edges: int | None = None
    mirror: bool | None = None
    in_turns: bool = False
    spend: Pieces | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def mirrored(self) -> bool:
        """Whether an edge is entered at both of its ends."""
        return not self.directed if self.mirror is None else self.mirror


@dataclass(frozen=True)
class Described:
    """What a reader has found: this rank's pieces, and what ``EdgeList`` says of the whole."""

    pieces: Pieces
    spend: Pieces | None = None
    id_range: tuple[int, int] | None = None
    directed: bool | None = None
    symmetric_stored: bool = False
    weight_dtype: str | None = None
    in_turns: bool = False
    format: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()
    edges: int | None = None  # in all files


def share_of(found: Described, directed: bool | None) -> Share:
    """The share, read as directed or undirected; None is what the input says, and directed if it says nothing.

    As ``with_direction`` has it, an undirected edge that is made directed is two arcs.
    """
    first, vertices = found.id_range or (0, None)
    as_directed = directed if directed is not None else found.directed is not False
    mirror = not found.symmetric_stored and not as_directed
    if directed and found.directed is False and not found.symmetric_stored and found.format not in DRAWN:
        mirror = True
    about = {
        "format": found.format,
        "path": found.path,
        "notes": list(found.notes),
        "directed_assumed": directed is None and found.directed is None,
    }
    return Share(
        first, vertices, as_directed, found.pieces, found.weight_dtype, found.edges, mirror, found.in_turns,
        found.spend, about,
    )  # fmt: skip


def share_of_kronecker(
    rank: int, ranks: int, scale: int, edge_factor: int = 16, seed: int = 1,
    a: float = 0.57, b: float = 0.19, c: float = 0.19,
) -> Share:  # fmt: skip
    """This rank's edges of ``generators.kronecker``."""

    def piece(first: int, last: int) -> EdgeList:
        return kronecker(scale, edge_factor, seed, a, b, c, edges=(first, last))

    return _generated(rank, ranks, edge_factor << scale, piece)


def share_of_uniform(rank: int, ranks: int, scale: int, edge_factor: int = 16, seed: int = 1) -> Share:
    """This rank's edges of ``generators.uniform``."""

    def piece(first: int, last: int) -> EdgeList:
        return uniform(scale, edge_factor, seed, edges=(first, last))

    return _generated(rank, ranks, edge_factor << scale, piece)


def share_of_grid(rank: int, ranks: int, rows: int, cols: int) -> Share:
    """This rank's edges of ``generators.grid``."""

    def piece(first: int, last: int) -> EdgeList:
        return grid(rows, cols, edges=(first, last))

    return _generated(rank, ranks, rows * max(cols - 1, 0) + max(rows - 1, 0) * cols, piece)


def share_of_list(rank: int, ranks: int, edges: EdgeList, first: int, vertices: int | None, directed: bool) -> Share:
    """This rank's edges of a list that every rank has; its ``vertices``, too, are dealt out."""
    cut = _cutter(rank, ranks, edges.edge_count)
    named = None
    if vertices is None and edges.vertices is not None:
        total = edges.vertices.size
        named = edges.vertices[total * rank // ranks : total * (rank + 1) // ranks]

    def pieces() -> Iterator[EdgeList]:
        if named is not None:
            yield replace(edges, src=edges.src[:0], dst=edges.dst[:0], weight=_part(edges.weight, 0, 0), vertices=named)
        for begin, end in cut():
            weight = _part(edges.weight, begin, end)
            yield replace(edges, src=edges.src[begin:end], dst=edges.dst[begin:end], weight=weight, vertices=None)

    dtype = None if edges.weight is None else ("float64" if edges.weight.dtype.kind == "f" else "int64")
    about = {"format": edges.format, "path": edges.path, "notes": list(edges.notes)}
    mirror = not directed and not edges.symmetric_stored
    return Share(first, vertices, directed, pieces, dtype, edges.edge_count, mirror, about=about)


def _part(weight: np.ndarray | None, begin: int, end: int) -> np.ndarray | None:
    return None if weight is None else weight[begin:end]


def _generated(rank: int, ranks: int, edges: int, piece: Callable[[int, int], EdgeList]) -> Share:
    whole, cut = piece(0, 0), _cutter(rank, ranks, edges)
    assert whole.id_range is not None
    about = {"format": whole.format, "path": whole.path, "notes": list(whole.notes)}
    return Share(*whole.id_range, False, lambda: (piece(*one) for one in cut()), edges=edges, about=about)


def _cutter(rank: int, ranks: int, edges: int) -> Callable[[], Iterator[tuple[int, int]]]:
    """The pieces [begin, end) of the share [rank * edges / ranks, (rank + 1) * edges / ranks)."""
    first, last = edges * rank // ranks, edges * (rank + 1) // ranks
    return lambda: ((at, min(at + PIECE_EDGES, last)) for at in range(first, last, PIECE_EDGES))
