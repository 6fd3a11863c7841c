"""How an update of an agreed list travels: one pure choice by bytes on the wire, and the formats it chooses from.

A list of ``total`` entries is agreed between sender and receiver (position i means the same vertex on both sides), and
``count`` of them are updated. No update is an empty payload. Otherwise 16 bytes of header, the places of the updates,
and their values: each value minus the smallest in the message, in 0 (all are equal), 1, 2 or 4 bytes.

    header: mode u8, value bytes u8, zero u16, count u32, base u32, total u32 - little-endian, like everything else

    mode       places of the updates                      bytes, with b bytes per value
    nothing    -                                          0
    whole      everywhere, only if count = total          16 + b count
    bitset     one bit per entry, in words of 64          16 + 8 ceil(total / 64) + b count
    offsets16  positions, only if total <= 65,536         16 + 4 ceil(count / 2) + b count
    offsets32  positions                                  16 + 4 count + b count
    ids        the vertices' own ids: for receivers that  16 + 4 count + b count
               keep no list; never chosen otherwise
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from cpu_engine.comm.errors import CommError
from cpu_engine.comm.kernels import pack as kernel
from cpu_engine.comm.requests import NO_BYTES

HEADER_BYTES = kernel.HEADER_BYTES
_SHORT_OFFSETS = 1 << 16
_NO_NAMES = np.empty(0, np.int32)
_UNSIGNED: dict[int, type[np.unsignedinteger]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class Encoding(IntEnum):
    """The modes; the number is what the header carries."""

    NOTHING = 0
    WHOLE = kernel.WHOLE
    BITSET = kernel.BITSET
    OFFSETS16 = kernel.OFFSETS16
    OFFSETS32 = kernel.OFFSETS32
    IDS = kernel.IDS


def encoded_bytes(encoding: Encoding, count: int, total: int, value_bytes: int) -> int:
    """Bytes on the wire: the formulas above."""
    if encoding == Encoding.NOTHING:
        return 0
    if encoding == Encoding.WHOLE:
        where = 0
    elif encoding == Encoding.BITSET:
        where = 8 * ((total + 63) // 64)
    elif encoding == Encoding.OFFSETS16:
        where = 4 * ((count + 1) // 2)
    else:
        where = 4 * count
    return HEADER_BYTES + where + value_bytes * count


def choose_encoding(count: int, total: int, value_bytes: int, *, memoised: bool = True) -> Encoding:
    """The encoding with the fewest bytes; of equals the one that is quickest to read (whole, bitset, offsets)."""
    if count == 0:
        return Encoding.NOTHING
    if not memoised:
        return Encoding.IDS
    if count == total:
        return Encoding.WHOLE
    offsets = Encoding.OFFSETS16 if total <= _SHORT_OFFSETS else Encoding.OFFSETS32
    bitset_bytes = encoded_bytes(Encoding.BITSET, count, total, value_bytes)
    return Encoding.BITSET if bitset_bytes <= encoded_bytes(offsets, count, total, value_bytes) else offsets


def places_are_shorter(count: Any, total: Any) -> Any:
    """For a message of bits without values, which has no other form: 32 bits per place against one per entry."""
    return 32 * count < total


def value_bytes_for(lowest: int, highest: int) -> int:
    """Bytes per value that hold the distance between the smallest and the largest value of a message."""
    span = highest - lowest
    return 0 if span == 0 else 1 if span < 1 << 8 else 2 if span < 1 << 16 else 4


@dataclass(frozen=True, eq=False)
class AgreedList:
    """Local ids in the order agreed with a peer: ``begin`` onwards if they follow one another, else ``indices``.

    ``names`` are the vertices' internal ids in the same order, ascending; needed only where ids travel.
    """

    total: int
    begin: int
    indices: np.ndarray | None  # int32; None: a range
    names: np.ndarray  # int32; empty if ids never travel

    @staticmethod
    def of(local_ids: np.ndarray, names: np.ndarray | None = None) -> AgreedList:
        """From ascending local ids; recognises a range."""
        total = int(local_ids.size)
        begin = int(local_ids[0]) if total else 0
        is_range = total == 0 or int(local_ids[-1]) - begin + 1 == total
        indices = None if is_range else np.array(local_ids, np.int32)
        called = _NO_NAMES if names is None else np.array(names, np.int32)
        return AgreedList(total, begin if is_range else 0, indices, called)

    def local_ids(self) -> np.ndarray:
        if self.indices is not None:
            return self.indices
        return np.arange(self.begin, self.begin + self.total, dtype=np.int32)


class Room:
    """Memory to pack and unpack in, for lists of up to ``total`` entries. Serves one call at a time."""

    def __init__(self, total: int) -> None:
        self.words = np.empty((total + 63) // 64, np.uint64)
        self.values = np.empty(total, np.uint32)
        self.changed = np.empty(total, np.int32)


@dataclass(slots=True)
class Packed:
    """A payload and what is in it."""

    payload: np.ndarray
    count: int
    encoding: Encoding


_NOTHING = Packed(NO_BYTES, 0, Encoding.NOTHING)


def pack_improved(
    agreed: AgreedList,
    values: np.ndarray,
    last_sent: np.ndarray,
    room: Room,
    *,
    memoised: bool = True,
    forced: Encoding | None = None,
) -> Packed:
    """The entries whose value (uint32, by local id) is below what was last sent (uint32, by position in the list).

    ``last_sent`` is brought up to date. ``forced`` is taken instead of the cheapest encoding, and must be possible.
    """
    total, begin, words = agreed.total, agreed.begin, room.words[: (agreed.total + 63) // 64]
    if agreed.indices is not None:
        kernel.gather_step(agreed.indices, values, room.values)
        values, begin = room.values, 0
    count, lowest, highest = kernel.survey_improved_step(values, begin, last_sent, words)
    if count == 0:
        return _NOTHING
    value_bytes = value_bytes_for(int(lowest), int(highest))
    encoding = choose_encoding(count, total, value_bytes, memoised=memoised) if forced is None else forced
    payload = np.empty(encoded_bytes(encoding, count, total, value_bytes), np.uint8)
    kernel.write_positions_step(words, int(encoding), value_bytes, count, lowest, total, agreed.names, payload)
    if value_bytes:
        differences = payload[payload.size - value_bytes * count :].view(_UNSIGNED[value_bytes])
        kernel.write_values_step(words, values, begin, lowest, differences)
    return Packed(payload, count, encoding)


def unpack_min(payload: np.ndarray, agreed: AgreedList, values: np.ndarray, room: Room) -> np.ndarray:
    """Lower the values to what came; the local ids whose value became smaller, valid until the room is used again."""
    if payload.size == 0:
        return room.changed[:0]
    count = kernel.unpack_min_step(
        payload, agreed.begin, agreed.indices, agreed.total, agreed.names, values, room.values, room.changed
    )
    if count < 0:
        raise _refusal(count, payload, agreed)
    return room.changed[:count]


_REASONS = {
    kernel.BAD_LENGTH: "is not as long as its header says",
    kernel.BAD_TOTAL: "is about a list of another length",
    kernel.BAD_MODE: "is of a kind that is not expected here",
    kernel.BAD_POSITION: "names a place or a vertex that is not in the list",
}


def _refusal(code: int, payload: np.ndarray, agreed: AgreedList) -> CommError:
    return CommError(
        f"an update of {payload.size} bytes {_REASONS[code]} (this rank's list has {agreed.total} entries)",
        fix="partition the same graph with the same policy and number of ranks everywhere, and run one version of it",
    )
