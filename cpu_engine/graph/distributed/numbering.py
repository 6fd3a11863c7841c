"""The user's ids as places on ranks: the working numbers of the build, which O(P) numbers give to their owners.

Invariant: ascending ids have ascending places, and position and id of a vertex follow from its place and, where they
must, from one number that its owner keeps (``names``). A rank holds O(its share) of the ids.

    RANGE     the input declares its ids                    place = position            id = first + place
    COMPACT   few ids of a range are no vertices            position: the owner counts  id = first + place
    SPARSE    anything else: a sort by samples              place = position            id: the owner knows
    SCATTERED a declared range with few edges: the same     position = id - first       id: the owner knows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all, broadcast, gather
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.build.idspace import (
    COMPACT_FLOOR,
    COMPACT_SLACK,
    MAX_NARROW,
    check_count,
    distinct,
    kernel_input,
    require_declared,
    require_not_negative,
)
from cpu_engine.graph.distributed.shares import Share
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.kernels.idtable import fill_table_step, look_up_step

SAMPLES = 64  # of the ids, per rank: the largest of all ranges then has a few per cent more than the mean
_NONE = np.empty(0, np.int64)
_HIGHEST = np.iinfo(np.int64).max


class Kind(Enum):
    """See the module."""

    RANGE = "range"
    COMPACT = "compact"
    SPARSE = "sparse"
    SCATTERED = "scattered"


@dataclass(frozen=True, eq=False)
class Numbering:
    """Which places there are, who owns them, and the way from an id to its place."""

    kind: Kind
    first: int
    places: int
    blocks: np.ndarray  # int64[P + 1]: rank r owns the places [blocks[r], blocks[r + 1])
    vertices: int | None  # None: those that are found
    ids: np.ndarray = field(default_factory=_NONE.copy)  # of the own places, unless they follow from them
    known: np.ndarray = field(default_factory=_NONE.copy)  # the ids of this rank's share, ascending,
    known_places: np.ndarray = field(default_factory=_NONE.copy)  # their places,
    slots: np.ndarray = field(default_factory=_NONE.copy)  # and a hash table of them

    @property
    def listed(self) -> bool:
        """Whether ids are looked up."""
        return self.kind in (Kind.SPARSE, Kind.SCATTERED)

    @property
    def place_type(self) -> type[np.signedinteger]:
        return np.int32 if self.places <= MAX_NARROW else np.int64

    def offset(self) -> int:
        """What an end, as ``ends_of`` gives it, is above its place."""
        return 0 if self.listed else self.first

    def ends_of(self, edges: EdgeList) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of each edge: places, or ids that are ``offset`` above them."""
        narrow = edges.src.dtype == edges.dst.dtype == np.int32
        src, dst = (kernel_input(ends, np.int32 if narrow else np.int64) for ends in (edges.src, edges.dst))
        return (self._look_up(src), self._look_up(dst)) if self.listed else (src, dst)

    def _look_up(self, ids: np.ndarray) -> np.ndarray:
        index = np.empty(ids.size, np.int64)
        shift = np.uint64(64 - (self.slots.size.bit_length() - 1))
        with np.errstate(over="ignore"):  # wrapping is the hash
            look_up_step(ids, self.known, self.slots, shift, index)
        return kernel_input(self.known_places[index], np.int64)


def number_ids(info: RankInfo, share: Share) -> Driver[Numbering]:
    """The numbering of all ids that the shares name or declare."""
    path = str(share.about.get("path") or "")
    if share.vertices is not None:
        check_count(share.vertices, path)
        room = None if share.edges is None else 2 * COMPACT_SLACK * share.edges + COMPACT_FLOOR
        if room is None or share.vertices <= room:
            return Numbering(Kind.RANGE, share.first, share.vertices, _even(share.vertices, info.size), share.vertices)
    low, high, mentioned = yield from _bounds(share)
    require_not_negative(low, path)
    if share.vertices is not None:
        require_declared(low, high, share.first, share.vertices, path)
        return (yield from _number_listed(info, share, Kind.SCATTERED, share.first))
    span = high - low + 1
    if span <= COMPACT_SLACK * mentioned + COMPACT_FLOOR:
        check_count(span, path)
        return Numbering(Kind.COMPACT, low, span, _even(span, info.size), None)
    return (yield from _number_listed(info, share, Kind.SPARSE, 0))


def count_distinct(info: RankInfo, ids: np.ndarray) -> Driver[int]:
    """How many different ids all ranks have together; ``ids`` is ascending, each once."""
    _, _, blocks = yield from _place_sorted(info, ids)
    return int(blocks[-1])


def _even(places: int, size: int) -> np.ndarray:
    return np.array([places * rank // size for rank in range(size + 1)], np.int64)


def _mentioned(share: Share) -> Iterator[np.ndarray]:
    for piece in share.pieces():
        yield from mentioned_in(piece)


def mentioned_in(piece: EdgeList) -> Iterator[np.ndarray]:
    """The arrays that name vertices."""
    narrow = piece.src.dtype == piece.dst.dtype == np.int32
    for ends in (piece.src, piece.dst):
        if ends.size:
            yield kernel_input(ends, np.int32 if narrow else np.int64)
    if piece.vertices is not None and piece.vertices.size:
        yield kernel_input(piece.vertices, np.int64)


def _bounds(share: Share) -> Driver[tuple[int, int, int]]:
    """The lowest and the highest id over all ranks, and how often ids are named; (0, -1, 0) if none is."""
    low, high, count = _HIGHEST, -1, 0
    for ids in _mentioned(share):
        low, high, count = min(low, int(ids.min())), max(high, int(ids.max())), count + ids.size
    ends = yield AllReduce(np.array([-low, high], np.int64), "max", patient=True)
    total = yield AllReduce(np.array([count], np.int64), "sum", patient=True)
    highest = int(ends[1])
    return min(-int(ends[0]), highest + 1), highest, int(total[0])


def _number_listed(info: RankInfo, share: Share, kind: Kind, first: int) -> Driver[Numbering]:
    known = distinct(_mentioned(share))
    places, ids, blocks = yield from _place_sorted(info, known)
    check_count(int(blocks[-1]), str(share.about.get("path") or ""))
    slots = np.zeros(1 << max(int(2 * known.size - 1).bit_length(), 1), np.int64)
    with np.errstate(over="ignore"):  # wrapping is the hash
        fill_table_step(known, slots, np.uint64(64 - (slots.size.bit_length() - 1)))
    return Numbering(kind, first, int(blocks[-1]), blocks, share.vertices, ids, known, places, slots)


def _place_sorted(info: RankInfo, known: np.ndarray) -> Driver[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The places of a rank's ids (ascending, each once); the ids that it owns from now on; where ranks' places begin.

    A sort by samples: ranges of ids of about equal number, by samples that are as dense at every rank.
    """
    total = int((yield AllReduce(np.array([known.size], np.int64), "sum", patient=True))[0])
    step = max(1, total // (SAMPLES * info.size))
    gathered = yield from gather(info, known[step // 2 :: step].copy().view(np.uint8))
    borders = None
    if gathered is not None:
        samples = np.sort(np.concatenate([one.view(np.int64) for one in gathered]))
        at = np.arange(1, info.size) * samples.size // info.size
        borders = (samples[at] if samples.size else np.zeros(info.size - 1, np.int64)).view(np.uint8)
    cuts = np.searchsorted(known, (yield from broadcast(info, borders)).view(np.int64))
    cuts = np.concatenate(([0], cuts, [known.size]))
    came = yield from all_to_all(info, [known[cuts[q] : cuts[q + 1]].view(np.uint8) for q in range(info.size)])
    ids = distinct(kernel_input(one.view(np.int64), np.int64) for one in came)
    counts = np.zeros(info.size, np.int64)
    counts[info.rank] = ids.size
    counts = yield AllReduce(counts, "sum", patient=True)
    blocks = np.concatenate(([0], np.cumsum(counts)))
    answers = [(np.searchsorted(ids, one.view(np.int64)) + blocks[info.rank]).view(np.uint8) for one in came]
    del came
    places = yield from all_to_all(info, answers)
    return np.concatenate([one.view(np.int64) for one in places]), ids, blocks
