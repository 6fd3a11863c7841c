"""A part of the graph as the engines see it: rows over local ids, with or without the arcs inside the core.

The engines of one process (bfs_async, expand_auto) run unchanged on it. Invariant: a row is sorted by its neighbours'
internal ids, so its first in-neighbour is the best one, and a core vertex's core neighbours are a prefix of its row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.bfs.strategies.kernels.pull import first_sources_step
from cpu_engine.bfs.traversal import EdgeView
from cpu_engine.graph.partition.part import Part
from cpu_engine.hub_core.kernels.rows import skip_core_of_part_step


@dataclass(frozen=True)
class LocalRows:
    """What the engines ask of a graph, for a part."""

    n: int
    m: int
    out_offsets: np.ndarray
    in_offsets: np.ndarray
    in_sources: np.ndarray


class PartSplit:
    """Satisfies what the engines use of ``traversal.CoreSplit``; ``core_vertices`` are the local copies of the core."""

    def __init__(self, part: Part, core_size: int = 0) -> None:
        self.part = part
        self.graph = LocalRows(part.internal_of.size, part.arcs, part.out_offsets, part.in_offsets, part.in_sources)
        self.core_vertices = np.flatnonzero(part.internal_of < core_size).astype(np.int32)
        self.core_size = int(np.count_nonzero(part.internal_of[: part.masters] < core_size))  # among the masters
        # Only so far are there in-arcs: a pull need not look further.
        has_in = np.flatnonzero(np.diff(part.in_offsets))
        self._pulled = int(has_in[-1]) + 1 if has_in.size else 0
        self.all_edges = self._view(part.out_offsets[:-1], part.in_offsets[:-1])
        self.outside_core = self.all_edges
        if core_size:
            rows = (self.core_vertices, part.internal_of, core_size)
            self.outside_core = self._view(
                skip_core_of_part_step(part.out_offsets, part.out_targets, *rows),
                skip_core_of_part_step(part.in_offsets, part.in_sources, *rows),
            )

    def _view(self, out_begin: np.ndarray, in_begin: np.ndarray) -> EdgeView:
        part = self.part
        best_in = np.empty(self._pulled, np.int32)
        first_sources_step(in_begin, part.in_offsets[1:], part.in_sources, best_in)
        return EdgeView(
            out_begin, part.out_offsets[1:], part.out_targets.view(np.uint32),
            in_begin, part.in_offsets[1:], part.in_sources.view(np.uint32),
            best_in.view(np.uint32), self._pulled,
        )  # fmt: skip


def local_id(part: Part, internal: int) -> int | None:
    """The local id of a vertex, master or mirror; None where this part has no copy of it."""
    found = int(part.local_of(np.array([internal]))[0])
    return None if found < 0 else found
