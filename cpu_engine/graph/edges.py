"""The edge list: what a reader or generator hands over, before anything is dropped, renumbered or sorted.

Invariant: ids, direction and weights are exactly what the file says; nothing is inferred that it does not say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges in the user's ids, in the order of the file.

    ``vertices`` is the full list of ids where the format has one; ``id_range`` = (first, count) is a declared dense id
    space. Either may name vertices without edges. ``directed`` is None when the file does not say;
    ``symmetric_stored`` means undirected with each edge already present in both directions.
    """

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray | None = None
    vertices: np.ndarray | None = None
    id_range: tuple[int, int] | None = None
    directed: bool | None = None
    symmetric_stored: bool = False
    format: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(self.src), len(self.dst)} | ({len(self.weight)} if self.weight is not None else set())
        if len(lengths) != 1:
            raise ValueError(f"src, dst and weight differ in length: {sorted(lengths)}")

    @property
    def edge_count(self) -> int:
        """Entries in the list (an undirected edge stored in both directions counts twice)."""
        return len(self.src)


DRAWN = ("generator", "graph500", "graph500-packed")  # formats of generated lists


def mirrored(edges: EdgeList) -> EdgeList:
    """The list with each edge in both directions, a loop once."""
    twice = edges.src != edges.dst
    weight = None if edges.weight is None else np.concatenate((edges.weight, edges.weight[twice]))
    src, dst = np.concatenate((edges.src, edges.dst[twice])), np.concatenate((edges.dst, edges.src[twice]))
    return replace(edges, src=src, dst=dst, weight=weight, symmetric_stored=True)


def with_direction(edges: EdgeList, directed: bool | None, *, merge: bool = True) -> EdgeList:
    """The list read as directed or undirected, whatever it says of itself; None leaves it as it is.

    Made undirected, "u v" and "v u" are one edge: it stands once, with the smallest weight, unless ``merge`` is off.
    Made directed, an undirected edge is two arcs; but of a generated list each pair is one arc, as it was drawn.
    """
    if directed is None or directed is edges.directed:
        return edges
    if directed:
        both = edges.directed is False and not edges.symmetric_stored and edges.format not in DRAWN
        return replace(mirrored(edges) if both else edges, directed=True, symmetric_stored=False)
    if not merge:
        return replace(edges, directed=False, symmetric_stored=False)
    low, high, weight = np.minimum(edges.src, edges.dst), np.maximum(edges.src, edges.dst), edges.weight
    order = np.lexsort((high, low) if weight is None else (weight, high, low))
    low, high = low[order], high[order]
    first = np.ones(low.size, np.bool_)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    kept = None if weight is None else weight[order[first]]
    return replace(edges, src=low[first], dst=high[first], weight=kept, directed=False, symmetric_stored=False)
