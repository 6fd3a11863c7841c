"""A NetworkX graph's dict of dicts as rows of numbers: by compiled code where it is large and plain, else by Python.

Invariant: both ways give the same rows. NetworkX's own invariants are relied upon: every neighbour is a node, and an
undirected edge is in the rows of both its ends (the second is checked).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol

import numba
import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.kernels import adjacency as kernels

_MOST = 2**62  # ids beyond are numbered like names
_MOST_NARROW = 2**31 - 1
_FEW = 32  # rows whose neighbours are read at once
_MANY_ROWS, _MANY_ARCS = 2_048, 20_000  # from either on compiled code reads them
_PARTS_PER_LANE = 4


class Numbers(Protocol):
    """Which row a node has."""

    def __getitem__(self, node: Any) -> int: ...


@dataclass(frozen=True)
class Rows:
    """Neighbours of row r: ``target[offsets[r] : offsets[r + 1]]``, as ids; ``own[r]`` is the id of the row's node.

    Ids are the nodes themselves, or where ``nodes`` is given places in that.
    """

    own: np.ndarray  # int32 or int64
    offsets: np.ndarray
    target: np.ndarray
    nodes: list[Any] | None = None
    numbers: Numbers | None = None

    @property
    def dense(self) -> bool:
        """Whether the ids are 0, 1, 2, ... in this order."""
        return self.nodes is not None or bool(np.array_equal(self.own, np.arange(self.own.size)))

    def half(self) -> tuple[np.ndarray, np.ndarray]:
        """Each edge of an undirected graph once, from its smaller end, and loops; InputError if one end lacks it."""
        if self.target.dtype != np.int32:
            source = np.repeat(self.own, np.diff(self.offsets))
            upper = source <= self.target
            if 2 * np.count_nonzero(upper) - np.count_nonzero(source == self.target) != source.size:
                raise _one_sided()
            return source[upper], self.target[upper]
        parts = _parts(self.offsets)
        facts = np.zeros((parts.size - 1, kernels.FACTS), np.int64)
        kernels.survey_halves_step(self.offsets, self.target, self.own, parts, facts)
        in_all = facts.sum(axis=0)
        if in_all[kernels.ABOVE] != in_all[kernels.BELOW] or in_all[kernels.SUM_ABOVE] != in_all[kernels.SUM_BELOW]:
            raise _one_sided()
        begin = np.zeros(parts.size, np.int64)
        np.cumsum(np.diff(self.offsets[parts]) - facts[:, kernels.BELOW], out=begin[1:])
        source, kept = np.empty((2, int(begin[-1])), np.int32)
        kernels.keep_half_step(self.offsets, self.target, self.own, parts, begin, source, kept)
        return source, kept


class HashedNumbers:
    """Numbers of nodes by their hashes, which all differ."""

    def __init__(self, nodes: list[Any], slot_mark: np.ndarray, slot_number: np.ndarray) -> None:
        self._nodes, self.slot_mark, self.slot_number = nodes, slot_mark, slot_number

    def __getitem__(self, node: Any) -> int:
        number = kernels.find_mark_step(hash(node), self.slot_mark, self.slot_number)
        if number < 0 or (self._nodes[number] is not node and self._nodes[number] != node):  # NaN is not NaN's equal
            raise KeyError(node)
        return int(number)


def rows_of(adjacency: Mapping[Any, Mapping[Any, Any]]) -> Rows:
    """All rows of ``{node: {neighbour: ...}}``."""
    found = None
    if _is_plain(adjacency) and _is_large(adjacency):
        found = _compiled_at_once(adjacency) if _others_run() else _compiled(adjacency)
    return found or _interpreted(adjacency)


def _others_run() -> bool:
    """Whether there are Python threads beside this one, which might change a graph while it is read."""
    return len(sys._current_frames()) > 1


def _is_plain(adjacency: object) -> bool:
    return (
        type(adjacency) is dict
        and sys.implementation.name == "cpython"
        and object.__basicsize__ == 16  # no debug build
        and not getattr(numba.config, "DISABLE_JIT", False)
    )


def _is_large(adjacency: Mapping[Any, Mapping[Any, Any]]) -> bool:
    return len(adjacency) >= _MANY_ROWS or sum(map(len, adjacency.values())) >= _MANY_ARCS


def _compiled(adjacency: Mapping[Any, Mapping[Any, Any]]) -> Rows | None:
    """None if the nodes are ids of more than 31 bits, or no numbers, texts and tuples of these of different hashes."""
    count, kinds = len(adjacency), np.array([id(int), id(float), id(str), id(tuple)])
    node, row, mark = np.empty((3, count), np.int64)
    kernels.list_rows_step(id(adjacency), node, row)
    offsets, strange = np.zeros(count + 1, np.int64), np.zeros(1, np.uint8)
    kernels.measure_rows_step(row, id(dict), offsets[1:], strange)
    if strange[0]:
        return None
    np.cumsum(offsets, out=offsets)
    whole = kernels.read_marks_step(node, kinds, False, mark) and 0 <= mark.min() <= mark.max() < _MOST
    if whole and mark.max() > _MOST_NARROW:
        return None
    slots = _slots(0 if whole else count)
    if not whole and not (kernels.read_marks_step(node, kinds, True, mark) and kernels.enter_marks_step(mark, *slots)):
        return None
    parts, target = _parts(offsets), np.empty(int(offsets[-1]), np.int32)
    strange = np.zeros(parts.size - 1, np.uint8)
    kernels.read_rows_step(row, offsets, parts, kinds, *slots, target, strange)
    return None if strange.any() else _read(whole, mark, offsets, target, list(adjacency), slots)


def _compiled_at_once(adjacency: Mapping[Any, Mapping[Any, Any]]) -> Rows | None:
    """The same by one thread, which holds the GIL from its first look at a row to its last."""
    nodes, kinds = list(adjacency), np.array([id(int), id(float), id(str), id(tuple)])
    node, mark = np.fromiter(map(id, nodes), np.int64, len(nodes)), np.empty(len(nodes), np.int64)
    whole = kernels.read_marks_step(node, kinds, False, mark) and 0 <= mark.min() <= mark.max() < _MOST
    if whole and mark.max() > _MOST_NARROW:
        return None
    offsets, slots = np.zeros(node.size + 1, np.int64), _slots(0 if whole else node.size)
    fine, target = kernels.read_at_once_step(id(adjacency), node, id(dict), kinds, whole, mark, offsets, *slots)
    return _read(whole, mark, offsets, target, nodes, slots) if fine else None


def _slots(count: int) -> tuple[np.ndarray, np.ndarray]:
    """An empty table for so many marks."""
    size = 1 << (2 * count).bit_length() if count else 0
    return np.empty(size, np.int64), np.full(size, -1, np.int32)


def _read(
    whole: bool,
    mark: np.ndarray,
    offsets: np.ndarray,
    target: np.ndarray,
    nodes: list[Any],
    slots: tuple[np.ndarray, np.ndarray],
) -> Rows:
    if whole:
        return Rows(mark.astype(np.int32), offsets, target)
    return Rows(np.arange(mark.size, dtype=np.int32), offsets, target, nodes, HashedNumbers(nodes, *slots))


def _interpreted(adjacency: Mapping[Any, Mapping[Any, Any]]) -> Rows:
    nodes = list(adjacency)
    offsets = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, adjacency.values()), np.int64, len(nodes)), out=offsets[1:])
    if set(map(type, nodes)) <= {int} and (not nodes or (min(nodes) >= 0 and max(nodes) < _MOST)):
        target = _whole_ends(adjacency, int(offsets[-1]))
        if target is not None:
            return Rows(np.array(nodes, np.int64), offsets, target)
    numbers = dict(zip(nodes, range(len(nodes)), strict=True))
    ends = map(numbers.__getitem__, chain.from_iterable(adjacency.values()))
    return Rows(np.arange(len(nodes)), offsets, np.fromiter(ends, np.int64, int(offsets[-1])), nodes, numbers)


def _whole_ends(adjacency: Mapping[Any, Any], total: int) -> np.ndarray | None:
    """The neighbours of all vertices, one after the other; None if one is no integer, although it equals one.

    A few rows at a time, so that the objects are still in the cache when their values are taken.
    """
    target, done = np.empty(total, np.int64), 0
    rows = filter(None, adjacency.values())  # so that nothing is left where nothing comes
    try:
        while few := list(chain.from_iterable(islice(rows, _FEW))):
            struct.pack_into(f"{len(few)}q", target.data, target.itemsize * done, *few)
            done += len(few)
    except struct.error:
        return None
    return target


def _parts(offsets: np.ndarray) -> np.ndarray:
    """Consecutive rows, about equally many arcs in each part."""
    count, total = numba.get_num_threads() * _PARTS_PER_LANE, int(offsets[-1])
    bounds = np.searchsorted(offsets, total * np.arange(count + 1) // count)
    bounds[0], bounds[-1] = 0, offsets.size - 1
    return bounds.astype(np.int64)


def _one_sided() -> InputError:
    return InputError(
        "the graph is undirected, but an edge is in the row of one of its ends only",
        fix="change NetworkX graphs by their methods, not by their dicts",
    )
