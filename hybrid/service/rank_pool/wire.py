"""What the service and the ranks of its pool say to each other: frames on a Unix socket.

A frame is the length of a header (4 bytes, big-endian), the header (a JSON object) and, for each name in its
``arrays``, an array as a .npy file. Nothing is ever unpickled. Invariant: a frame is read whole or not at all.
"""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from cpu_engine.graph.store.npy import read_npy
from hybrid.results.trace import plain_number

_LENGTH = struct.Struct(">I")
_LONGEST_HEADER = 256 << 20  # the events of a very long run


class WireError(Exception):
    """The other side said something that is no frame."""


@dataclass(frozen=True)
class Frame:
    """One message: ``facts`` say what it is about, and to which order it belongs."""

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def ticket(self) -> int:
        return int(self.facts.get("ticket", 0))


def frame_bytes(frame: Frame) -> bytes:
    header = {"kind": frame.kind, "facts": frame.facts, "arrays": list(frame.arrays)}
    head = json.dumps(header, default=plain_number).encode()
    into = io.BytesIO()
    into.write(_LENGTH.pack(len(head)))
    into.write(head)
    for array in frame.arrays.values():
        np.lib.format.write_array(into, np.ascontiguousarray(array), allow_pickle=False)
    return into.getvalue()


def read_frame(stream: IO[bytes]) -> Frame | None:
    """The next frame; None at the end of the stream, WireError in the middle of one."""
    start = stream.read(_LENGTH.size)
    if not start:
        return None
    if len(start) < _LENGTH.size:
        raise WireError("a frame ends before it began")
    (length,) = _LENGTH.unpack(start)
    if length > _LONGEST_HEADER:
        raise WireError(f"a header of {length} bytes is no header")
    head = stream.read(length)
    if len(head) < length:
        raise WireError("a header is cut off")
    try:
        header = json.loads(head)
        arrays = {str(name): read_npy(stream) for name in header["arrays"]}
        return Frame(str(header["kind"]), dict(header["facts"]), arrays)
    except (ValueError, TypeError, KeyError, EOFError) as error:
        raise WireError(f"a frame cannot be read: {error}") from error
