""".npy files read on any thread: their heads are understood by a pattern, not by Python's parser as in NumPy.

CPython 3.11 has one count of the parser's depth for all threads, so that of two that read arrays at once one may get a
SystemError ("AST constructor recursion depth mismatch"): a soak of the service has shown it. Invariant: nothing here
parses Python; only arrays of plain numbers are read.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

_MAGIC = b"\x93NUMPY"
_LENGTHS = {1: struct.Struct("<H"), 2: struct.Struct("<I")}  # by version of the format
_LONGEST = 1 << 16
_HEAD = re.compile(
    r"\{'descr': '([<>|=][biuf]\d{1,2})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n?"
)


@dataclass(frozen=True)
class Head:
    """What follows it: a number of values of one type."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    size: int  # of the head itself, in bytes

    @property
    def content_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_head(stream: IO[bytes]) -> Head:
    """The head of an array; ValueError if this is none, or not of plain numbers."""
    start = stream.read(len(_MAGIC) + 2)
    length = _LENGTHS.get(start[-2]) if start[:-2] == _MAGIC else None
    if length is None:
        raise ValueError("this is no .npy file")
    told = stream.read(length.size)
    count = length.unpack(told)[0] if len(told) == length.size else _LONGEST + 1
    text = stream.read(count) if count <= _LONGEST else b""
    found = _HEAD.fullmatch(text.decode("latin-1"))
    if found is None or len(text) < count:
        raise ValueError("the head of a .npy file cannot be understood")
    shape = tuple(int(part) for part in found[3].split(",") if part.strip())
    return Head(np.dtype(found[1]), shape, found[2] == "True", len(start) + length.size + count)


def read_npy(stream: IO[bytes]) -> np.ndarray:
    """A whole array; ValueError if it is none, or cut off."""
    head = read_head(stream)
    content = bytearray(stream.read(head.content_bytes))
    if len(content) < head.content_bytes:
        raise ValueError("an array is cut off")
    return np.frombuffer(content, head.dtype).reshape(head.shape, order="F" if head.fortran else "C")


def map_npy(path: Path) -> np.ndarray:
    """An array in a file, mapped, not read."""
    with path.open("rb") as file:
        head = read_head(file)
    order = "F" if head.fortran else "C"
    if not head.content_bytes:
        return np.empty(head.shape, head.dtype)
    return np.memmap(path, head.dtype, "r", head.size, head.shape, order)  # type: ignore[call-overload, no-any-return]
