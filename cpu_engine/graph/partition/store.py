"""Parts kept on disk for the next run, one folder per part, opened by mapping.

    <cache_dir>/parts/<key>/<part>/   .npy arrays and a meta.json

Invariants: the key is the graph's content, the layout and the format version, so an entry is never stale, and parts
kept by different runs fit together; a part's folder is only ever complete (renamed in) or absent. The cache is a
convenience: no failure of it is a failure of the job.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import Links, Part
from cpu_engine.graph.store import META_NAME, TEMPORARY_PREFIX, sync_directory, temporary_beside

FORMAT_NAME = "tandem-part"
FORMAT_VERSION = 1  # raised whenever the same graph would be cut or written differently
ABANDONED_AFTER_S = 24 * 3600
_REBUILD = "remove the folder; the part is built again from the graph"

_ARRAYS = {
    "internal_of": "int32",
    "mirror_bounds": "int64",
    "out_offsets": "int64",
    "out_targets": "int32",
    "in_offsets": "int64",
    "in_sources": "int32",
    "has_out": "uint8",
    "has_in": "uint8",
    "links_bounds": "int64",
    "links_masters": "int32",
    "links_roles": "uint8",
}
_WEIGHT = "out_weight"  # int64 or float64, of a weighted layout only
_IDENTIFYING = ("out_offsets", "out_targets", "weight", "user_ids", "user_position")  # the other arrays follow


def graph_fingerprint(graph: Graph, store: str | Path | None = None) -> str:
    """A digest of the graph's content, the same for equal graphs on any machine.

    ``store`` is the folder that the graph was opened from, if any: its checksums save reading the arrays.
    """
    checksums = {} if store is None else _checksums_of_store(Path(store))
    for name in _IDENTIFYING:
        array = getattr(graph, name)
        if array is not None and name not in checksums:
            checksums[name] = _checksum(array)
    content = {"n": graph.n, "m": graph.m, "directed": graph.directed, "arrays": checksums}
    return _digest(content)


class PartStore:
    """The kept parts of one graph under one layout."""

    def __init__(self, cache_dir: str | Path, fingerprint: str, layout: Layout) -> None:
        self.layout = layout
        self.folder = Path(cache_dir) / "parts" / layout_key(fingerprint, layout)

    def open(self, part: int) -> tuple[Part | None, str | None]:
        """The kept part, or None; and a note if there was one that could not be used."""
        if not (self.folder / _name(part)).exists():
            return None, None
        try:
            return open_part(self.folder, self.layout, part), None
        except InputError as error:
            return None, f"the kept part {part} was damaged and is built again ({error.reason})"

    def keep(self, part: Part) -> str | None:
        """Keep a linked part; returns a note if that could not be done."""
        try:
            save_part(self.folder, part)
        except OSError as error:
            return f"part {part.part} could not be kept in the cache {self.folder} ({error.strerror or error})"
        return None


def layout_key(fingerprint: str, layout: Layout) -> str:
    """The name of the entry for a graph under a layout."""
    return _digest({"graph": fingerprint, "layout": _describe(layout), "format_version": FORMAT_VERSION})


def save_part(folder: Path, part: Part) -> None:
    """Write a linked part to its place in ``folder``, atomically, instead of what may be there."""
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    path = folder / _name(part.part)
    temporary = temporary_beside(path)
    temporary.mkdir()
    try:
        described = {name: _write(temporary / f"{name}.npy", array) for name, array in _stored(part).items()}
        meta = {
            "format": FORMAT_NAME,
            "format_version": FORMAT_VERSION,
            "layout": _describe(part.layout),
            "part": part.part,
            "masters": part.masters,
            "arrays": described,
        }
        _write_flushed(temporary / META_NAME, json.dumps(meta, indent=1).encode())
        sync_directory(temporary)
        _retire(path)
        try:
            os.rename(temporary, path)
        except OSError:
            # Another process has put the same part there first; its copy is as good as ours.
            if not path.is_dir():
                raise
        sync_directory(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def open_part(folder: Path, layout: Layout, part: int) -> Part:
    """Open a kept part by mapping its arrays; InputError if it is missing, damaged, or another layout's."""
    path = folder / _name(part)
    meta = _read_meta(path)
    expected = {"format": FORMAT_NAME, "format_version": FORMAT_VERSION, "layout": _describe(layout), "part": part}
    wrong = [key for key, value in expected.items() if meta.get(key) != value]
    arrays = meta.get("arrays")
    if (
        wrong
        or not isinstance(meta.get("masters"), int)
        or not isinstance(arrays, dict)
        or set(arrays) != _names(layout)
    ):
        raise InputError(f"is not this part: it differs in {', '.join(wrong) or 'arrays'}", path=path, fix=_REBUILD)
    mapped = {name: _map(path / f"{name}.npy", arrays[name]) for name in arrays}
    links = Links(*(mapped.pop(f"links_{name}") for name in ("bounds", "masters", "roles")))
    opened = Part(layout=layout, part=part, masters=meta["masters"], links=links, **mapped)
    if not _is_consistent(opened, links):
        raise InputError("the arrays do not fit together", path=path, fix=_REBUILD)
    return opened


def _name(part: int) -> str:
    return f"{part:05d}"


def _names(layout: Layout) -> set[str]:
    return {*_ARRAYS, _WEIGHT} if layout.weighted else set(_ARRAYS)


def _describe(layout: Layout) -> dict[str, Any]:
    # Named only where they hold, so that ordinary parts keep their keys.
    kinds = {name: True for name in ("weighted", "symmetric") if getattr(layout, name)}
    return {
        **kinds,
        "n": layout.n,
        "m": layout.m,
        "policy": layout.policy,
        "parts": layout.parts,
        "grid": list(layout.grid),
        "threshold": layout.threshold,
        "bounds": _checksum(layout.bounds),
    }


def _stored(part: Part) -> dict[str, np.ndarray]:
    if part.links is None:
        raise ValueError(f"part {part.part} is kept once it is linked, not before")
    arrays = {name: getattr(part, name) for name in _names(part.layout) if not name.startswith("links_")}
    return {**arrays, **{f"links_{name}": getattr(part.links, name) for name in ("bounds", "masters", "roles")}}


def _is_consistent(part: Part, links: Links) -> bool:
    size, parts = part.internal_of.size, part.layout.parts
    lengths = (
        (part.mirror_bounds, parts + 1),
        (links.bounds, parts + 1),
        (part.has_out, size),
        (part.has_in, size),
        (part.out_offsets, size + 1),
        (part.in_offsets, size + 1),
        *([(part.out_weight, part.out_targets.size)] if part.out_weight is not None else []),
    )
    if not all(array.size == wanted for array, wanted in lengths):
        return False
    indices = (part.out_targets, part.in_sources, links.masters)
    if not all(int(array.min()) >= 0 and int(array.max()) < size for array in indices if array.size):
        return False  # kernels trust them
    return bool(
        part.mirror_bounds[0] == part.masters
        and part.mirror_bounds[-1] == size
        and part.out_offsets[-1] == part.out_targets.size == part.in_offsets[-1] == part.in_sources.size
        and links.bounds[-1] == links.masters.size == links.roles.size
        and np.all(np.diff(part.out_offsets) >= 0)
        and np.all(np.diff(part.in_offsets) >= 0)
    )


def _write(file: Path, array: np.ndarray) -> dict[str, Any]:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    size = _write_flushed(file, stream.getvalue(), array.data.cast("B") if array.size else b"")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "bytes": size}


def _write_flushed(file: Path, *blocks: bytes | memoryview) -> int:
    with open(file, "wb") as stream:
        size = sum(stream.write(block) for block in blocks)
        stream.flush()
        os.fsync(stream.fileno())
    return size


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads((path / META_NAME).read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path / META_NAME, fix=_REBUILD) from error
    except ValueError as error:
        raise InputError(f"is not valid JSON: {error}", path=path / META_NAME, fix=_REBUILD) from error
    return meta if isinstance(meta, dict) else {}


def _map(file: Path, described: dict[str, Any]) -> np.ndarray:
    try:
        size = file.stat().st_size
        if size != described["bytes"]:
            raise InputError(f"has {size} bytes, not {described['bytes']}: it is torn", path=file, fix=_REBUILD)
        # Copy-on-write, so that kernels get ordinary arrays and nothing can change the files.
        array = np.asarray(np.load(file, mmap_mode="c", allow_pickle=False))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file, fix=_REBUILD) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is not the array that meta.json describes: {error}", path=file, fix=_REBUILD) from error
    wanted = (_ARRAYS[file.stem],) if file.stem in _ARRAYS else ("int64", "float64")
    if array.dtype.name not in wanted or list(array.shape) != described.get("shape") or array.ndim != 1:
        raise InputError(f"holds {array.dtype.name}{list(array.shape)}", path=file, fix=_REBUILD)
    return array


def _retire(path: Path) -> None:
    """Take what is there out of the way in one step, so that no reader sees half of it."""
    retired = temporary_beside(path)
    try:
        os.rename(path, retired)
    except OSError:
        return
    if retired.is_dir() and not retired.is_symlink():
        shutil.rmtree(retired, ignore_errors=True)
    else:
        retired.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what killed writers left behind."""
    limit = time.time() - ABANDONED_AFTER_S
    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
        try:
            if leftover.stat().st_mtime < limit:
                shutil.rmtree(leftover, ignore_errors=True)
        except FileNotFoundError:
            continue


def _checksums_of_store(store: Path) -> dict[str, str]:
    try:
        arrays = json.loads((store / META_NAME).read_bytes())["arrays"]
        return {name: str(arrays[name]["checksum"]) for name in _IDENTIFYING if name in arrays}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _checksum(array: np.ndarray) -> str:
    """As graph/store.py writes it: of the .npy file that holds the array."""
    array = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    start = zlib.crc32(header.getvalue())
    return f"crc32:{zlib.crc32(array.data.cast('B') if array.size else b'', start):08x}"


def _digest(content: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
