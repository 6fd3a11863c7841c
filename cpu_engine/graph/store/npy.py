""".npy files read on any thread and from any hand: a pattern reads their heads, not Python's parser as in NumPy.

CPython 3.11 has one count of the parser's depth for all threads, so that of two that read arrays at once one may get a
SystemError ("AST constructor recursion depth mismatch"): a soak of the service has shown it. A damaged head may also
raise whatever the parser raises. Invariant: nothing here parses Python; only arrays of plain numbers are read, only
from regular files, and whatever is wrong with the content is a ValueError.
"""

from __future__ import annotations

import math
import os
import re
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

_MAGIC = b"\x93NUMPY"
_LENGTHS = {1: struct.Struct("<H"), 2: struct.Struct("<I")}  # by version of the format
_LONGEST = 1 << 16
_BLOCK = 1 << 24
_DIGITS, _DIMENSIONS = 15, 8  # of one length; of an array
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
    encoded = stream.read(length.size)
    count = length.unpack(encoded)[0] if len(encoded) == length.size else _LONGEST + 1
    text = stream.read(count) if count <= _LONGEST else b""
    found = _HEAD.fullmatch(text.decode("latin-1"))
    if found is None or len(text) < count:
        raise ValueError("the head of a .npy file cannot be understood")
    try:
        dtype = np.dtype(found[1])
    except TypeError as error:
        raise ValueError(f"there are no numbers of type {found[1]}") from error
    sizes = [part.strip() for part in found[3].split(",") if part.strip()]
    if any(len(size) > _DIGITS or " " in size for size in sizes) or len(sizes) > _DIMENSIONS:
        raise ValueError("the shape of an array cannot be understood")
    return Head(dtype, tuple(map(int, sizes)), found[2] == "True", len(start) + length.size + count)


def read_npy(stream: IO[bytes]) -> np.ndarray:
    """A whole array; ValueError if it is none, or cut off."""
    head = read_head(stream)
    content = bytearray()
    while (
        len(content) < head.content_bytes
    ):  # in pieces: a false head must not ask for more memory than there are bytes
        block = stream.read(min(head.content_bytes - len(content), _BLOCK))
        if not block:
            raise ValueError("an array is cut off")
        content += block
    return np.frombuffer(content, head.dtype).reshape(head.shape, order="F" if head.fortran else "C")


def map_npy(path: Path, mode: str = "r") -> np.ndarray:
    """An array in a file, mapped, not read; ``mode`` "c" maps it copy-on-write. ValueError if the file is too short."""
    with open_regular(path) as file:
        head = read_head(file)
        order = "F" if head.fortran else "C"
        if not head.content_bytes:
            return np.empty(head.shape, head.dtype, order)  # type: ignore[call-overload]
        if os.fstat(file.fileno()).st_size < head.size + head.content_bytes:
            raise ValueError("an array is cut off")
        return np.memmap(file, head.dtype, mode, head.size, head.shape, order)  # type: ignore[call-overload]


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file to read; ValueError for a FIFO, a device or a socket: a reader might wait there for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
