"""A graph ready to traverse, and the way between its internal ids and the user's.

Internal ids 0..n-1 number the vertices that have edges, by descending total degree (ties: ascending user id), so any
"hub" set is a prefix. ``user_ids`` holds every vertex, isolated ones included. Invariants: rows are sorted ascending;
an undirected graph stores each edge in both rows (a self-loop once) and its in-arrays are the out-arrays themselves.
No code writes to the arrays: they are shared, and may be a file's pages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.build.spare import SpareArrays
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.kernels.restore import (
    pack_search_step,
    restore_levels_step,
    restore_parents_step,
    unpack_search_step,
)
from cpu_engine.threads import threads_for


def best_in_neighbours(in_offsets: np.ndarray, in_sources: np.ndarray) -> np.ndarray:
    """Of each vertex the in-neighbour of highest degree (the first in its row), the vertex itself where it has none."""
    begin = in_offsets[:-1]
    some = begin < in_offsets[1:]
    if begin.size and some.all():  # an undirected graph
        return in_sources[begin]
    best = np.arange(begin.size, dtype=in_sources.dtype)
    best[some] = in_sources[begin[some]]
    return best


def first_hanging(degree: np.ndarray) -> int:
    """The first id from which on no vertex has more than one edge, in and out together."""
    several = np.flatnonzero(degree > 1)
    return int(several[-1]) + 1 if several.size else 0


def no_such_vertex(wanted: int, first: int, last: int, near: list[int]) -> InputError:
    """The error for an id that no vertex has; ``near``: the nearest that there are."""
    return InputError(
        f"vertex {wanted} is not in the graph (ids {first}..{last}, nearest {' and '.join(map(str, near))})",
        fix=f"name a vertex of the graph, for example {near[0]}",
    )


@dataclass(frozen=True, eq=False)
class Graph:
    """Compressed rows (out and in), id maps and provenance."""

    n: int
    m: int
    directed: bool
    out_offsets: np.ndarray  # int64[n + 1]
    out_targets: np.ndarray  # int32[m], ascending within a row
    in_offsets: np.ndarray
    in_sources: np.ndarray
    weight: np.ndarray | None  # int64 or float64, aligned with out_targets
    user_ids: np.ndarray  # int64[N], ascending, all vertices
    user_position: np.ndarray  # int32[n]: index into user_ids
    internal_of_position: np.ndarray  # int32[N]: internal id, or -1 for an isolated vertex
    meta: dict[str, Any] = field(default_factory=dict)
    # What pull wants to know of each vertex before its row; found out here where the caller does not give it.
    best_in: np.ndarray = None  # type: ignore[assignment]  # int32[n]: the in-neighbour of highest degree
    hanging_start: int = -1  # from this id on, no vertex has more than one edge, in and out together

    def __post_init__(self) -> None:
        expected = {
            "out_offsets": self.n + 1,
            "in_offsets": self.n + 1,
            "out_targets": self.m,
            "in_sources": self.m,
            "user_position": self.n,
            "internal_of_position": self.user_ids.shape[0],
        }
        if self.weight is not None:
            expected["weight"] = self.m
        if self.best_in is not None:
            expected["best_in"] = self.n
        for name, length in expected.items():
            if getattr(self, name).shape != (length,):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not ({length},)")
        if self.hanging_start > self.n:
            raise ValueError(f"hanging_start is {self.hanging_start}, beyond all {self.n} vertices")
        if self.best_in is None:
            object.__setattr__(self, "best_in", best_in_neighbours(self.in_offsets, self.in_sources))
        if self.hanging_start < 0:
            object.__setattr__(self, "hanging_start", first_hanging(self.degree()))

    @property
    def vertices(self) -> int:
        """All of them, isolated ones included."""
        return int(self.user_ids.size)

    def degree(self) -> np.ndarray:
        """Total degree of each internal vertex, int64, descending: row length; for a directed graph out plus in."""
        out = np.diff(self.out_offsets)
        return out + np.diff(self.in_offsets) if self.directed else out

    def internal_id(self, user_id: int) -> int:
        """The internal id of a user's vertex, -1 if it is isolated; InputError if there is no such vertex."""
        ids, wanted = self.user_ids, int(user_id)
        if ids.size == 0:
            raise InputError(
                f"vertex {wanted} is not in the graph (it has no vertices)", fix="check that the right graph is read"
            )
        first, last = int(ids[0]), int(ids[-1])
        # Python integers first: an id beyond 64 bits must not reach searchsorted.
        at = 0 if wanted < first else ids.size if wanted > last else int(np.searchsorted(ids, wanted))
        if at < ids.size and int(ids[at]) == wanted:
            return int(self.internal_of_position[at])
        raise no_such_vertex(wanted, first, last, [int(ids[i]) for i in (at - 1, at) if 0 <= i < ids.size])

    @cached_property
    def user_id_of(self) -> np.ndarray:
        """The user's id of each internal vertex, in the narrowest type that holds all: made once, read per result."""
        ids = self.user_ids[self.user_position]
        return ids.astype(np.int32) if ids.size and ids.min() >= 0 and ids.max() < 2**31 else ids

    def edge_list(self) -> EdgeList:
        """The edges in the user's ids: each arc of a directed graph, each edge of an undirected one once."""
        row = np.repeat(np.arange(self.n, dtype=self.out_targets.dtype), np.diff(self.out_offsets))
        column, weight = self.out_targets, self.weight
        if not self.directed:
            once = row <= column
            row, column, weight = row[once], column[once], None if weight is None else weight[once]
        ids, name = self.user_id_of, self.user_ids
        dense = name.size > 0 and int(name[-1]) - int(name[0]) + 1 == name.size
        return EdgeList(
            ids[row],
            ids[column],
            weight,
            vertices=None if dense else name,
            id_range=(int(name[0]), name.size) if dense else None,
            directed=None if self.meta.get("directed_assumed") else self.directed,
            format="store",
            path=str(self.meta.get("path", "")),
        )

    @cached_property
    def _spare(self) -> SpareArrays:
        return SpareArrays()

    @cached_property
    def _id_bits(self) -> int:
        """How many bits hold every ``user_id_of`` plus one, 31 if that is more."""
        return min(31, (int(self.user_id_of.max()) + 1).bit_length())

    def to_user_levels(self, level: np.ndarray) -> np.ndarray:
        """Levels aligned with ``user_ids``, int32; -1 = not reached, as every isolated vertex is."""
        result = self._spare.take("level", self.user_ids.size, np.int32)
        with threads_for(self.user_ids.size):
            restore_levels_step(self.internal_of_position, level, result)
        return result

    def to_user_parents(self, parent: np.ndarray) -> np.ndarray:
        """Parents as user ids aligned with ``user_ids``, int64; -1 = none."""
        if self.n == 0:  # no vertex to look at
            return np.full(self.user_ids.size, -1, np.int64)
        result = self._spare.take("parent", self.user_ids.size, np.int64)
        with threads_for(self.user_ids.size):
            restore_parents_step(self.internal_of_position, self.user_id_of, parent, result)
        return result

    def to_user_search(self, level: np.ndarray, parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``to_user_levels`` and ``to_user_parents`` of one search, in about half their time."""
        if self.n == 0 or self.user_id_of.dtype != np.int32:
            return self.to_user_levels(level), self.to_user_parents(parent)
        size = self.user_ids.size
        found = self._spare.take("level", size, np.int32), self._spare.take("parent", size, np.int64)
        bits, word = self._id_bits, self._spare.take("word", self.n, np.int32)
        with threads_for(size):
            lowest, highest = pack_search_step(level, parent, self.user_id_of, bits, word)
            if lowest < -1 or highest + 1 >= 1 << (31 - bits):
                bits, word = 32, self._spare.take("wide word", self.n, np.int64)
                pack_search_step(level, parent, self.user_id_of, bits, word)
            unpack_search_step(self.internal_of_position, word, bits, *found)
        return found


def require_narrow_ids(graph: Graph, who: str) -> None:
    """InputError unless 32 bits number the vertices, which is what ``who`` (several) do."""
    if graph.out_targets.dtype != np.int32:
        raise InputError(
            f"{who} number vertices with 32 bits, and this graph needs 64",
            value=graph.n,
            fix="use a graph with fewer than 2,147,483,648 vertices that have edges",
        )
