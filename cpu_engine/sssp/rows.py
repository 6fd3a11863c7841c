"""A graph prepared for shortest paths: rows of edges lightest first, in as few bytes as they need.

Made once per graph, used by every run. Invariant: no weight is negative or not a number; a row has the graph's edges.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph, require_narrow_ids
from cpu_engine.sssp.kernels.rows import pack_rows_step, sort_rows_step, transpose_weights_step
from cpu_engine.sssp.kernels.tree import find_overflow_step
from cpu_engine.sssp.kernels.values import Rows

STRETCHES = 64  # per thread, of about equally many edges
SAMPLE = 1 << 16  # edges whose weights stand for all
NARROW = 2**31  # from here on a weight does not fit into a word
_KEPT = "_weighted_rows"  # where a graph carries its rows: not in a table, which would keep both alive


class WeightedRows:
    """See the module."""

    def __init__(self, graph: Graph) -> None:
        require_narrow_ids(graph, "shortest paths")
        self.graph = graph
        weight = graph.weight
        self.is_float = weight is not None and weight.dtype.kind == "f"
        self.max_weight: int | float = 1
        if weight is not None and weight.size:
            low, high = weight.min(), weight.max()
            if not (low >= 0 and high < np.inf):
                raise find_bad_weight(graph) or AssertionError("there is one")
            self.max_weight = float(high) if self.is_float else int(high)
        self._bits = max(1, int(graph.n - 1).bit_length())
        self.out_cuts = _cut_evenly(graph.out_offsets)
        self.out = self._rows(graph.out_offsets, graph.out_targets, weight, self.out_cuts)
        self.in_cuts = self.out_cuts
        self._in: Rows | None = None if graph.directed else self.out
        self.sample = self._sample_weights()
        self.engines: dict[Any, Any] = {}  # with their buffers, by what they were made for
        self.runs = 0  # over whole graphs, by any engine

    @property
    def into(self) -> Rows:
        """Rows of in-edges; of a directed graph they are made at the first use."""
        if self._in is None:
            graph, weight = self.graph, self.graph.weight
            if weight is not None:
                moved = np.empty_like(weight)
                cursor = np.empty(graph.n, np.int64)
                transpose_weights_step(
                    graph.out_offsets, graph.out_targets, weight, graph.in_offsets, cursor, moved
                )  # fmt: skip
                weight = moved
            self.in_cuts = _cut_evenly(graph.in_offsets)
            self._in = self._rows(graph.in_offsets, graph.in_sources, weight, self.in_cuts)
        return self._in

    def longest_path(self) -> int | float:
        """No shortest path is longer than this."""
        return self.max_weight * max(self.graph.n - 1, 0)

    def too_far(self, dist: np.ndarray, unreached: Any) -> int | None:
        """A vertex whose distance does not fit into the type, if there is one; ``dist`` is final but for that."""
        largest = np.finfo(np.float64).max if self.is_float else int(unreached) - 1
        if self.longest_path() <= largest:
            return None
        reached = dist[dist != unreached]
        if reached.size and reached.max().item() + self.max_weight <= largest:
            return None
        found = int(find_overflow_step(self.out, dist, unreached))
        return found if found >= 0 else None

    def _rows(self, offsets: np.ndarray, ends: np.ndarray, weight: np.ndarray | None, cuts: np.ndarray) -> Rows:
        threads, ticket = numba.get_num_threads(), np.zeros(1, np.int64)
        begin = offsets.astype(np.int32) if ends.size < 2**31 else offsets  # half the bytes to wait for
        if weight is None:
            stop = self._bits + 1
            kind = np.uint32 if stop <= 32 else np.uint64
            words = ends.astype(kind)
            np.bitwise_or(words, kind(1 << self._bits), out=words)
            return Rows(begin, words, None, kind(self._bits))
        longest = int(np.diff(offsets).max(initial=0))
        if self.is_float or self.max_weight >= NARROW:
            weight = weight + 0.0 if self.is_float else weight.copy()  # -0.0 becomes 0.0
            words = ends.astype(np.uint32)
            spare = np.empty((threads, longest), weight.dtype), np.empty((threads, longest), np.uint32)
            sort_rows_step(cuts, offsets, ticket, *spare, weight, words)
            return Rows(begin, words, weight, np.uint32(32))
        stop = self._bits + int(self.max_weight).bit_length()
        kind = np.uint32 if stop <= 32 else np.uint64
        words = np.empty(ends.size, kind)
        pack_rows_step(cuts, offsets, ends, weight, self._bits, stop, ticket, np.empty((threads, longest), kind), words)
        return Rows(begin, words, None, kind(self._bits))

    def _sample_weights(self) -> np.ndarray:
        """Weights of edges taken at even distances, ascending."""
        weight = self.graph.weight
        if weight is None:
            return np.ones(min(self.graph.m, 1), np.int64)
        return np.sort(weight[:: max(1, weight.size // SAMPLE)])


def prepare_rows(graph: Graph) -> WeightedRows:
    """The graph's rows; made at the first call, and kept as long as the graph is."""
    if _KEPT not in graph.__dict__:
        graph.__dict__[_KEPT] = WeightedRows(graph)
    rows: WeightedRows = graph.__dict__[_KEPT]
    return rows


def _cut_evenly(offsets: np.ndarray) -> np.ndarray:
    """Vertices 0 = c0 < c1 < ... = n between which there are about equally many edges and vertices."""
    n = offsets.size - 1
    work = offsets + np.arange(n + 1)
    shares = np.linspace(0, work[-1], STRETCHES * numba.get_num_threads() + 1)
    return np.unique(np.append(np.searchsorted(work, shares[:-1]), n))


def find_bad_weight(graph: Graph) -> InputError | None:
    """What to say of the first edge that shortest paths cannot take; None if they can take all."""
    weight = graph.weight
    if weight is None or not (bad := np.flatnonzero(~(weight >= 0) | (weight == np.inf))).size:
        return None
    at = int(bad[0])
    u = int(np.searchsorted(graph.out_offsets, at, side="right")) - 1
    names = graph.user_ids[graph.user_position[[u, int(graph.out_targets[at])]]]
    value = weight[at].item()
    what = "negative" if value < 0 else "not a finite number"
    fix = "shortest paths need weights of at least 0: shift or drop the edge"
    return InputError(f"the weight of the edge from {names[0]} to {names[1]} is {what}", value=value, fix=fix)
