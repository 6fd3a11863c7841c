"""A graph on disk: a folder of plain .npy arrays and a meta.json, opened by mapping, never by reading.

Invariant: a folder under its final name is complete - it is written beside under a temporary name, flushed, and
renamed. Opening checks version, file sizes and array headers; only ``verify_store`` reads the data. docs/store.md
describes every field.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph

FORMAT_NAME = "tandem-graph"
FORMAT_VERSION = 2
META_NAME = "meta.json"
TEMPORARY_PREFIX = ".tmp-"
_REBUILD = "build the store again from the edge list"
_BLOCK = 1 << 24

_ID = ("int32", "int64")
_ARRAYS = {
    "out_offsets": ("int64",),
    "out_targets": _ID,
    "in_offsets": ("int64",),
    "in_sources": _ID,
    "weight": ("int64", "float64"),
    "user_ids": ("int64",),
    "user_position": _ID,
    "internal_of_position": _ID,
    "best_in": _ID,
}
_DIRECTED_ONLY = ("in_offsets", "in_sources")  # an undirected graph's in-arrays are its out-arrays


def save_store(graph: Graph, path: str | Path) -> None:
    """Write the graph to the folder ``path``, atomically; an older store there is replaced, anything else refused."""
    path = Path(path)
    if path.exists() and not (path / META_NAME).is_file():
        raise InputError("exists and is not a graph store", path=path, fix="choose another name, or remove it")
    with write_beside(graph, path) as temporary:
        if path.exists():
            # A directory cannot be renamed over a full one. Readers that mapped the old one keep it.
            retired = temporary_beside(path)
            os.rename(path, retired)
            os.rename(temporary, path)
            shutil.rmtree(retired, ignore_errors=True)
        else:
            os.rename(temporary, path)
        sync_directory(path.parent)


@contextmanager
def write_beside(graph: Graph, path: Path) -> Iterator[Path]:
    """A complete, flushed store under a temporary name beside ``path``; removed at the end unless renamed away."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    temporary.mkdir()
    try:
        described = {name: _write_array(temporary / f"{name}.npy", array) for name, array in _stored(graph).items()}
        meta = {
            "format": FORMAT_NAME,
            "format_version": FORMAT_VERSION,
            "n": graph.n,
            "m": graph.m,
            "directed": graph.directed,
            "hanging_start": graph.hanging_start,
            "arrays": described,
            "graph": graph.meta,
        }
        _write_flushed(temporary / META_NAME, [json.dumps(meta, indent=1).encode()])
        sync_directory(temporary)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def open_store(path: str | Path) -> Graph:
    """Open a store by mapping its arrays; InputError if it is not one, of another version, or visibly damaged.

    The mapping is copy-on-write: it gives kernels ordinary arrays, and nothing can change the files.
    """
    path = Path(path)
    meta = _read_meta(path)
    arrays: dict[str, np.ndarray] = {}
    for name, described in meta["arrays"].items():
        arrays[name] = _map_array(path / f"{name}.npy", described)
    if not meta["directed"]:
        arrays["in_offsets"], arrays["in_sources"] = arrays["out_offsets"], arrays["out_targets"]
    try:
        return Graph(
            n=meta["n"],
            m=meta["m"],
            directed=meta["directed"],
            weight=arrays.pop("weight", None),
            **arrays,
            meta=meta["graph"],
            hanging_start=meta["hanging_start"],
        )
    except ValueError as error:
        raise InputError(f"the arrays do not fit together: {error}", path=path, fix=_REBUILD) from error


def verify_store(path: str | Path) -> None:
    """Read every array and compare it with its checksum; InputError names the first one that is damaged."""
    path = Path(path)
    open_store(path)
    for name, described in _read_meta(path)["arrays"].items():
        file, checksum = path / f"{name}.npy", 0
        with open(file, "rb") as stream:
            while block := stream.read(_BLOCK):
                checksum = zlib.crc32(block, checksum)
        if _checksum_text(checksum) != described["checksum"]:
            raise InputError(
                f"array {name} is damaged: its checksum is {_checksum_text(checksum)}, not {described['checksum']}",
                path=file,
                fix=_REBUILD,
            )


def is_store(path: str | Path) -> bool:
    """Whether ``path`` is a folder that calls itself a graph store, of any version."""
    try:
        return bool(json.loads((Path(path) / META_NAME).read_bytes()).get("format") == FORMAT_NAME)
    except (OSError, ValueError, AttributeError):
        return False


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


def _stored(graph: Graph) -> dict[str, np.ndarray]:
    arrays = {}
    for name, dtypes in _ARRAYS.items():
        array = getattr(graph, name)
        if array is None or (name in _DIRECTED_ONLY and not graph.directed):
            continue
        if array.dtype.name not in dtypes:
            raise ValueError(f"{name} is {array.dtype}, not {' or '.join(dtypes)}")
        arrays[name] = array
    return arrays


def _write_array(file: Path, array: np.ndarray) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    payload = array.data.cast("B") if array.size else b""
    size = _write_flushed(file, [header.getvalue(), payload])
    checksum = zlib.crc32(payload, zlib.crc32(header.getvalue()))
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "bytes": size,
        "checksum": _checksum_text(checksum),
    }


def _write_flushed(file: Path, parts: list[bytes | memoryview]) -> int:
    with open(file, "wb") as stream:
        size = sum(stream.write(part) for part in parts)
        stream.flush()
        os.fsync(stream.fileno())
    return size


def _checksum_text(checksum: int) -> str:
    return f"crc32:{checksum:08x}"


def _read_meta(path: Path) -> dict[str, Any]:
    file = path / META_NAME
    try:
        meta = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise InputError("is not a graph store (no meta.json)", path=path, fix="name the store's folder") from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file, fix="check its permissions") from error
    except ValueError as error:
        raise InputError(f"is not valid JSON: {error}", path=file, fix=_REBUILD) from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT_NAME:
        raise InputError("does not describe a graph store", path=file, fix="name the store's folder")
    if meta.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"the store has format version {meta.get('format_version')}, this program reads version {FORMAT_VERSION}",
            path=file,
            fix=_REBUILD,
        )
    kinds = {"n": int, "m": int, "directed": bool, "hanging_start": int, "arrays": dict, "graph": dict}
    wrong = [key for key, kind in kinds.items() if not isinstance(meta.get(key), kind)]
    if not wrong:
        needed = {n for n in _ARRAYS if n != "weight" and (meta["directed"] or n not in _DIRECTED_ONLY)}
        wrong = sorted(needed.symmetric_difference(set(meta["arrays"]) - {"weight"}))
    if wrong:
        raise InputError(f"is incomplete or inconsistent at {', '.join(wrong)}", path=file, fix=_REBUILD)
    return meta


def _map_array(file: Path, described: dict[str, Any]) -> np.ndarray:
    try:
        size = file.stat().st_size
        if size != described["bytes"]:
            raise InputError(f"has {size} bytes, not {described['bytes']}: it is torn", path=file, fix=_REBUILD)
        # asarray: kernels want plain arrays, and numba is slow to recognise the memmap class.
        array = np.asarray(np.load(file, mmap_mode="c", allow_pickle=False))
    except FileNotFoundError as error:
        raise InputError("is missing from the store", path=file, fix=_REBUILD) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file, fix="check its permissions") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is not the array that meta.json describes: {error}", path=file, fix=_REBUILD) from error
    if (array.dtype.name, list(array.shape)) != (described.get("dtype"), described.get("shape")):
        raise InputError(
            f"holds {array.dtype.name}{list(array.shape)}, not {described.get('dtype')}{described.get('shape')}",
            path=file,
            fix=_REBUILD,
        )
    if array.dtype.name not in _ARRAYS[file.stem]:
        raise InputError(f"has type {array.dtype.name}, not {' or '.join(_ARRAYS[file.stem])}", path=file, fix=_REBUILD)
    return array
