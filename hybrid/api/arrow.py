"""Columns of any table that speaks the Arrow C stream interface, as NumPy arrays, without pyarrow.

Invariant: a column of one piece is a view of the table's own memory, which lives as long as the array does; one of
several pieces is copied once. Numbers without gaps are all that is read here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from cpu_engine.errors import InputError

_NUMBERS = {
    "c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "f": "f4", "g": "f8",
}  # fmt: skip


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Release = {kind: ctypes.CFUNCTYPE(None, ctypes.POINTER(kind)) for kind in (_Schema, _Array, _Stream)}

# The three structures as the Arrow specification lays them out ("The Arrow C data interface", "... stream interface").
_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)), ("release", _Release[_Schema]), ("private_data", ctypes.c_void_p),
]  # fmt: skip
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.POINTER(_Array)),
    ("release", _Release[_Array]), ("private_data", ctypes.c_void_p),
]  # fmt: skip
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", _Release[_Stream]), ("private_data", ctypes.c_void_p),
]  # fmt: skip


class _Owned:
    """A structure that another library filled and that we release."""

    def __init__(self, kind: type[_Schema] | type[_Array]) -> None:
        self.inner: Any = kind()

    def __del__(self) -> None:
        if self.inner.release:
            self.inner.release(ctypes.byref(self.inner))


class _Memory:
    """Foreign memory as NumPy sees it: the array made from this keeps it, and it keeps the owner."""

    def __init__(self, owner: _Owned, address: int, length: int, dtype: np.dtype) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "shape": (length,), "typestr": dtype.str, "data": (address, True),
        }  # fmt: skip


class ArrowTable:
    """The columns of one table; each is read when it is asked for."""

    def __init__(self, table: Any) -> None:
        capsule = table.__arrow_c_stream__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        stream = _Stream.from_address(pointer(capsule, b"arrow_array_stream") or 0)
        self._schema = _Owned(_Schema)
        _require_success(stream, stream.get_schema(ctypes.byref(stream), ctypes.byref(self._schema.inner)))
        self._pieces = list(_pieces(stream))
        schema = self._schema.inner
        described = [schema.children[i].contents for i in range(schema.n_children)]
        self.names = [(one.name or b"").decode() for one in described]
        self._formats = ["dictionary" if one.dictionary else one.format.decode() for one in described]

    def is_numeric(self, name: str) -> bool:
        """Whether ``column`` can read it."""
        return self._formats[self.names.index(name)] in _NUMBERS

    def column(self, name: str) -> np.ndarray:
        """A column of numbers; InputError if a value is missing."""
        at = self.names.index(name)
        dtype = np.dtype(_NUMBERS[self._formats[at]])
        parts = [_read(piece, at, name, dtype) for piece in self._pieces if piece.inner.length]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def _pieces(stream: Any) -> Iterator[_Owned]:
    while True:
        piece = _Owned(_Array)
        _require_success(stream, stream.get_next(ctypes.byref(stream), ctypes.byref(piece.inner)))
        if not piece.inner.release:  # the end
            return
        yield piece


def _require_success(stream: Any, code: int) -> None:
    if code:
        reason = stream.get_last_error(ctypes.byref(stream))
        raise InputError(f"the table cannot be read: {(reason or b'no reason given').decode()}", value=code)


def _read(piece: _Owned, at: int, name: str, dtype: np.dtype) -> np.ndarray:
    record, column = piece.inner, piece.inner.children[at].contents
    first, length = record.offset + column.offset, record.length
    if column.null_count and column.buffers[0] and _missing(piece, column.buffers[0], first, length):
        raise InputError(f"column {name!r} has missing values", fix="drop the rows without a value, or fill them")
    address = (column.buffers[1] or 0) + first * dtype.itemsize
    return np.asarray(_Memory(piece, address, length, dtype))


def _missing(piece: _Owned, validity: int, first: int, length: int) -> bool:
    bits = np.asarray(_Memory(piece, validity, (first + length + 7) // 8, np.dtype("u1")))
    return not np.unpackbits(bits, bitorder="little")[first : first + length].all()
