"""An edge list as rows of neighbours over 0..n-1, for the writers of binary formats.

Invariant: ids are kept as they are (ids that do not occur become vertices without edges), each undirected edge stands
in both rows, and neighbours ascend within a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList, mirrored
from cpu_engine.graph.formats.text_output import highest_id

SPARSEST = 64  # vertices per edge; beyond it the offsets would dwarf the edges
SPARSE_FLOOR = 1 << 20


@dataclass(frozen=True)
class Rows:
    """CSR: neighbours of v are targets[offsets[v]:offsets[v + 1]]."""

    offsets: np.ndarray
    targets: np.ndarray
    weight: np.ndarray | None

    @property
    def n(self) -> int:
        return len(self.offsets) - 1


def to_rows(edges: EdgeList, path: Path, *, highest: int) -> Rows:
    """Build the rows; refuse ids above ``highest`` or so sparse that the file would be mostly offsets."""
    top = highest_id(edges)
    if top > highest or (top + 1 > SPARSEST * len(edges.src) + SPARSE_FLOOR and edges.id_range is None):
        reason = "is above what the format holds" if top > highest else "is far beyond the number of edges"
        raise InputError(
            f"the highest vertex id {reason}, and the format has a row for every id up to it",
            path=path,
            value=top,
            fix="write an edge list (.el, .wel), or renumber the vertices first",
        )
    if edges.directed is False and not edges.symmetric_stored:
        edges = mirrored(edges)
    return sort_rows(edges.src, edges.dst, edges.weight, top + 1)


def sort_rows(src: np.ndarray, dst: np.ndarray, weight: np.ndarray | None, n: int) -> Rows:
    """Rows over 0..n-1 of the given entries."""
    order = np.lexsort((dst, src))
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(src, minlength=n), out=offsets[1:])
    return Rows(offsets, dst[order], None if weight is None else weight[order])
