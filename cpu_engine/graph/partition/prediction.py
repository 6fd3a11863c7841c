"""What a partition would be like, without building it: arcs, copies, partners and bytes of every part.

Exact in everything that the graph decides, by one pass over the rows with memory for the vertices and for a matrix of
parts. Bytes are those of one synchronisation in which every copy takes part; a real one sends less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.graph.kernels.partition import Copies, survey_copies_step
from cpu_engine.graph.memory import require_bytes
from cpu_engine.graph.partition.layout import layout_terms, make_layout

HEADER_BYTES = 16  # of every message
VALUE_BYTES = 4


def whole_bytes(count: np.ndarray) -> np.ndarray:
    """A message that holds every value of an agreed list of ``count`` entries, 4 bytes each; no message for none."""
    return np.where(count > 0, HEADER_BYTES + VALUE_BYTES * count, 0)


def bitset_bytes(count: np.ndarray) -> np.ndarray:
    """A message with a bit per entry and one byte per value, if all are new: BFS distances are small or alike."""
    return np.where(count > 0, HEADER_BYTES + (count + 7) // 8 + count, 0)


@dataclass(frozen=True, eq=False)
class Prediction:
    """By part, int64; ``read`` and ``written`` by (part that holds the mirrors, part that owns them)."""

    policy: str
    grid: tuple[int, int]
    n: int
    m: int
    arcs: np.ndarray
    masters: np.ndarray
    mirrors: np.ndarray
    read: np.ndarray  # int32[parts, parts]: mirrors with out-arcs; the owner broadcasts to them
    written: np.ndarray  # int32[parts, parts]: mirrors with in-arcs; they are reduced to the owner

    @property
    def parts(self) -> int:
        return int(self.arcs.size)

    @property
    def replication(self) -> float:
        """Copies per vertex, masters included."""
        return float((self.masters.sum() + self.mirrors.sum()) / max(self.n, 1))

    @property
    def arc_imbalance(self) -> float:
        """The arcs of the part that has most, by the mean."""
        return float(self.arcs.max() * self.parts / max(self.m, 1)) if self.m else 1.0

    @property
    def mirrors_with_out(self) -> np.ndarray:
        return self.read.sum(axis=1, dtype=np.int64)

    @property
    def mirrors_with_in(self) -> np.ndarray:
        return self.written.sum(axis=1, dtype=np.int64)

    @property
    def partners(self) -> np.ndarray:
        """How many other parts each one exchanges messages with, either way."""
        shared = (self.read > 0) | (self.written > 0)
        return np.count_nonzero(shared | shared.T, axis=1)

    @property
    def messages(self) -> int:
        """Messages of one synchronisation, reduce and broadcast, if all have something to say."""
        return int(np.count_nonzero(self.read) + np.count_nonzero(self.written))

    def reduce_bytes(self, message_bytes: Callable[[np.ndarray], np.ndarray] = whole_bytes) -> np.ndarray:
        """Bytes that each part sends in one reduce."""
        return message_bytes(self.written.astype(np.int64)).sum(axis=1)

    def broadcast_bytes(self, message_bytes: Callable[[np.ndarray], np.ndarray] = whole_bytes) -> np.ndarray:
        """Bytes that each part sends in one broadcast."""
        return message_bytes(self.read.astype(np.int64)).sum(axis=0)

    @property
    def memory_bytes(self) -> np.ndarray:
        """Of the arrays of each part: both kinds of row, ids and flags."""
        return 2 * (4 * self.arcs + 8 * (self.masters + self.mirrors)) + 6 * (self.masters + self.mirrors)


def predict(graph: Graph, policy: str, parts: int) -> Prediction:
    """Survey the graph once; no part is built."""
    require_bytes(
        2 * 4 * parts**2,
        f"predicting what {parts} parts say to each other",
        "ask for fewer parts",
    )
    layout = make_layout(graph, policy, parts)
    arcs, mirrors = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    read, written = np.zeros((parts, parts), np.int32), np.zeros((parts, parts), np.int32)
    survey_copies_step(
        (graph.out_offsets, graph.out_targets),
        (graph.in_offsets, graph.in_sources),
        layout.owner_of, *layout_terms(layout, graph), Copies(arcs, mirrors, read, written),
        np.full(parts, -1, np.int64), np.empty(parts, np.int32),
    )  # fmt: skip
    return Prediction(
        policy=policy,
        grid=layout.grid,
        n=graph.n,
        m=graph.m,
        arcs=arcs,
        masters=np.bincount(layout.owner_of, minlength=parts),
        mirrors=mirrors,
        read=read,
        written=written,
    )
