"""Which copies of a vertex must be sent a change, and how, derived from where a field is written and read.

An algorithm says only at which end of an arc it writes a field and at which end it reads it. Mirrors that are written
are *reduced* to their master, masters are *broadcast* to the mirrors that are read; whether either is needed follows
from the partitioning policy. The order of each list was agreed once, so values travel in that order, without ids.

Invariant: what a peer was sent, or has itself sent, is not sent again unless it became smaller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cpu_engine.comm.encoding import (
    AgreedList,
    Encoding,
    Packed,
    Room,
    pack_improved,
    unpack_min,
)
from cpu_engine.comm.errors import CommError
from cpu_engine.comm.kernels.pack import forget_sent_step, note_known_step
from cpu_engine.comm.requests import TAG_BROADCAST, TAG_REDUCE
from cpu_engine.graph.partition.part import Part

End = Literal["source", "target", "any", "master"]  # master: at no mirror, only where the vertex is owned

# Which arcs a mirror can have: by oec all arcs are at their source's owner, so a mirror is never a source; and so on.
_MIRRORS_WRITTEN_AT: dict[str, frozenset[str]] = {
    "oec": frozenset({"target"}),
    "iec": frozenset({"source"}),
    "cvc": frozenset({"source", "target"}),
    "uvc": frozenset({"source", "target"}),
    "2d": frozenset({"source", "target"}),
}


@dataclass(frozen=True)
class Field:
    """A value per vertex, and the ends of arcs at which the algorithm's operator writes and reads it."""

    name: str
    written: End
    read: End


DISTANCE_PUSHED = Field("distance", written="target", read="source")
LABEL_SPREAD = Field("label", written="any", read="any")  # both ends of an arc belong together
SUM_PULLED = Field("sum", written="target", read="master")  # what in-arcs bring, added up at the master
VALUE_READ = Field("value", written="master", read="source")  # the master's word, at every copy that has out-arcs
OUT_COUNT = Field("out count", written="source", read="master")


def needs(field: Field, policy: str) -> tuple[bool, bool]:
    """Whether the field must be (reduced, broadcast) under this policy."""
    if policy not in _MIRRORS_WRITTEN_AT:
        raise CommError(f"policy {policy!r} is not known", fix=f"use one of {', '.join(_MIRRORS_WRITTEN_AT)}")
    ends = _MIRRORS_WRITTEN_AT[policy]
    return (field.written == "any" or field.written in ends), (field.read == "any" or field.read in ends)


@dataclass(slots=True)
class Tally:
    """What was sent in one phase in one encoding."""

    messages: int = 0
    bytes: int = 0
    updates: int = 0


@dataclass(slots=True)
class PhaseStatistics:
    """What a phase sent, by encoding, and what came, since the phase was made."""

    sent: dict[Encoding, Tally] = field(default_factory=dict)
    messages_received: int = 0
    bytes_received: int = 0
    updates_applied: int = 0
    pack_s: float = 0.0
    unpack_s: float = 0.0

    def note_sent(self, packed: Packed) -> None:
        tally = self.sent.get(packed.encoding)
        if tally is None:
            tally = self.sent[packed.encoding] = Tally()
        tally.messages += 1
        tally.bytes += packed.payload.size
        tally.updates += packed.count


@dataclass(frozen=True)
class Route:
    """Reduce or broadcast of a field: the list that is sent to each peer, and the one that is received from each."""

    name: str
    tag: int
    outgoing: dict[int, AgreedList]
    incoming: dict[int, AgreedList]
    memoised: bool = True


class Phase:
    """One direction of a field's synchronisation, here by minimum of uint32.

    Other reductions override ``_pack`` (what a peer must be sent) and ``_merge`` (what a message changes).
    """

    dtype: type = np.uint32

    def __init__(self, route: Route) -> None:
        self.name, self.tag, self.memoised = route.name, route.tag, route.memoised
        outgoing, incoming = route.outgoing, route.incoming
        self.outgoing, self.incoming = outgoing, incoming
        self.send_to, self.receive_from = tuple(outgoing), tuple(incoming)
        self.statistics = PhaseStatistics()
        self._room = Room(max((agreed.total for agreed in [*outgoing.values(), *incoming.values()]), default=0))
        bounds = np.cumsum([0, *(agreed.total for agreed in outgoing.values())])
        self._last_sent: np.ndarray = np.empty(bounds[-1], self.dtype)
        self._last_sent_to = {
            peer: self._last_sent[begin:end] for peer, begin, end in zip(outgoing, bounds[:-1], bounds[1:], strict=True)
        }
        self._echoes: Phase | None = None
        self.start()

    def start(self) -> None:
        """A new run: forget what was sent to each peer."""
        forget_sent_step(self._last_sent)

    def mind_echoes(self, opposite: Phase) -> None:
        """What comes in this phase need not go back in the opposite one, where the two concern the same copies."""
        shared = [
            peer
            for peer, agreed in self.incoming.items()
            if peer in opposite.outgoing and _intersect(agreed, opposite.outgoing[peer])
        ]
        self._echoes = opposite if shared else None

    def answer_all(self) -> None:
        """What comes in this phase goes back in the opposite one, as to every other copy."""
        self._echoes = None

    def messages(self, values: np.ndarray) -> dict[int, np.ndarray]:
        """A payload for each peer that must be sent updates."""
        begin = time.perf_counter()
        payloads = {}
        for peer, packed in self._packed(values):
            if packed.count:
                self.statistics.note_sent(packed)
                payloads[peer] = packed.payload
        self.statistics.pack_s += time.perf_counter() - begin
        return payloads

    def apply(self, peer: int, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Merge what came from ``peer``; the local ids whose value changed, valid until the next call."""
        begin = time.perf_counter()
        if peer not in self.incoming:
            raise CommError(
                f"a {self.name} came from rank {peer}, which shares no vertex with this one",
                fix="partition the same graph with the same policy and number of ranks everywhere",
            )
        changed = self._merge(peer, self.incoming[peer], payload, values)
        statistics = self.statistics
        statistics.messages_received += 1
        statistics.bytes_received += payload.size
        statistics.updates_applied += changed.size
        statistics.unpack_s += time.perf_counter() - begin
        return changed

    def _packed(self, values: np.ndarray) -> Iterator[tuple[int, Packed]]:
        for peer, agreed in self.outgoing.items():
            yield peer, self._pack(peer, agreed, values)

    def _pack(self, peer: int, agreed: AgreedList, values: np.ndarray) -> Packed:
        return pack_improved(agreed, values, self._last_sent_to[peer], self._room, memoised=self.memoised)

    def _merge(self, peer: int, agreed: AgreedList, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        changed = unpack_min(payload, agreed, values, self._room)
        self._note_echo(peer, changed, values)
        return changed

    def _note_echo(self, peer: int, changed: np.ndarray, values: np.ndarray) -> None:
        """Count the values that came from ``peer`` as sent to it in the opposite phase."""
        if self._echoes is not None and changed.size and peer in self._echoes.outgoing:
            agreed, known = self._echoes.outgoing[peer], self._echoes._last_sent_to[peer]
            note_known_step(changed, agreed.begin, agreed.indices, agreed.total, values, known)


PhaseMaker = Callable[[Route], Phase]


class Sync:
    """A field on one part: the phases that it needs, reduce before broadcast.

    ``memoised=False`` sends the vertices' ids with the values, for comparison and for receivers that keep no lists.
    ``phases`` makes the phases of fields that are not uint32 reduced by minimum (reductions.py, sparse_updates.py).
    """

    def __init__(
        self,
        part: Part,
        field: Field,
        policy: str | None = None,
        *,
        memoised: bool = True,
        phases: PhaseMaker | None = None,
    ) -> None:
        self.part, self.field = part, field
        self.policy = part.layout.policy if policy is None else policy
        reduces, broadcasts = needs(field, self.policy)
        no_lists: dict[int, AgreedList] = {}
        to_master, from_mirrors = _lists(part, field.written, memoised) if reduces else (no_lists, no_lists)
        from_master, to_mirrors = _lists(part, field.read, memoised) if broadcasts else (no_lists, no_lists)
        make = Phase if phases is None else phases
        self.reduce = make(Route("reduce", TAG_REDUCE, to_master, from_mirrors, memoised))
        self.broadcast = make(Route("broadcast", TAG_BROADCAST, to_mirrors, from_master, memoised))
        self.reduce.mind_echoes(self.broadcast)
        self.broadcast.mind_echoes(self.reduce)
        self.phases = ((self.reduce,) if reduces else ()) + ((self.broadcast,) if broadcasts else ())

    def start(self) -> None:
        """A new run: forget what was sent to each peer."""
        for phase in self.phases:
            phase.start()

    def restart_statistics(self) -> None:
        """Count from 0 again."""
        for phase in self.phases:
            phase.statistics = PhaseStatistics()

    @property
    def statistics(self) -> dict[str, PhaseStatistics]:
        return {phase.name: phase.statistics for phase in self.phases}


def _lists(part: Part, end: End, memoised: bool) -> tuple[dict[int, AgreedList], dict[int, AgreedList]]:
    """By peer: this part's mirrors that occur at this end of an arc, and its masters with such mirrors there."""
    if end == "any":
        mirrors = tuple(
            np.arange(begin, stop, dtype=np.int32)
            for begin, stop in zip(part.mirror_bounds[:-1], part.mirror_bounds[1:], strict=True)
        )
        masters = part.mirrored
    elif end == "target":
        mirrors, masters = part.mirrors_with_in, part.masters_written_at
    else:
        mirrors, masters = part.mirrors_with_out, part.masters_read_at
    return _agreed(part, mirrors, memoised), _agreed(part, masters, memoised)


def _agreed(part: Part, lists: tuple[np.ndarray, ...], memoised: bool) -> dict[int, AgreedList]:
    return {
        peer: AgreedList.of(local_ids, None if memoised else part.internal_of[local_ids])
        for peer, local_ids in enumerate(lists)
        if local_ids.size and peer != part.part
    }


def _intersect(one: AgreedList, other: AgreedList) -> bool:
    return bool(np.intersect1d(one.local_ids(), other.local_ids(), assume_unique=True).size)
