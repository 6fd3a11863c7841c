"""The binary twin of the text formats: .npy payloads with the same meaning, checked as strictly.

Invariant: the bytes are never trusted. The shape is checked against the length before anything is allocated, objects
(pickles) are refused, and every number is within the limits of the text format.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.errors import ExchangeError
from exchange.text import VALUE_LIMIT, IntArray

_FIX = "write a C-ordered int64 array of shape [rows, 2] with numpy.save, under a temporary name, then rename"
_INTEGERS = {np.dtype(np.int32), np.dtype(np.int64)}


def encode_array(array: npt.NDArray[np.integer]) -> bytes:
    """The bytes of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
    return stream.getvalue()


def encode_pairs(pairs: npt.NDArray[np.integer]) -> bytes:
    """Rows `vertex value` as int64."""
    return encode_array(pairs.astype(np.int64, copy=False))


def encode_edges(offsets: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], k: int) -> bytes:
    """The edges among the vertices [0, k) of a CSR graph as rows `src dst`, int32 (a core's ids are small)."""
    last = int(offsets[k])
    source = np.repeat(np.arange(k, dtype=np.int32), np.diff(offsets[: k + 1]))
    target = targets[:last]
    inside = target < k
    edges = np.empty((int(inside.sum()), 2), dtype=np.int32)
    edges[:, 0] = source[inside]
    edges[:, 1] = target[inside]
    return encode_array(edges)


def parse_pairs(data: bytes, path: str | Path) -> IntArray:
    """Rows `vertex value` as int64[r, 2]."""
    pairs = _parse(data, path, columns=(2,))
    _require_range(pairs[:, 1], VALUE_LIMIT, path)
    return pairs


def parse_edges(data: bytes, path: str | Path) -> IntArray:
    """Rows `src dst` (int64[e, 2]) or `src dst weight` (int64[e, 3])."""
    edges = _parse(data, path, columns=(2, 3))
    if edges.shape[1] == 3:
        _require_range(edges[:, 2], VALUE_LIMIT, path)
    return edges


def _parse(data: bytes, path: str | Path, *, columns: tuple[int, ...]) -> IntArray:
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise ValueError(f"version {version} is not read")
    except Exception as error:  # a hostile header makes numpy fail in many ways
        raise ExchangeError(f"not a .npy file: {error}", path=path, fix=_FIX) from None
    if dtype not in _INTEGERS:
        raise ExchangeError("the numbers must be int32 or int64", path=path, value=str(dtype), fix=_FIX)
    if len(shape) != 2 or shape[1] not in columns or shape[0] < 0 or (fortran and shape[0] > 1):
        raise ExchangeError("the shape must be [rows, 2] in C order", path=path, value=shape, fix=_FIX)
    start = stream.tell()
    expected = shape[0] * shape[1] * dtype.itemsize
    if len(data) - start != expected:
        raise ExchangeError(
            f"torn: {expected} bytes announced, {len(data) - start} there", path=path, value=shape, fix=_FIX
        )
    rows = np.frombuffer(data, dtype=dtype, offset=start).reshape(shape).astype(np.int64)
    _require_range(rows, None, path)
    return rows


def _require_range(numbers: IntArray, limit: int | None, path: str | Path) -> None:
    if numbers.size == 0:
        return
    if int(numbers.min()) < 0:
        raise ExchangeError("negative", path=path, value=int(numbers.min()), fix="write non-negative integers only")
    if limit is not None and int(numbers.max()) >= limit:
        raise ExchangeError(
            f"too large: the limit here is {limit - 1}",
            path=path,
            value=int(numbers.max()),
            fix="write smaller values, or leave the line out",
        )
