"""A rank's part out of the arcs that were dealt to it: local ids, mirrors, rows both ways, links.

Invariant: what a vertex is called - internal id, position, the user's id - comes from its owner. A rank holds O(its
arcs, its vertices and mirrors), and a bit for each place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.build.idspace import MAX_NARROW
from cpu_engine.graph.distributed import kernels
from cpu_engine.graph.distributed.numbering import Kind, Numbering
from cpu_engine.graph.distributed.trade import Pieces, offsets_of
from cpu_engine.graph.memory import return_freed
from cpu_engine.graph.partition import MirrorList, link, mirror_lists
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import Part

_NO_NAMES = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class BuiltPart:
    """A rank's part, and which vertices it has."""

    part: Part
    vertices: int  # of the whole graph, isolated ones included
    position_of: np.ndarray  # int64, by local id: place in the user's order
    loops: int  # in the whole list, dropped or not
    user_ids: np.ndarray  # int64, by local id: what the user calls this rank's masters and mirrors
    first: int | None = None  # an id is this plus the position; None: ids follow no formula
    isolated: np.ndarray = field(default_factory=_NO_NAMES.copy)  # int64: ids in this rank's range, without a formula
    meta: dict[str, Any] = field(default_factory=dict)  # what ``Graph.meta`` says, the same at every rank

    @property
    def range_ids(self) -> np.ndarray:
        """The user's ids of all positions in this rank's range, isolated ones included; int64, ascending."""
        begin, end = self.part.layout.bounds[self.part.part : self.part.part + 2].tolist()
        if self.first is not None:
            return np.arange(self.first + begin, self.first + end, dtype=np.int64)
        return np.sort(np.concatenate((self.user_ids[: self.part.masters], self.isolated)))


@dataclass
class Owned:
    """What the owner of a range of places knows of them: internal ids (-1: no edges), and what else names them.

    ``names``: as numbering.py has it - ids or, -1 for no vertex, positions; None where both follow.
    """

    first: int
    internal: np.ndarray
    names: np.ndarray | None


def hand_over(
    info: RankInfo, internal: np.ndarray, names: np.ndarray | None, blocks: np.ndarray, cuts: np.ndarray
) -> Driver[Owned]:
    """What is known of the places that this rank owns in the end: ``cuts`` take the place of ``blocks``."""
    first, last = blocks[info.rank], blocks[info.rank + 1]
    slices = [np.clip(cuts[q : q + 2], first, last) - first for q in range(info.size)]
    moved = []
    for array in (internal,) if names is None else (internal, names):
        came = yield from all_to_all(info, [array[begin:end].view(np.uint8) for begin, end in slices])
        moved.append(np.concatenate([payload.view(np.int64) for payload in came]))
    return Owned(int(cuts[info.rank]), moved[0], None if names is None else moved[1])


def assemble_part(
    info: RankInfo, layout: Layout, cuts: np.ndarray, arcs: Pieces, own: Owned, numbering: Numbering
) -> Driver[BuiltPart]:
    """Local ids for what has come, and the part in them; rank r owns the places [cuts[r], cuts[r + 1])."""
    first, last = cuts[info.rank : info.rank + 2].tolist()
    mine = np.flatnonzero(own.internal >= 0)
    mine = mine[np.argsort(own.internal[mine])]  # masters, by internal id
    own_local = np.full(own.internal.size, -1, np.int32)
    own_local[mine] = np.arange(mine.size, dtype=np.int32)
    words = np.zeros(int(cuts[-1]) // 64 + 1, np.uint64)
    for ends in arcs:
        for places in ends[:2]:
            kernels.mark_outside_step(places, first, last, words)
    before = np.empty(words.size, np.int64)
    with np.errstate(over="ignore"):  # a population count wraps; numpy would warn when the JIT is off
        mirrors = np.empty(kernels.count_before_step(words, before), np.int64)
        kernels.list_members_step(words, mirrors)
    groups = np.searchsorted(mirrors, cuts)
    internal, names = yield from _ask_owners(info, mirrors, groups, own)
    order = np.lexsort((internal, np.repeat(np.arange(info.size), np.diff(groups))))
    mirror_local = np.empty(mirrors.size, np.int32)
    mirror_local[order] = np.arange(mine.size, mine.size + mirrors.size, dtype=np.int32)
    id_type = np.int32 if layout.n <= MAX_NARROW else np.int64
    internal_of = np.concatenate((own.internal[mine], internal[order])).astype(id_type)
    for at, (sources, targets, weight) in enumerate(arcs):
        local = []
        for places in (sources, targets):
            ids = places if places.dtype == np.int32 else np.empty(places.size, np.int32)
            with np.errstate(over="ignore"):
                kernels.localise_step(places, first, own_local, words, before, mirror_local, ids)
            local.append(ids)
        arcs[at] = local[0], local[1], weight
    place_of = np.concatenate((first + mine, mirrors[order]))
    name_of = None if names is None or own.names is None else np.concatenate((own.names[mine], names[order]))
    del words, before, mirrors, own_local, mirror_local
    part = _rows_both_ways(info.rank, layout, arcs, internal_of, mine.size, groups)
    told: Sequence[MirrorList] = mirror_lists(part)
    lists = yield from all_to_all(info, [one.to_bytes() for one in told])
    linked = link(part, [MirrorList.from_bytes(one, internal_of.dtype) for one in lists])
    return _named(linked, place_of, name_of, own, numbering)


def _named(part: Part, place_of: np.ndarray, name_of: np.ndarray | None, own: Owned, numbering: Numbering) -> BuiltPart:
    """The part with positions and the user's ids, by the kind of numbering."""
    first = numbering.first
    if name_of is None or own.names is None:
        return BuiltPart(part, 0, place_of, 0, place_of + first, first)
    if numbering.kind is Kind.SCATTERED:
        return BuiltPart(part, 0, name_of - first, 0, name_of, first)
    if numbering.kind is Kind.SPARSE:
        return BuiltPart(part, 0, place_of, 0, name_of, None, own.names[own.internal < 0])
    isolated = np.flatnonzero((own.internal < 0) & (own.names >= 0)) + (own.first + first)
    return BuiltPart(part, 0, name_of, 0, place_of + first, None, isolated)


def _ask_owners(
    info: RankInfo, mirrors: np.ndarray, groups: np.ndarray, own: Owned
) -> Driver[tuple[np.ndarray, np.ndarray | None]]:
    """The internal ids and the names of places that others own."""
    asked = yield from all_to_all(info, [mirrors[groups[q] : groups[q + 1]].view(np.uint8) for q in range(info.size)])
    found = []
    for known in (own.internal,) if own.names is None else (own.internal, own.names):
        answers = [known[payload.view(np.int64) - own.first].view(np.uint8) for payload in asked]
        came = yield from all_to_all(info, answers)
        found.append(np.concatenate([payload.view(np.int64) for payload in came]))
    return found[0], None if own.names is None else found[1]


def _rows_both_ways(
    rank: int, layout: Layout, arcs: Pieces, internal_of: np.ndarray, masters: int, groups: np.ndarray
) -> Part:
    """Rows of both kinds, sorted by the neighbours' internal ids: by transposing twice, in that order."""
    size, order = internal_of.size, np.argsort(internal_of).astype(np.int32)
    out_count, in_count = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for sources, targets, _ in arcs:
        out_count += np.bincount(sources, minlength=size)
        in_count += np.bincount(targets, minlength=size)
    out_offsets, in_offsets = offsets_of(out_count), offsets_of(in_count)
    total = int(out_offsets[-1])
    in_sources, dtype = np.empty(total, np.int32), arcs[0][2].dtype if arcs else np.dtype(np.int64)
    in_weight = np.empty(total if layout.weighted else 0, dtype)
    cursor = in_offsets[:-1].copy()
    while arcs:
        sources, targets, weight = arcs.pop()
        kernels.append_rows_step(targets, sources, weight, cursor, in_sources, in_weight)
    del cursor
    return_freed()
    out_targets, out_weight = np.empty(total, np.int32), np.empty(in_weight.size, dtype)
    for step in (
        (in_offsets, in_sources, in_weight, out_offsets[:-1].copy(), out_targets, out_weight),
        (out_offsets, out_targets, out_weight, in_offsets[:-1].copy(), in_sources, in_weight),
    ):
        kernels.transpose_in_order_step(order, *step)
    return Part(
        layout=layout,
        part=rank,
        internal_of=internal_of,
        masters=masters,
        mirror_bounds=masters + groups.astype(np.int64),
        out_offsets=out_offsets,
        out_targets=out_targets,
        in_offsets=in_offsets,
        in_sources=in_sources,
        has_out=(out_count > 0).view(np.uint8),
        has_in=(in_count > 0).view(np.uint8),
        out_weight=out_weight if layout.weighted else None,
    )
