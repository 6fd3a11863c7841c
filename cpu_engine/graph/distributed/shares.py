"""A rank's share of the edges, in pieces: made on the spot, or cut from a list that is there.

Invariant: over all ranks every edge comes once, and in the list's order where ranks follow one another. No piece is
longer than ``PIECE_EDGES``, so that a rank never holds its share whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker, uniform

PIECE_EDGES = 1 << 21


@dataclass(frozen=True)
class Share:
    """What is known of the whole graph, and this rank's edges."""

    first: int  # the id of the first vertex
    vertices: int  # ids are first .. first + vertices - 1
    directed: bool
    pieces: Callable[[], Iterator[EdgeList]]
    weight_dtype: str | None = None  # None: the edges have no weights


def share_of_kronecker(rank: int, ranks: int, scale: int, edge_factor: int = 16, seed: int = 1) -> Share:
    """This rank's edges of ``generators.kronecker``."""
    cut = _cutter(rank, ranks, edge_factor << scale)
    return Share(0, 1 << scale, False, lambda: (kronecker(scale, edge_factor, seed, edges=piece) for piece in cut()))


def share_of_uniform(rank: int, ranks: int, scale: int, edge_factor: int = 16, seed: int = 1) -> Share:
    """This rank's edges of ``generators.uniform``."""
    cut = _cutter(rank, ranks, edge_factor << scale)
    return Share(0, 1 << scale, False, lambda: (uniform(scale, edge_factor, seed, edges=piece) for piece in cut()))


def share_of_list(rank: int, ranks: int, edges: EdgeList, first: int, vertices: int, directed: bool) -> Share:
    """This rank's edges of a list that every rank has."""
    cut = _cutter(rank, ranks, edges.edge_count)

    def pieces() -> Iterator[EdgeList]:
        for begin, end in cut():
            weight = None if edges.weight is None else edges.weight[begin:end]
            yield replace(edges, src=edges.src[begin:end], dst=edges.dst[begin:end], weight=weight)

    dtype = None if edges.weight is None else ("float64" if edges.weight.dtype.kind == "f" else "int64")
    return Share(first, vertices, directed, pieces, dtype)


def _cutter(rank: int, ranks: int, edges: int) -> Callable[[], Iterator[tuple[int, int]]]:
    """The pieces [begin, end) of the share [rank * edges / ranks, (rank + 1) * edges / ranks)."""
    first, last = edges * rank // ranks, edges * (rank + 1) // ranks
    return lambda: ((at, min(at + PIECE_EDGES, last)) for at in range(first, last, PIECE_EDGES))
