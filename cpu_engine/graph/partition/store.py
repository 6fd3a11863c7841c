"""Parts kept on disk for the next run, one folder per part, opened by mapping.

    <cache_dir>/parts/<key>/<part>/   .npy arrays and a meta.json

Invariants: the key is the graph's content, the layout and the format version, so an entry is never stale, and parts
kept by different runs fit together; a part's folder is only ever complete (renamed in) or absent. The cache is a
convenience: no failure of it is a failure of the job.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import READ, WRITTEN, Links, Part
from cpu_engine.graph.store.array_folder import (
    META_BYTES,
    META_NAME,
    array_checksum,
    check_checksums,
    map_array,
    read_meta,
    retire,
    sweep,
    sync_directory,
    write_folder_beside,
)
from cpu_engine.graph.store.graph_store import store_files
from cpu_engine.graph.store.npy import open_regular
from cpu_engine.graph.store.remembered import SOUND, Memory, identity_of

FORMAT_NAME = "tandem-part"
FORMAT_VERSION = 2  # raised whenever the same graph would be cut or written differently
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
_ROLES = READ | WRITTEN
_WEIGHT = "out_weight"  # int64 or float64, of a weighted layout only
_WIDE = {"internal_of": ("int32", "int64"), _WEIGHT: ("int64", "float64")}
_IDENTIFYING = ("out_offsets", "out_targets", "weight", "user_ids", "user_position")  # the other arrays follow


def graph_fingerprint(graph: Graph, store: str | Path | None = None) -> str:
    """A digest of the graph's content, the same for equal graphs on any machine.

    ``store`` is the folder that the graph was opened from, if any: its checksums save reading the arrays.
    """
    checksums = {} if store is None else _checksums_of_store(Path(store))
    for name in _IDENTIFYING:
        array = getattr(graph, name)
        if array is not None and name not in checksums:
            checksums[name] = array_checksum(array)
    content = {"n": graph.n, "m": graph.m, "directed": graph.directed, "arrays": checksums}
    return _digest(content)


class PartStore:
    """The kept parts of one graph under one layout."""

    def __init__(self, cache_dir: str | Path, fingerprint: str, layout: Layout) -> None:
        self.layout = layout
        self.folder = Path(cache_dir) / "parts" / layout_key(fingerprint, layout)
        self._checked = Path(cache_dir) / "checked"

    def open(self, part: int) -> tuple[Part | None, str | None]:
        """The kept part, or None; and a note if there was one that could not be used."""
        if not (self.folder / part_name(part)).exists():
            return None, None
        try:
            return open_part(self.folder, self.layout, part, self._checked), None
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
    return _digest({"graph": fingerprint, "layout": describe_layout(layout), "format_version": FORMAT_VERSION})


def save_part(folder: Path, part: Part, more: dict[str, np.ndarray] | None = None) -> str:
    """Write a linked part to its place in ``folder``, atomically, instead of what may be there; return its digest.

    ``more``: arrays of int64 that are kept beside it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    path = folder / part_name(part.part)
    meta = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "layout": describe_layout(part.layout),
        "part": part.part,
        "masters": part.masters,
    }
    with write_folder_beside(path, {**_stored(part), **(more or {})}, meta) as temporary:
        digest = part_digest(temporary)
        retire(path)
        try:
            os.rename(temporary, path)
        except OSError:
            # Another process has put the same part there first; its copy is as good as ours.
            if not path.is_dir():
                raise
        sync_directory(folder)
    return digest


def part_digest(path: Path) -> str:
    """What tells a part's folder from every other: a digest of its meta.json, which has the arrays' checksums."""
    with open_regular(path / META_NAME) as stream:
        return hashlib.blake2b(stream.read(META_BYTES + 1), digest_size=16).hexdigest()


def open_part(folder: Path, layout: Layout, part: int, checked: Path | None = None) -> Part:
    """Open a kept part by mapping its arrays; InputError if it is missing, damaged, or another layout's.

    The content is checked unless the folder ``checked`` remembers that this has been done since the files changed.
    """
    return open_part_with(folder, layout, part, (), checked)[0]


def open_part_with(
    folder: Path, layout: Layout, part: int, more: tuple[str, ...], checked: Path | None = None, *, check: bool = True
) -> tuple[Part, dict[str, np.ndarray]]:
    """The same, with the arrays that were kept beside it. ``check`` off: another rank looks at the content."""
    path = folder / part_name(part)
    try:
        meta = read_meta(path, _REBUILD)
    except FileNotFoundError as error:
        raise InputError("is not a part (no meta.json)", path=path, fix=_REBUILD) from error
    expected = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "layout": describe_layout(layout),
        "part": part,
    }
    wrong = [key for key, value in expected.items() if meta.get(key) != value]
    described = meta.get("arrays")
    if (
        wrong
        or not isinstance(meta.get("masters"), int)
        or not isinstance(described, dict)
        or set(described) != {*_names(layout), *more}
    ):
        raise InputError(f"is not this part: it differs in {', '.join(wrong) or 'arrays'}", path=path, fix=_REBUILD)
    arrays = {name: map_array(path / f"{name}.npy", described[name], _dtypes(name), _REBUILD) for name in described}
    links = Links(*(arrays[f"links_{name}"] for name in ("bounds", "masters", "roles")))
    beside = {name: arrays[name] for name in more}
    own = {name: array for name, array in arrays.items() if not name.startswith("links_") and name not in beside}
    opened = Part(layout=layout, part=part, masters=meta["masters"], links=links, **own)
    if not check:
        return opened, beside
    files = store_files(path, described)
    identity = identity_of(files)
    memory = None if checked is None else Memory(checked)
    if memory is None or memory.recall(path, identity) != SOUND:
        check_checksums(path, described, arrays, _REBUILD)
        if not _is_consistent(opened, links):
            raise InputError("the arrays do not fit together", path=path, fix=_REBUILD)
        if memory is not None and identity_of(files) == identity:
            memory.keep(path, identity, SOUND)
    return opened, beside


def part_name(part: int) -> str:
    """The name of a part's folder."""
    return f"{part:05d}"


def _names(layout: Layout) -> set[str]:
    return {*_ARRAYS, _WEIGHT} if layout.weighted else set(_ARRAYS)


def _dtypes(name: str) -> tuple[str, ...]:
    return _WIDE.get(name) or (_ARRAYS.get(name, "int64"),)


def describe_layout(layout: Layout) -> dict[str, Any]:
    """What tells a layout from every other of the same graph, as plain JSON."""
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
        "bounds": array_checksum(layout.bounds),
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
    limits = (
        (part.out_targets, size), (part.in_sources, size), (links.masters, part.masters), (links.roles, _ROLES + 1),
        (part.internal_of, part.n),
    )  # fmt: skip
    if not all(int(array.min()) >= 0 and int(array.max()) < limit for array, limit in limits if array.size):
        return False  # kernels trust them
    ascending = (part.out_offsets, part.in_offsets, part.mirror_bounds, links.bounds)
    return bool(
        part.mirror_bounds[0] == part.masters
        and part.mirror_bounds[-1] == size
        and part.out_offsets[-1] == part.out_targets.size == part.in_offsets[-1] == part.in_sources.size
        and links.bounds[-1] == links.masters.size == links.roles.size
        and part.out_offsets[0] == part.in_offsets[0] == links.bounds[0] == 0 <= part.masters
        and all(np.all(array[1:] >= array[:-1]) for array in ascending)
    )


def _checksums_of_store(store: Path) -> dict[str, str]:
    try:
        arrays = read_meta(store, _REBUILD)["arrays"]
        return {name: str(arrays[name]["checksum"]) for name in _IDENTIFYING if name in arrays}
    except (OSError, InputError, KeyError, TypeError):
        return {}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
