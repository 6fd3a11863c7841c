"""The columns of a result: how each goes from internal ids to the user's, isolated vertices included, and back.

Invariant: ``to_internal`` undoes ``to_user``; an array that ``to_user`` could not have written does not survive going
there and back unchanged, which is how ``validate`` finds values of isolated vertices and ids that are not as promised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cpu_engine.graph.graph import Graph

INT, REAL = np.dtype(np.int64), np.dtype(np.float64)
LDBC_UNREACHED = np.iinfo(np.int64).max


class Unfit(ValueError):
    """An array that this column cannot hold; the text says why."""


@dataclass(frozen=True)
class Field:
    """A number per vertex. ``isolated`` is what a vertex without edges has; ``own`` what the source itself has."""

    name: str
    meaning: str
    dtypes: tuple[np.dtype, ...] = (REAL,)
    isolated: float = 0
    own: float | None = None
    ldbc_unreached: object = None  # LDBC's word for a vertex that was not reached; None: all are

    def to_user(self, graph: Graph, inner: np.ndarray, source: int | None = None) -> np.ndarray:
        """Aligned with graph.user_ids."""
        blank = self.unreached(inner.dtype) if self.own is not None else self.isolated
        result = np.full(graph.user_ids.size, blank, inner.dtype)
        result[graph.user_position] = inner
        if source is not None and self.own is not None:
            result[np.searchsorted(graph.user_ids, source)] = self.own  # also right for a source without edges
        return result

    def settled(self, isolated: Mapping[str, float]) -> Field:
        """The column once a run has told what isolated vertices have, by the column's name."""
        return self

    def to_internal(self, graph: Graph, outer: np.ndarray) -> np.ndarray:
        """The values of the vertices that have edges."""
        return np.ascontiguousarray(outer[graph.user_position])

    def unreached(self, dtype: np.dtype) -> float:
        """What stands for "not reached": -1, or infinity where there is one."""
        return float("inf") if dtype.kind == "f" else -1

    def reached(self, outer: np.ndarray) -> np.ndarray:
        """Which vertices have a value at all."""
        if self.own is None:
            return np.ones(outer.shape, bool)
        return np.isfinite(outer) if outer.dtype.kind == "f" else outer >= 0


@dataclass(frozen=True)
class Label(Field):
    """A group per vertex, told by its smallest member: internally by internal id, outside by the user's."""

    dtypes: tuple[np.dtype, ...] = (INT,)

    def to_user(self, graph: Graph, inner: np.ndarray, source: int | None = None) -> np.ndarray:
        result = graph.user_ids.astype(INT)  # an isolated vertex is a group of its own
        if graph.n:
            ids = graph.user_ids[graph.user_position]
            smallest = np.full(graph.n, np.iinfo(INT).max, INT)
            np.minimum.at(smallest, inner, ids)
            result[graph.user_position] = smallest[inner]
        return result

    def to_internal(self, graph: Graph, outer: np.ndarray) -> np.ndarray:
        """Any naming of groups becomes the smallest internal id of each."""
        _, first, group = np.unique(outer[graph.user_position], return_index=True, return_inverse=True)
        smallest: np.ndarray = first.astype(np.int32)[group]
        return smallest


@dataclass(frozen=True)
class UserLabel(Field):
    """A group per vertex, named by some user id, inside as outside."""

    dtypes: tuple[np.dtype, ...] = (INT,)

    def to_user(self, graph: Graph, inner: np.ndarray, source: int | None = None) -> np.ndarray:
        result = graph.user_ids.astype(INT)
        result[graph.user_position] = inner
        return result


@dataclass(frozen=True)
class Shared(Field):
    """A number per vertex, of which all isolated vertices have the same, known only after the run."""

    def settled(self, isolated: Mapping[str, float]) -> Field:
        return replace(self, isolated=isolated.get(self.name, 0.0))


@dataclass(frozen=True)
class Partial(Shared):
    """A number per vertex that was asked for, none of them negative; -1 for the others."""

    def reached(self, outer: np.ndarray) -> np.ndarray:
        return outer >= 0


@dataclass(frozen=True)
class Level(Field):
    """A number of edges, -1 = not reached."""

    dtypes: tuple[np.dtype, ...] = (np.dtype(np.int32),)

    def to_user(self, graph: Graph, inner: np.ndarray, source: int | None = None) -> np.ndarray:
        return self.at_source(graph, graph.to_user_levels(inner), source)

    def at_source(self, graph: Graph, outer: np.ndarray, source: int | None) -> np.ndarray:
        """``outer`` with the source's own value, which a source without edges has as well."""
        if source is not None:
            outer[np.searchsorted(graph.user_ids, source)] = 0
        return outer


@dataclass(frozen=True)
class Parent(Field):
    """A vertex per vertex, -1 = none; the source's is itself."""

    dtypes: tuple[np.dtype, ...] = (INT,)

    def to_user(self, graph: Graph, inner: np.ndarray, source: int | None = None) -> np.ndarray:
        return self.at_source(graph, graph.to_user_parents(inner), source)

    def at_source(self, graph: Graph, outer: np.ndarray, source: int | None) -> np.ndarray:
        """``outer`` with the source as its own parent, which a source without edges is as well."""
        if source is not None:
            outer[np.searchsorted(graph.user_ids, source)] = source
        return outer

    def to_internal(self, graph: Graph, outer: np.ndarray) -> np.ndarray:
        named = outer[graph.user_position]
        position = np.clip(np.searchsorted(graph.user_ids, named), 0, max(0, graph.user_ids.size - 1))
        known = graph.user_ids[position] == named
        if np.any(~known & (named != -1)):
            raise Unfit("a parent is not a vertex of the graph")
        return np.where(known, graph.internal_of_position[position], -1).astype(np.int32)
