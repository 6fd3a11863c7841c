"""A folder of .npy arrays and a meta.json: how built graphs and their parts are written, mapped and checked.

Invariants: a folder under its final name is complete - it is written beside under a temporary name, flushed, and
renamed. Its arrays are mapped copy-on-write: kernels get ordinary arrays, and no kernel can change the files. Every
array's description in meta.json has its type, shape, size and checksum; whatever differs is an InputError.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.store.npy import map_npy, open_regular
from cpu_engine.graph.store.removal import remove_tree

META_NAME = "meta.json"
TEMPORARY_PREFIX = ".tmp-"
ABANDONED_AFTER_S = 24 * 3600
META_BYTES = 1 << 24  # at most; the largest that the program writes has some thousand
_BLOCK = 1 << 24  # bytes of which a thread takes the checksum at a time
_CRC_POLYNOMIAL = 0xEDB88320  # CRC-32 as zlib has it, bits reversed

Description = dict[str, Any]


# --------------------------------------------------------------------------------------------------- writing


@contextlib.contextmanager
def write_folder_beside(path: Path, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> Iterator[Path]:
    """A complete, flushed folder under a temporary name beside ``path``; removed at the end unless renamed away."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    temporary.mkdir()
    try:
        described = {name: _write_array(temporary / f"{name}.npy", array) for name, array in arrays.items()}
        write_flushed(temporary / META_NAME, [json.dumps({**meta, "arrays": described}, indent=1).encode()])
        sync_directory(temporary)
        yield temporary
    finally:
        remove_tree(temporary)


def temporary_beside(path: Path) -> Path:
    """A fresh name in the same folder, hence on the same file system."""
    return path.parent / f"{TEMPORARY_PREFIX}{path.name}-{os.getpid()}-{secrets.token_hex(4)}"


def sync_directory(path: Path) -> None:
    """Make renames within a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def retire(path: Path) -> None:
    """Take what is there out of the way in one step, so that no reader sees half of it.

    It is in a cache or a folder that the user named; a link is removed itself, never what it leads to.
    """
    retired = temporary_beside(path)
    try:
        os.rename(path, retired)
    except OSError:
        return
    with contextlib.suppress(OSError):  # a directory
        retired.unlink(missing_ok=True)
    remove_tree(retired)


def sweep(folder: Path) -> None:
    """Remove what killed writers left behind in ``folder``: directories, of any depth; links are left alone."""
    limit = time.time() - ABANDONED_AFTER_S
    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):
            if leftover.lstat().st_mtime < limit:
                remove_tree(leftover)


def _write_array(file: Path, array: np.ndarray) -> Description:
    array = np.ascontiguousarray(array)
    payload = array.data.cast("B") if array.size else memoryview(b"")
    size = write_flushed(file, [_header(array), payload])
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "bytes": size,
        "checksum": array_checksum(array),
    }


def write_flushed(file: Path, parts: list[bytes | memoryview]) -> int:
    """Write a file and see it to the disk; its size."""
    with open(file, "wb") as stream:
        size = sum(stream.write(part) for part in parts)
        stream.flush()
        os.fsync(stream.fileno())
    return size


def _header(array: np.ndarray) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue()


# --------------------------------------------------------------------------------------------------- reading


def read_meta(path: Path, fix: str) -> dict[str, Any]:
    """The content of a folder's meta.json; FileNotFoundError if there is none, InputError if it is not one object."""
    file = path / META_NAME
    try:
        with open_regular(file) as stream:
            text = stream.read(META_BYTES + 1)
        if len(text) > META_BYTES:
            raise ValueError(f"it has more than {META_BYTES} bytes")
        meta = json.loads(text)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file, fix="check its permissions") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {str(error)[:200]}", path=file, fix=fix) from error
    if not isinstance(meta, dict):
        raise InputError("does not hold one JSON object", path=file, fix=fix)
    return meta


def map_array(file: Path, described: Any, dtypes: tuple[str, ...], fix: str) -> np.ndarray:
    """Map an array that must be as ``described`` and of one of these types; its content is not looked at."""
    try:
        size, wanted = file.stat().st_size, described["bytes"]
        if size != wanted:
            raise InputError(f"has {size} bytes, not {wanted}: it is torn", path=file, fix=fix)
        # asarray: kernels want plain arrays, and numba is slow to recognise the memmap class.
        array = np.asarray(map_npy(file, "c"))
        found, told = (array.dtype.name, list(array.shape)), (described["dtype"], described["shape"])
    except FileNotFoundError as error:
        raise InputError("is missing from the store", path=file, fix=fix) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file, fix="check its permissions") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is not the array that meta.json describes: {error}", path=file, fix=fix) from error
    if found != told:
        raise InputError(f"holds {found[0]}{found[1]}, not {told[0]}{told[1]}", path=file, fix=fix)
    if array.dtype.name not in dtypes or array.ndim != 1:
        raise InputError(f"has type {found[0]}{found[1]}, not {' or '.join(dtypes)}", path=file, fix=fix)
    return array


def check_checksums(path: Path, described: dict[str, Description], arrays: dict[str, np.ndarray], fix: str) -> None:
    """Compare every mapped array with its checksum; InputError names the first one that differs."""
    for name, one in described.items():
        found = array_checksum(arrays[name])
        if found != one.get("checksum"):
            raise InputError(
                f"array {name} is damaged: its checksum is {found}, not {one.get('checksum')}",
                path=path / f"{name}.npy",
                fix=fix,
            )


# ------------------------------------------------------------------------------------------------- checksums


def array_checksum(array: np.ndarray) -> str:
    """CRC-32 of the .npy file that holds the array, made by as many threads as there are cores."""
    array = np.ascontiguousarray(array)
    checksum, rest = zlib.crc32(_header(array)), memoryview(array.data.cast("B")) if array.size else memoryview(b"")
    if len(rest) > _BLOCK:
        blocks = [rest[at : at + _BLOCK] for at in range(0, len(rest) // _BLOCK * _BLOCK, _BLOCK)]
        shift = _shift_matrix(_BLOCK)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for one in pool.map(zlib.crc32, blocks):
                checksum = _times(shift, checksum) ^ one
        rest = rest[len(blocks) * _BLOCK :]
    return f"crc32:{zlib.crc32(rest, checksum):08x}"


def _times(matrix: list[int], vector: int) -> int:
    """A matrix over GF(2), given by its columns, times a vector of 32 bits."""
    product = 0
    for bit, column in enumerate(matrix):
        if vector >> bit & 1:
            product ^= column
    return product


def _shift_matrix(size: int) -> list[int]:
    """What ``size`` bytes of zero do to a CRC-32, as a matrix over GF(2); ``size`` is a power of two."""
    matrix = [_CRC_POLYNOMIAL, *(1 << bit for bit in range(31))]  # one bit of zero
    for _ in range((8 * size).bit_length() - 1):  # squared until it stands for all bits
        matrix = [_times(matrix, column) for column in matrix]
    return matrix
