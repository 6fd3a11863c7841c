"""A graph of which every rank has its part and no rank the whole: what all know of it, and whom to ask for the rest.

Drivers, called by all ranks at the same point. Invariant: a rank's tables have an entry for each of its own vertices,
or for its share of the internal ids; none is over all vertices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.distributed.build import BuiltPart
from cpu_engine.graph.graph import no_such_vertex
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.copies import gather_at_masters
from cpu_engine.ranks.directory import Directory, even_cuts

_FAR = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class Outline:
    """What a job says of a graph, the same at every rank. ``weight``: one that is as heavy as the heaviest."""

    n: int
    m: int
    vertices: int
    directed: bool
    weight: np.ndarray | None
    meta: dict[str, Any]


class SharedGraph:
    """One rank's side of it."""

    def __init__(self, info: RankInfo, built: BuiltPart, outline: Outline) -> None:
        self.info, self.part, self.outline = info, built.part, outline
        self.user_ids, self.position_of = built.user_ids, built.position_of
        self.bounds = built.part.layout.bounds
        self.first, self.last = self.bounds[info.rank : info.rank + 2].tolist()  # the positions of this rank
        self.row_ids = built.range_ids  # the user's ids of all of them, ascending
        self._offset = built.first  # an id is this plus the position; None: ids follow no formula
        self.places = self.position_of[: self.part.masters] - self.first  # of the masters among them
        self._by_internal = Directory(info, even_cuts(outline.n, info.size))
        self._by_position = Directory(info, self.bounds)
        self._named: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """How many vertices are this rank's, isolated ones included."""
        return int(self.row_ids.size)

    @cached_property
    def internal_of_row(self) -> np.ndarray:
        """By place among this rank's vertices; -1 for an isolated one."""
        table = np.full(self.rows, -1, np.int64)
        table[self.places] = self.part.internal_of[: self.part.masters]
        return table

    def find(self, user_ids: Sequence[int]) -> Driver[list[int]]:
        """The internal ids of the user's vertices, -1 for an isolated one: each known to the rank that owns it.

        InputError, the same at every rank, if no rank has such a vertex.
        """
        low, high = int(_FAR.min), int(_FAR.max)
        wanted = np.array([min(max(one, low), high) for one in user_ids], np.int64)
        at = np.searchsorted(self.row_ids, wanted)
        inside = np.minimum(at, max(self.rows - 1, 0))
        here = (self.row_ids[inside] == wanted) if self.rows else np.zeros(wanted.size, np.bool_)
        mine = np.where(here, self.internal_of_row[inside] if self.rows else 0, -2)
        found = np.array((yield AllReduce(mine, "max")), np.int64)
        missing = np.flatnonzero(found == -2)
        if missing.size:
            error = yield from self._missing(int(user_ids[missing[0]]), int(wanted[missing[0]]))
            raise error
        return [int(one) for one in found]

    def _missing(self, asked: int, wanted: int) -> Driver[Any]:
        """The error that names the nearest vertices that there are."""
        ids = self.row_ids
        below, above = ids[ids < wanted], ids[ids > wanted]
        highs = yield AllReduce(np.array([one.max(initial=-1) for one in (ids, below)], np.int64), "max")
        lows = yield AllReduce(np.array([one.min(initial=_FAR.max) for one in (ids, above)], np.int64), "min")
        near = [int(highs[1])] if highs[1] >= 0 else []
        near += [int(lows[1])] if lows[1] != _FAR.max else []
        return no_such_vertex(asked, int(lows[0]), int(highs[0]), near)

    def names_of(self, internal: np.ndarray) -> Driver[np.ndarray]:
        """The user's ids of internal ids, -1 of what is negative: of copies here at once, of others by asking."""
        names = np.full(internal.size, -1, np.int64)
        local = self.part.local_of(internal)
        known = local >= 0
        names[known] = self.user_ids[local[known]]
        far = (internal >= 0) & ~known
        more = yield AllReduce(np.array([np.count_nonzero(far)], np.int64), "max")
        if more[0]:
            if self._named is None:
                own = self.part.internal_of[: self.part.masters]
                self._named = yield from self._by_internal.publish(own, self.user_ids[: self.part.masters])
            names[far] = yield from self._by_internal.ask(self._named, internal[far])
        return names

    def smallest_members(self, label: np.ndarray) -> Driver[np.ndarray]:
        """Of each master's group, told by an internal id, the smallest of the user's ids in it."""
        groups, place = np.unique(label.astype(np.int64), return_inverse=True)
        mine = np.full(groups.size, _FAR.max, np.int64)
        np.minimum.at(mine, place, self.user_ids[: self.part.masters])
        table = yield from self._by_internal.lowest(groups, mine)
        found: np.ndarray = yield from self._by_internal.ask(table, groups)
        return found[place]

    def names_at(self, positions: np.ndarray) -> Driver[np.ndarray]:
        """The user's ids at positions in the user's order: each asked of its owner, unless they follow."""
        if self._offset is not None:
            return positions.astype(np.int64) + self._offset
        found: np.ndarray = yield from self._by_position.ask(self.row_ids, positions)
        return found


def out_degrees(part: Part) -> Driver[np.ndarray]:
    """The masters' out-arcs on all parts together."""
    degree = np.diff(part.out_offsets)
    yield from gather_at_masters(part, "out", degree, np.add)
    return degree[: part.masters].copy()
