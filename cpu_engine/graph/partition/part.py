"""One part of a graph: its arcs under local ids, its masters, its mirrors, and who mirrors its masters.

Local ids: masters first, by ascending internal id (so hubs first, and the part's share of the core is a prefix); then
mirrors, grouped by owner, within a group by ascending internal id. Invariants: all vertices that the part owns are
masters, arcs or not; a mirror has at least one arc here. Rows of both kinds are sorted by the neighbour's *internal*
id, so that the best neighbour comes first - not by its local id.

What mirrors exist follows from the policy: with oec a mirror has in-arcs only, with iec out-arcs only; with cvc and 2d
either kind but never both; with uvc only a vertex of high in-degree has mirrors with in-arcs. A symmetric layout of a
directed graph has every arc both ways: the in-arcs of a vertex are its in-neighbours and its out-neighbours, and who is
both is there twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cpu_engine.graph.partition.layout import Layout

READ = 1  # the mirror has out-arcs: its value is read there, and must be broadcast to it
WRITTEN = 2  # the mirror has in-arcs: its value is written there, and must be reduced from it

Lists = tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Links:
    """Which masters of a part the others mirror: for q, the range [bounds[q], bounds[q + 1]) of the two arrays.

    In q's order: position i here is position i among q's mirrors of this part's vertices.
    """

    bounds: np.ndarray  # int64[parts + 1]
    masters: np.ndarray  # int32, local ids, ascending within a range
    roles: np.ndarray  # uint8, READ and WRITTEN


@dataclass(frozen=True, eq=False)
class Part:
    """See the module. ``links`` is None until the parts have told each other their mirrors (``link``)."""

    layout: Layout
    part: int
    internal_of: np.ndarray  # int32[L], by local id
    masters: int  # local ids [0, masters) are masters
    mirror_bounds: np.ndarray  # int64[parts + 1]: mirrors owned by q are local ids [bounds[q], bounds[q + 1])
    out_offsets: np.ndarray  # int64[L + 1]
    out_targets: np.ndarray  # int32[arcs], local ids
    in_offsets: np.ndarray  # int64[L + 1]
    in_sources: np.ndarray  # int32[arcs], local ids; the same arcs, transposed
    has_out: np.ndarray  # uint8[L]
    has_in: np.ndarray  # uint8[L]
    links: Links | None = None
    out_weight: np.ndarray | None = None  # int64 or float64[arcs], aligned with out_targets, if the layout is weighted

    @property
    def n(self) -> int:
        """Vertices of the whole graph."""
        return self.layout.n

    @property
    def m(self) -> int:
        """Arcs of the whole graph."""
        return self.layout.m

    @property
    def size(self) -> int:
        """Local vertices, masters and mirrors."""
        return int(self.internal_of.size)

    @property
    def mirrors(self) -> int:
        return self.size - self.masters

    @property
    def arcs(self) -> int:
        """Local arcs."""
        return int(self.out_targets.size)

    @cached_property
    def mirrored(self) -> Lists:
        """By part q: the local ids of the masters that q mirrors, in q's order."""
        links = self._linked()
        return tuple(links.masters[links.bounds[q] : links.bounds[q + 1]] for q in range(self.layout.parts))

    @cached_property
    def masters_read_at(self) -> Lists:
        """By part q: the masters whose mirrors at q have out-arcs, in q's order."""
        return self._mirrored_as(READ)

    @cached_property
    def masters_written_at(self) -> Lists:
        """By part q: the masters whose mirrors at q have in-arcs, in q's order."""
        return self._mirrored_as(WRITTEN)

    @cached_property
    def mirrors_with_out(self) -> Lists:
        """By owner q: the local ids of the mirrors with out-arcs, int32."""
        return self._mirrors_where(self.has_out)

    @cached_property
    def mirrors_with_in(self) -> Lists:
        """By owner q: the local ids of the mirrors with in-arcs, int32."""
        return self._mirrors_where(self.has_in)

    def local_of(self, internal_ids: np.ndarray) -> np.ndarray:
        """The local id of each of these internal ids, -1 for a vertex that has no copy here; int32."""
        wanted = np.asarray(internal_ids)
        found = np.full(wanted.shape, -1, np.int32)
        for begin, end in ((0, self.masters), *pairwise(self.mirror_bounds.tolist())):
            if begin < end:
                at = begin + np.searchsorted(self.internal_of[begin:end], wanted)
                here = (at < end) & (self.internal_of[np.minimum(at, end - 1)] == wanted)
                found[here] = at[here]
        return found

    def _linked(self) -> Links:
        if self.links is None:
            raise ValueError(f"part {self.part} has not been linked to the others yet")
        return self.links

    def _mirrored_as(self, role: int) -> Lists:
        links = self._linked()
        return tuple(
            links.masters[begin:end][links.roles[begin:end] & role != 0]
            for begin, end in zip(links.bounds[:-1], links.bounds[1:], strict=True)
        )

    def _mirrors_where(self, has_arcs: np.ndarray) -> Lists:
        return tuple(
            (begin + np.flatnonzero(has_arcs[begin:end])).astype(np.int32)
            for begin, end in zip(self.mirror_bounds[:-1], self.mirror_bounds[1:], strict=True)
        )
