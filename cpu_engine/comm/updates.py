"""Updates of fields that are not BFS distances: positions of an agreed list and their values, of up to 64 bits.

As in encoding.py, the form with the fewest bytes is taken, and values travel as their distance from the smallest; but
the header is longer, and numpy does the work: these messages are few, or large.

    header: mode u8, value bytes u8 (0, 1, 2, 4, 8), zero u16, count u32, total u32, zero u32, smallest u64

Floats that are not negative may travel as their bits, which order them as they are ordered.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.encoding import Encoding, Packed, choose_encoding
from cpu_engine.comm.errors import CommError
from cpu_engine.comm.requests import NO_BYTES

HEADER_BYTES = 24
_WIDTHS: dict[int, type[np.unsignedinteger]] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_NOTHING = Packed(NO_BYTES, 0, Encoding.NOTHING)


def pack_updates(positions: np.ndarray, values: np.ndarray, total: int) -> Packed:
    """A message that says: these positions, which ascend, have these values (uint64). Nothing for no position."""
    count = int(positions.size)
    if count == 0:
        return _NOTHING
    base = int(values.min())
    width = _width(int(values.max()) - base)
    encoding = choose_encoding(count, total, width)
    header = np.zeros(HEADER_BYTES, np.uint8)
    header[0], header[1] = int(encoding), width
    header[4:16].view(np.uint32)[:2] = count, total
    header[16:].view(np.uint64)[0] = base
    pieces = [header, _places(encoding, positions, total)]
    if width:
        pieces.append((values - np.uint64(base)).astype(_WIDTHS[width]).view(np.uint8))
    return Packed(np.concatenate(pieces), count, encoding)


def unpack_updates(payload: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and values (uint64) of a message; CommError if it does not fit the list."""
    if payload.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    if payload.size < HEADER_BYTES:
        raise _refusal(payload, total, "is shorter than its header")
    mode, width = int(payload[0]), int(payload[1])
    count, stated_total = payload[4:12].copy().view(np.uint32).tolist()
    base = payload[16:HEADER_BYTES].copy().view(np.uint64)[0]
    if stated_total != total or count > total:
        raise _refusal(payload, total, f"is about a list of {stated_total}")
    places = _places_bytes(mode, count, total)
    if places < 0 or (width and width not in _WIDTHS):
        raise _refusal(payload, total, "is of a kind that is not expected here")
    body = HEADER_BYTES + places
    if payload.size != body + width * count:
        raise _refusal(payload, total, "is not as long as its header says")
    positions = _read_places(mode, payload[HEADER_BYTES:body], count, total)
    if positions.size != count or (count and int(positions.max()) >= total):
        raise _refusal(payload, total, "names a place that is not in the list")
    values = np.full(count, base, np.uint64)
    if width:
        values += payload[body:].copy().view(_WIDTHS[width])
    return positions, values


def _width(span: int) -> int:
    if span == 0:
        return 0
    return 1 if span < 1 << 8 else 2 if span < 1 << 16 else 4 if span < 1 << 32 else 8


def _places(encoding: Encoding, positions: np.ndarray, total: int) -> np.ndarray:
    if encoding == Encoding.WHOLE:
        return NO_BYTES
    if encoding == Encoding.BITSET:
        bits = np.zeros(64 * ((total + 63) // 64), np.uint8)
        bits[positions] = 1
        return np.packbits(bits, bitorder="little")
    if encoding == Encoding.OFFSETS16:
        padded = np.zeros(positions.size + positions.size % 2, np.uint16)
        padded[: positions.size] = positions
        return padded.view(np.uint8)
    return positions.astype(np.uint32).view(np.uint8)


def _places_bytes(mode: int, count: int, total: int) -> int:
    if mode == Encoding.WHOLE:
        return 0 if count == total else -1
    if mode == Encoding.BITSET:
        return 8 * ((total + 63) // 64)
    if mode == Encoding.OFFSETS16:
        return 4 * ((count + 1) // 2)
    return 4 * count if mode == Encoding.OFFSETS32 else -1


def _read_places(mode: int, places: np.ndarray, count: int, total: int) -> np.ndarray:
    if mode == Encoding.WHOLE:
        return np.arange(total)
    if mode == Encoding.BITSET:
        return np.flatnonzero(np.unpackbits(places, bitorder="little"))
    if mode == Encoding.OFFSETS16:
        return places.copy().view(np.uint16)[:count].astype(np.int64)
    return places.copy().view(np.uint32).astype(np.int64)


def _refusal(payload: np.ndarray, total: int, what: str) -> CommError:
    return CommError(
        f"an update of {payload.size} bytes {what} (this rank's list has {total} entries)",
        fix="partition the same graph with the same policy and number of ranks everywhere, and run one version of it",
    )
