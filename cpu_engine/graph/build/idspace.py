"""The user's vertex ids as positions 0..span-1, so that everything after works on small integers.

Invariant: ascending ids have ascending positions. Three ways, by what the ids look like: a declared dense range
(nothing to find out), a compact range (mark and count), anything else (sort the distinct ids, hash each end).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.kernels.csr import mark_present_step
from cpu_engine.graph.kernels.idtable import collect_ids_step, fill_table_step, look_up_step
from cpu_engine.graph.memory import require_bytes

MAX_NARROW = 2**31 - 1  # vertices that int32 can number
MAX_VERTICES = 2**36  # a row's place and a column share 63 bits
COMPACT_SLACK = 2  # a range is compact if it has at most this many places per id mentioned,
COMPACT_FLOOR = 1024  # and this many more
_FIRST_LOG = 12  # of the set that distinct ids are collected in; it grows
_CACHED = 1 << 16


@dataclass(frozen=True)
class IdSpace:
    """``src - first`` and ``dst - first`` are positions.

    ``present`` marks the positions that are vertices although they may have no edges (None: all are). ``declared``: the
    ids of the edges have not been looked at yet, whoever reads them first must ``check`` them.
    """

    src: np.ndarray
    dst: np.ndarray
    first: int
    span: int
    present: np.ndarray | None = None
    ids: np.ndarray | None = None  # the sorted ids, where positions are not ``id - first``
    declared: bool = False
    path: str = ""
    scratch: tuple[np.ndarray, ...] = ()  # memory of src and dst that is free as soon as they have been read

    def check(self, low: int, high: int) -> None:
        """Refuse a list whose lowest or highest id (low > high: it is empty) is not in the declared range."""
        if self.declared and low <= high:
            require_not_negative(low, self.path)
            require_declared(low, high, self.first, self.span, self.path)

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
    narrow = edges.src.dtype == edges.dst.dtype == np.int32
    src, dst = (kernel_input(ends, np.int32 if narrow else np.int64) for ends in (edges.src, edges.dst))
    vertices = kernel_input(np.empty(0, np.int64) if edges.vertices is None else edges.vertices, np.int64)
    if edges.id_range is not None:
        return _declared_range(edges, src, dst, vertices)
    mentioned = [ids for ids in (src, dst, vertices) if ids.size]
    low, high = _bounds(mentioned)
    require_not_negative(low, edges.path)
    span = high - low + 1
    if span <= COMPACT_SLACK * sum(a.size for a in mentioned) + COMPACT_FLOOR:
        check_count(span, edges.path)
        present = np.zeros(span, np.uint8)
        mark_present_step(vertices, low, present)
        return IdSpace(src, dst, low, span, present)
    return _sparse_ids(edges, src, dst, mentioned)


def kernel_input(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array as kernels get it: contiguous, of one type, read-only whether or not the caller's is.

    A numba kernel is compiled anew for every combination of type, layout and writability; this leaves one.
    """
    view: np.ndarray = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def _bounds(mentioned: Sequence[np.ndarray]) -> tuple[int, int]:
    """Lowest and highest of all; (0, -1) when there is nothing."""
    low, high = np.iinfo(np.int64).max, -1
    for ids in mentioned:
        for at in range(0, ids.size, _CACHED):  # both at once, while the block is in the cache
            block = ids[at : at + _CACHED]
            low, high = min(low, int(block.min())), max(high, int(block.max()))
    return min(low, high + 1), high


def require_not_negative(low: int, path: str) -> None:
    """Refuse a list whose lowest id is negative."""
    if low < 0:
        raise InputError("negative vertex id", path=path or None, value=low, fix="number the vertices from 0 or above")


def require_declared(low: int, high: int, first: int, span: int, path: str) -> None:
    """Refuse a list whose lowest or highest id (low > high: it is empty) is not in the declared range."""
    if low <= high and (low < first or high >= first + span):
        raise InputError(
            f"a vertex id is outside the declared range {first}..{first + span - 1}",
            path=path or None,
            value=low if low < first else high,
            fix="correct the vertex count in the file, or the id",
        )


def _declared_range(edges: EdgeList, src: np.ndarray, dst: np.ndarray, vertices: np.ndarray) -> IdSpace:
    assert edges.id_range is not None
    first, count = edges.id_range
    if first < 0 or count < 0:
        raise InputError(
            "the declared id range is not valid",
            path=edges.path or None,
            value=edges.id_range,
            fix="use non-negative ids",
        )
    check_count(count, edges.path)
    space = IdSpace(src, dst, first, count, declared=True, path=edges.path)
    space.check(*_bounds([vertices]))
    return space


def _sparse_ids(edges: EdgeList, src: np.ndarray, dst: np.ndarray, mentioned: list[np.ndarray]) -> IdSpace:
    ids = distinct(mentioned)
    check_count(ids.size, edges.path)
    log_size = max(int(2 * ids.size - 1).bit_length(), 1)
    position_type = np.dtype(np.int32 if ids.size <= MAX_NARROW else np.int64)
    require_bytes(
        position_type.itemsize * ((1 << log_size) + 2 * src.size),
        f"numbering {ids.size} sparse vertex ids",
        "use a machine with more memory, or number the vertices from 0",
    )
    slots = np.zeros(1 << log_size, position_type)
    shift = _hash_shift(slots)
    position = np.empty((2, src.size), position_type)
    with np.errstate(over="ignore"):  # wrapping is the hash; numpy would warn when the JIT is off
        fill_table_step(ids, slots, shift)
        look_up_step(src, ids, slots, shift, position[0])
        look_up_step(dst, ids, slots, shift, position[1])
    src, dst = (kernel_input(ends, position_type.type) for ends in position)
    return IdSpace(src, dst, 0, ids.size, ids=ids, scratch=(position,))


def distinct(mentioned: Iterable[np.ndarray]) -> np.ndarray:
    """The distinct ids of all arrays, ascending. Only they are sorted: they are usually far fewer than the ends."""
    known, count = np.full(1 << _FIRST_LOG, -1, np.int64), 0
    with np.errstate(over="ignore"):
        for keys in mentioned:
            at = 0
            while at < keys.size:
                at, count = collect_ids_step(keys, at, known, count, _hash_shift(known))
                if at < keys.size:
                    found = known[known >= 0]
                    known = np.full(2 * known.size, -1, np.int64)
                    collect_ids_step(found, 0, known, 0, _hash_shift(known))
    return np.sort(known[known >= 0])


def _hash_shift(table: np.ndarray) -> np.uint64:
    return np.uint64(64 - (table.size.bit_length() - 1))


def check_count(count: int, path: str) -> None:
    """Refuse more vertices than can be numbered."""
    if count > MAX_VERTICES:
        raise InputError(
            f"{count} vertices are more than the {MAX_VERTICES} that can be numbered",
            path=path or None,
            fix="split the graph, or drop the vertices that have no edges",
        )
