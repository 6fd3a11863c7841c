"""The user's vertex ids as positions 0..span-1, so that everything after works on small integers.

Invariant: ascending ids have ascending positions. Three ways, by what the ids look like: a declared dense range
(nothing to find out), a compact range (mark and count), anything else (sort the distinct ids, hash each end).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.memory import require_bytes
from cpu_engine.kernels.csr import mark_present_step
from cpu_engine.kernels.idtable import fill_table_step, look_up_step

MAX_VERTICES = 2**31 - 1  # internal ids are int32
COMPACT_SLACK = 2  # a range is compact if it has at most this many places per id mentioned
_CHUNK = 1 << 22


@dataclass(frozen=True)
class IdSpace:
    """``src - first`` and ``dst - first`` are positions; ``present`` tells which positions are vertices (None: all)."""

    src: np.ndarray
    dst: np.ndarray
    first: int
    span: int
    present: np.ndarray | None
    ids: np.ndarray | None  # the sorted ids, where positions are not ``id - first``

    def user_ids(self) -> np.ndarray:
        """All vertices' ids, ascending, int64."""
        if self.ids is not None:
            return self.ids
        if self.present is None:
            return np.arange(self.first, self.first + self.span, dtype=np.int64)
        return np.flatnonzero(self.present) + np.int64(self.first)

    def user_id(self, position: int) -> int:
        """The id at one position."""
        return int(self.ids[position]) if self.ids is not None else self.first + int(position)


def resolve_ids(edges: EdgeList) -> IdSpace:
    """Find the vertices of an edge list and how their ids map to positions."""
    if edges.src.shape != edges.dst.shape or edges.src.ndim != 1:
        raise ValueError(f"src {edges.src.shape} and dst {edges.dst.shape} must be one-dimensional and of equal length")
    src, dst = kernel_input(edges.src, np.int64), kernel_input(edges.dst, np.int64)
    mentioned = [src, dst] if edges.vertices is None else [src, dst, kernel_input(edges.vertices, np.int64)]
    mentioned = [ids for ids in mentioned if ids.size]
    low = min((int(a.min()) for a in mentioned), default=0)
    high = max((int(a.max()) for a in mentioned), default=-1)
    if low < 0:
        raise InputError(
            "negative vertex id", path=edges.path or None, value=low, fix="number the vertices from 0 or above"
        )
    if edges.id_range is not None:
        return _declared_range(edges, src, dst, low, high)
    span = high - low + 1
    if span <= COMPACT_SLACK * sum(a.size for a in mentioned) + 1024 and span <= MAX_VERTICES:
        return IdSpace(src, dst, low, span, _mark_present(mentioned, low, span), None)
    return _sparse_ids(edges, src, dst, mentioned)


def kernel_input(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array as kernels get it: contiguous, of one type, read-only whether or not the caller's is.

    A numba kernel is compiled anew for every combination of type, layout and writability; this leaves one.
    """
    view: np.ndarray = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def _declared_range(edges: EdgeList, src: np.ndarray, dst: np.ndarray, low: int, high: int) -> IdSpace:
    assert edges.id_range is not None
    first, count = edges.id_range
    if first < 0 or count < 0:
        raise InputError(
            "the declared id range is not valid",
            path=edges.path or None,
            value=edges.id_range,
            fix="use non-negative ids",
        )
    _check_count(count, edges)
    if high >= low and (low < first or high >= first + count):
        raise InputError(
            f"a vertex id is outside the declared range {first}..{first + count - 1}",
            path=edges.path or None,
            value=low if low < first else high,
            fix="correct the vertex count in the file, or the id",
        )
    return IdSpace(src, dst, first, count, None, None)


def _mark_present(mentioned: list[np.ndarray], low: int, span: int) -> np.ndarray | None:
    present = np.zeros(span, np.uint8)
    for ids in mentioned:
        mark_present_step(ids, low, present)
    return None if present.all() else present


def _sparse_ids(edges: EdgeList, src: np.ndarray, dst: np.ndarray, mentioned: list[np.ndarray]) -> IdSpace:
    # In chunks, because the distinct ids are usually far fewer than the edges' ends.
    parts = [np.unique(a[i : i + _CHUNK]) for a in mentioned for i in range(0, a.size, _CHUNK)]
    ids = np.unique(np.concatenate(parts)).astype(np.int64, copy=False)
    del parts
    _check_count(ids.size, edges)
    log_size = max(int(2 * ids.size - 1).bit_length(), 1)
    require_bytes(
        (4 << log_size) + 8 * src.size,
        f"numbering {ids.size} sparse vertex ids",
        "use a machine with more memory, or number the vertices from 0",
    )
    slots = np.zeros(1 << log_size, np.int32)
    shift = np.uint64(64 - log_size)
    ends = []
    with np.errstate(over="ignore"):  # wrapping is the hash; numpy would warn when the JIT is off
        fill_table_step(ids, slots, shift)
        for keys in (src, dst):
            position = np.empty(keys.size, np.int32)
            look_up_step(keys, ids, slots, shift, position)
            ends.append(kernel_input(position, np.int32))
    return IdSpace(ends[0], ends[1], 0, ids.size, None, ids)


def _check_count(count: int, edges: EdgeList) -> None:
    if count > MAX_VERTICES:
        raise InputError(
            f"{count} vertices are more than the {MAX_VERTICES} that 32-bit internal ids can number",
            path=edges.path or None,
            fix="split the graph, or drop the vertices that have no edges",
        )
