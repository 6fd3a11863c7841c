"""The binary twin of the text formats: .npy payloads with the same meaning, checked as strictly.

Invariant: the bytes are never trusted. The shape is checked against the length before anything is allocated, objects
(pickles) are refused, and every number is within the limits of the text format.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.codec.text import VALUE_LIMIT, IntArray
from exchange.errors import ExchangeError
from exchange.protocol.programs import Rows

_FIX = "write a C-ordered int64 array of shape [rows, 2] with numpy.save, under a temporary name, then rename"
_FIX_ROWS = "write a C-ordered array [B, k] of int32 (float32 for plus-times) with numpy.save, one column per vertex"
_INTEGERS: tuple[np.dtype[Any], ...] = (np.dtype(np.int32), np.dtype(np.int64))
# An edge with a float32 weight, packed: 12 bytes.
WEIGHTED_EDGE = np.dtype([("src", "<i4"), ("dst", "<i4"), ("weight", "<f4")])


def encode_array(array: npt.NDArray[Any]) -> bytes:
    """The bytes of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
    return stream.getvalue()


def encode_pairs(pairs: npt.NDArray[np.integer]) -> bytes:
    """Rows `vertex value` as int64."""
    return encode_array(pairs.astype(np.int64, copy=False))


def encode_edges(
    offsets: npt.NDArray[np.integer],
    targets: npt.NDArray[np.integer],
    k: int,
    weight: npt.NDArray[Any] | None = None,
) -> bytes:
    """The edges among the vertices [0, k) of a CSR graph as rows `src dst`, int32 (a core's ids are small).

    With integer weights, aligned with ``targets``, rows `src dst weight`; with float32 weights records of these three.
    """
    last = int(offsets[k])
    source = np.repeat(np.arange(k, dtype=np.int32), np.diff(offsets[: k + 1]))
    target = targets[:last]
    inside = target < k
    count = int(inside.sum())
    if weight is not None and not np.issubdtype(weight.dtype, np.integer):
        records = np.empty(count, WEIGHTED_EDGE)
        records["src"], records["dst"], records["weight"] = source[inside], target[inside], weight[:last][inside]
        return encode_array(records)
    edges = np.empty((count, 2 if weight is None else 3), dtype=np.int32)
    edges[:, 0] = source[inside]
    edges[:, 1] = target[inside]
    if weight is not None:
        edges[:, 2] = weight[:last][inside]
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


def parse_weighted_edges(data: bytes, path: str | Path) -> tuple[IntArray, npt.NDArray[np.float32]]:
    """Records `src dst weight` with float32 weights: ends int64[e, 2], and the weights."""
    records = _parse_array(data, path, (WEIGHTED_EDGE,), dimensions=1, fix="write records (int32, int32, float32)")
    ends = np.column_stack((records["src"], records["dst"])).astype(np.int64)
    _require_range(ends, None, path)
    weight = records["weight"].astype(np.float32)
    if not np.isfinite(weight).all():
        raise ExchangeError("a weight is not a finite number", path=path, fix="write finite weights")
    return ends, weight


def parse_rows(data: bytes, path: str | Path, kind: str) -> Rows:
    """Values [B, k] of ``kind`` (int32 or float32): a row per vector, a column per vertex."""
    return _parse_array(data, path, (np.dtype(kind),), dimensions=2, fix=_FIX_ROWS).copy()


def parse_matrix(data: bytes, path: str | Path, k: int) -> npt.NDArray[np.uint8]:
    """A square uint8[k, k]; read only, without a copy."""
    matrix = _parse_array(data, path, (np.dtype(np.uint8),), dimensions=2, fix=f"write uint8[{k}, {k}] in C order")
    if matrix.shape != (k, k):
        raise ExchangeError(f"the shape must be [{k}, {k}]", path=path, value=matrix.shape, fix="write the whole core")
    return matrix


def _parse(data: bytes, path: str | Path, *, columns: tuple[int, ...]) -> IntArray:
    found = _parse_array(data, path, _INTEGERS, dimensions=2, fix=_FIX, columns=columns)
    rows: IntArray = found.astype(np.int64)
    _require_range(rows, None, path)
    return rows


def _parse_array(
    data: bytes,
    path: str | Path,
    dtypes: tuple[np.dtype[Any], ...],
    *,
    dimensions: int,
    fix: str,
    columns: tuple[int, ...] | None = None,
) -> npt.NDArray[Any]:
    """The array in the file, unless its type or shape is not one of those, or its length not what it announces."""
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
        raise ExchangeError(f"not a .npy file: {error}", path=path, fix=fix) from None
    if dtype not in dtypes:
        wanted = " or ".join(sorted(str(one) for one in dtypes))
        raise ExchangeError(f"the numbers must be {wanted}", path=path, value=str(dtype), fix=fix)
    unfit = len(shape) != dimensions or any(size < 0 for size in shape)
    if unfit or (columns is not None and shape[1] not in columns) or (fortran and dimensions > 1 and shape[0] > 1):
        wanted = "[rows, 2]" if columns is not None else "[B, k]" if dimensions == 2 else "[rows]"
        raise ExchangeError(f"the shape must be {wanted} in C order", path=path, value=shape, fix=fix)
    start = stream.tell()
    expected = math.prod(shape) * dtype.itemsize
    if len(data) - start != expected:
        raise ExchangeError(
            f"torn: {expected} bytes announced, {len(data) - start} there", path=path, value=shape, fix=fix
        )
    return np.frombuffer(data, dtype=dtype, offset=start).reshape(shape)


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
