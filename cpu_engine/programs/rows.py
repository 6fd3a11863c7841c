"""What a program's kernels see of a graph or a part: rows both ways, the vertices' ids, and their out-degrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition.part import Part
from cpu_engine.schedule.errors import OperatorError


@dataclass(frozen=True, eq=False)
class Rows:
    """Local ids 0..n-1. Targets and sources are uint32: numba tests a signed index for "counted from the end"."""

    n: int
    out_offsets: np.ndarray
    out_targets: np.ndarray
    in_offsets: np.ndarray
    in_sources: np.ndarray
    weight: np.ndarray | None  # aligned with out_targets
    mirrored: bool  # whether in-rows are the out-rows
    internal: np.ndarray | None = None  # of a part: the internal id of each local vertex

    @staticmethod
    def of_graph(graph: Graph) -> Rows:
        return Rows(
            graph.n, graph.out_offsets, graph.out_targets.view(np.uint32), graph.in_offsets,
            graph.in_sources.view(np.uint32), graph.weight, not graph.directed,
        )  # fmt: skip

    @staticmethod
    def of_part(part: Part) -> Rows:
        return Rows(
            part.size, part.out_offsets, part.out_targets.view(np.uint32), part.in_offsets,
            part.in_sources.view(np.uint32), part.out_weight, False, part.internal_of,
        )  # fmt: skip

    @property
    def m(self) -> int:
        return int(self.out_targets.size)

    @cached_property
    def ids(self) -> np.ndarray:
        """The internal id of each vertex, int64."""
        return np.arange(self.n) if self.internal is None else self.internal.astype(np.int64)

    @cached_property
    def degree(self) -> np.ndarray:
        """Out-arcs of each vertex here, int64."""
        return np.diff(self.out_offsets)

    @cached_property
    def needed_weight(self) -> np.ndarray:
        if self.weight is None:
            raise OperatorError("an operator asks for 'weight', and the graph has none", fix="use a weighted graph")
        return self.weight

    @cached_property
    def in_weight(self) -> np.ndarray:
        """The weights aligned with in_sources."""
        weight = self.needed_weight
        if self.mirrored:
            return weight
        source = np.repeat(np.arange(self.n), self.degree)
        # In-rows are sorted by the source's internal id, and out-rows by the target's: order arcs the same way.
        rank = np.argsort(np.argsort(self.ids, kind="stable"), kind="stable")
        order = np.lexsort((rank[source], self.out_targets))
        return np.ascontiguousarray(weight[order])
