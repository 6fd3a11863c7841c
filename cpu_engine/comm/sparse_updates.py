"""Sparse updates while few vertices change, dense ones once many do.

An algorithm that takes vertices near-first knows which of them it has just reached. Their places and values go into a
buffer for each peer, and travel as (place, value) pairs; when a buffer is full - when the pairs would take more than a
bit for every entry of the list - the peer is sent what a look over the whole vector finds, in the cheapest encoding
(encoding.py). That is the sparse buffer with overflow to the dense vector of source 000, section 5.2.2; but each sender
decides for each peer and message, and the message's header states its form, so the ranks need not agree on it.

Invariants: only values below ``limit`` are sent, so that nothing travels which may still fall before it is needed; a
vertex is in the list of its kind (masters are broadcast, mirrors reduced) exactly if its mark has the bit LISTED.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cpu_engine.comm.encoding import AgreedList, Encoding, Packed, encoded_bytes, pack_improved
from cpu_engine.comm.encoding import value_bytes_for as narrow_bytes_for
from cpu_engine.comm.kernels.pack import HEADER_BYTES
from cpu_engine.comm.kernels.sparse_updates import (
    LISTED,
    Buffers,
    Copies,
    buffer_updates_step,
    gather_below_step,
    unlist_step,
)
from cpu_engine.comm.reductions import local_ids
from cpu_engine.comm.substrate import Phase, Route
from cpu_engine.comm.updates import pack_updates, unpack_updates

ENTRIES_PER_PAIR = 32  # a place takes as many bits
LOOKED_UP = 4  # with more changes than this many times the room of all lists, nearly every list overflows
_WIDTHS: dict[int, type[np.unsignedinteger]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class ChangeList:
    """The vertices that changed since they were last sent: masters from 0 up, mirrors from ``masters`` up."""

    def __init__(self, size: int, masters: int) -> None:
        self.masters = masters
        self.vertices = np.empty(size, np.int32)
        self.counts = np.zeros(2, np.int64)  # masters, mirrors
        self.mark = np.zeros(size, np.uint8)
        self._unsent = np.full(size, LISTED, np.uint8)  # marks at the start: a vertex without copies counts as listed

    def may_be_sent(self, vertices: np.ndarray) -> None:
        """These have copies on other parts."""
        self._unsent[vertices] = 0

    def start(self) -> None:
        self.counts[:] = 0
        self.mark[:] = self._unsent


class SparsePhase(Phase):
    """Reduction by minimum of uint32, int64 or float64 (not negative); see the module."""

    def __init__(self, route: Route, *, dtype: type = np.uint32) -> None:
        self.dtype = dtype
        self._most = np.inf if dtype is np.float64 else np.iinfo(dtype).max
        super().__init__(route)
        outgoing = route.outgoing
        self.limit: Any = self._most
        self._changes: ChangeList | None = None
        self._source: np.ndarray | None = None
        ranges = [AgreedList(agreed.total, 0, None, agreed.names) for agreed in outgoing.values()]
        self._side_by_side = dict(zip(outgoing, ranges, strict=True))
        self._gathered: np.ndarray = np.empty(max((one.total for one in ranges), default=0), dtype)
        self._peers = np.array(list(outgoing), np.int64)
        totals = np.array([one.total for one in ranges], np.int64)
        self._capacity = np.maximum(totals // ENTRIES_PER_PAIR, 1)
        self._begins = np.concatenate([[0], np.cumsum(totals)]).astype(np.int64)
        self._rooms = np.concatenate([[0], np.cumsum(self._capacity)]).astype(np.int64)
        room = int(self._rooms[-1])
        counts = np.zeros(totals.size, np.int64)
        self._buffers = Buffers(self._rooms, np.empty(room, np.uint32), np.empty(room, dtype), counts)

    def follow(self, changes: ChangeList) -> None:
        """Send what is put into this list; masters if this is a broadcast, mirrors if it is a reduce."""
        self._changes = changes
        self._kind = 0 if self.name == "broadcast" else 1
        self._first = 0 if self._kind == 0 else changes.masters
        last = changes.masters if self._kind == 0 else changes.vertices.size
        self._copies = _copies_by_vertex(list(self.outgoing.values()), self._first, last)
        changes.may_be_sent(self._first + np.flatnonzero(np.diff(self._copies.offsets)))

    def send(self, source: np.ndarray) -> None:
        """From now on send what is in this array, by local id, instead of the field's values."""
        self._source = source

    def start(self) -> None:
        self._last_sent.fill(self._most)

    def _packed(self, values: np.ndarray) -> Iterator[tuple[int, Packed]]:
        values = values if self._source is None else self._source
        changes, counts = self._changes, self._buffers.counts
        assert changes is not None
        count = int(changes.counts[self._kind])
        changes.counts[self._kind] = 0
        if count == 0 or not self.outgoing:
            return
        listed = changes.vertices[self._first : self._first + count]
        counts[:] = 0
        buffered = count <= LOOKED_UP * int(self._rooms[-1])
        if buffered:
            listed.sort()  # memory is then gone through in order, here and at the receiver
            buffer_updates_step(
                listed, changes.mark, self._copies, values, self._last_sent, self._begins, self._buffers
            )
        else:
            unlist_step(listed, changes.mark)
            counts[:] = self._capacity + 1
        for i, (peer, agreed) in enumerate(self.outgoing.items()):
            room = slice(int(self._rooms[i]), int(self._rooms[i]) + min(int(counts[i]), int(self._capacity[i])))
            places = self._buffers.places[room]
            if counts[i] > self._capacity[i]:
                if buffered:
                    self._last_sent_to[peer][places] = self._most  # buffered, but not sent
                yield peer, self._pack_dense(peer, agreed, values)
            else:
                yield peer, self._pack_sparse(places, self._buffers.values[room], agreed.total)

    def _pack_sparse(self, places: np.ndarray, values: np.ndarray, total: int) -> Packed:
        if self.dtype is np.uint32:
            return _narrow_pairs(places, values, total)
        return pack_updates(places, values.view(np.uint64), total)

    def _pack_dense(self, peer: int, agreed: AgreedList, values: np.ndarray) -> Packed:
        here, sent = self._gathered[: agreed.total], self._last_sent_to[peer]
        gather_below_step(agreed.begin, agreed.indices, values, self.limit, self._most, here)
        if self.dtype is np.uint32:
            return pack_improved(self._side_by_side[peer], here, sent, self._room)
        lower = np.flatnonzero(here < sent)
        sent[lower] = here[lower]
        return pack_updates(lower, here[lower].view(np.uint64), agreed.total)

    def _merge(self, peer: int, agreed: AgreedList, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        if self.dtype is np.uint32:
            return super()._merge(peer, agreed, payload, values)
        positions, bits = unpack_updates(payload, agreed.total)
        places = local_ids(agreed, positions)
        came: np.ndarray = bits.view(self.dtype)
        lower = came < values[places]
        changed: np.ndarray = places[lower]
        values[changed] = came[lower]
        self._note_echo(peer, changed, values)
        return changed


def _narrow_pairs(places: np.ndarray, values: np.ndarray, total: int) -> Packed:
    """In the format of encoding.py."""
    count = int(places.size)
    if count == 0:
        return Packed(np.empty(0, np.uint8), 0, Encoding.NOTHING)
    base, highest = int(values.min()), int(values.max())
    width = narrow_bytes_for(base, highest)
    payload = np.zeros(encoded_bytes(Encoding.OFFSETS32, count, total, width), np.uint8)
    payload[0], payload[1] = int(Encoding.OFFSETS32), width
    payload[4:HEADER_BYTES].view(np.uint32)[:] = count, base, total
    body = HEADER_BYTES + 4 * count
    payload[HEADER_BYTES:body].view(np.uint32)[:] = places
    if width:
        payload[body:].view(_WIDTHS[width])[:] = values - np.uint32(base)
    return Packed(payload, count, Encoding.OFFSETS32)


def _copies_by_vertex(lists: list[AgreedList], first: int, last: int) -> Copies:
    """By local id from ``first``: in which of the lists it is, and where."""
    which = np.concatenate([np.full(agreed.total, i, np.uint32) for i, agreed in enumerate(lists)] or [_NONE])
    at = np.concatenate([np.arange(agreed.total, dtype=np.uint32) for agreed in lists] or [_NONE])
    vertex = np.concatenate([agreed.local_ids() for agreed in lists] or [_NONE]).astype(np.int64) - first
    order = np.argsort(vertex, kind="stable")
    offsets = np.zeros(last - first + 1, np.int64)
    np.cumsum(np.bincount(vertex, minlength=last - first), out=offsets[1:])
    return Copies(first, offsets, which[order], at[order])


_NONE = np.empty(0, np.uint32)
