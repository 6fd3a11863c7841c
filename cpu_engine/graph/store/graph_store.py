"""A graph on disk: a folder of plain .npy arrays and a meta.json (array_folder), opened by mapping.

Opening checks version, file sizes and array headers, and at the first time - as long as the files stay what they are -
also every array's content: checksums, and that the arrays are sound (soundness).
docs/reference/store.md describes every field.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.array_folder import (
    META_NAME,
    check_checksums,
    map_array,
    read_meta,
    sync_directory,
    temporary_beside,
    write_folder_beside,
)
from cpu_engine.graph.store.remembered import SOUND, Memory, identity_of
from cpu_engine.graph.store.removal import remove_tree
from cpu_engine.graph.store.soundness import find_flaw

FORMAT_NAME = "tandem-graph"
FORMAT_VERSION = 2
_REBUILD = "build the store again from the edge list"

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
            remove_tree(retired)
        else:
            os.rename(temporary, path)
        sync_directory(path.parent)


@contextmanager
def write_beside(graph: Graph, path: Path) -> Iterator[Path]:
    """A complete, flushed store under a temporary name beside ``path``; removed at the end unless renamed away."""
    meta = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "n": graph.n,
        "m": graph.m,
        "directed": graph.directed,
        "hanging_start": graph.hanging_start,
        "graph": graph.meta,
    }
    with write_folder_beside(path, _stored(graph), meta) as temporary:
        yield temporary


def open_store(path: str | Path, checked: Path | None = None) -> Graph:
    """Open a store by mapping its arrays; InputError if it is not one, of another version, or damaged.

    The content is checked unless the folder ``checked`` remembers that this has been done since the files changed.
    """
    path = Path(path)
    graph, meta, arrays = _map_store(path)
    files = store_files(path, meta["arrays"])
    identity = identity_of(files)
    memory = None if checked is None else Memory(checked)
    if memory is None or memory.recall(path, identity) != SOUND:
        check_checksums(path, meta["arrays"], arrays, _REBUILD)
        flaw = find_flaw(graph)
        if flaw is not None:
            name, reason = flaw
            raise InputError(f"array {name} is damaged: {reason}", path=path / f"{name}.npy", fix=_REBUILD)
        if memory is not None and identity_of(files) == identity:
            memory.keep(path, identity, SOUND)
    return graph


def remember_as_sound(path: Path, graph: Graph, checked: Path) -> None:
    """Remember a store that this process has just written from a graph that it built."""
    try:
        Memory(checked).keep(path, identity_of(store_files(path, _stored(graph))), SOUND, own=True)
    except OSError:
        return  # it is checked when it is opened, no more


def store_files(path: Path, names: Iterable[str]) -> list[Path]:
    """The files of a store with these arrays."""
    return [path / META_NAME, *(path / f"{name}.npy" for name in sorted(names))]


def map_store(path: str | Path) -> Graph:
    """Map a store that this job has checked already, on another rank of this machine; its content is not looked at."""
    return _map_store(Path(path))[0]


def _map_store(path: Path) -> tuple[Graph, dict[str, Any], dict[str, np.ndarray]]:
    meta = _read_meta(path)
    arrays = {
        name: map_array(path / f"{name}.npy", described, _ARRAYS[name], _REBUILD)
        for name, described in meta["arrays"].items()
    }
    given = dict(arrays)
    if not meta["directed"]:
        given["in_offsets"], given["in_sources"] = arrays["out_offsets"], arrays["out_targets"]
    try:
        graph = Graph(
            n=meta["n"],
            m=meta["m"],
            directed=meta["directed"],
            weight=given.pop("weight", None),
            **given,
            meta=meta["graph"],
            hanging_start=meta["hanging_start"],
        )
    except ValueError as error:
        raise InputError(f"the arrays do not fit together: {error}", path=path, fix=_REBUILD) from error
    return graph, meta, arrays


def is_store(path: str | Path) -> bool:
    """Whether ``path`` is a folder that calls itself a graph store, of any version."""
    try:
        return bool(read_meta(Path(path), _REBUILD).get("format") == FORMAT_NAME)
    except (OSError, ValueError, InputError):
        return False


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


def _read_meta(path: Path) -> dict[str, Any]:
    file = path / META_NAME
    try:
        meta = read_meta(path, _REBUILD)
    except FileNotFoundError as error:
        raise InputError("is not a graph store (no meta.json)", path=path, fix="name the store's folder") from error
    if meta.get("format") != FORMAT_NAME:
        raise InputError("does not describe a graph store", path=file, fix="name the store's folder")
    if meta.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"the store has format version {str(meta.get('format_version'))[:20]}, this program reads version "
            f"{FORMAT_VERSION}",
            path=file,
            fix=_REBUILD,
        )
    kinds = {"n": int, "m": int, "directed": bool, "hanging_start": int, "arrays": dict, "graph": dict}
    wrong = [key for key, kind in kinds.items() if not isinstance(meta.get(key), kind)]
    if not wrong:
        needed = {n for n in _ARRAYS if n != "weight" and (meta["directed"] or n not in _DIRECTED_ONLY)}
        wrong = sorted(needed.symmetric_difference(set(meta["arrays"]) - {"weight"}))[: len(_ARRAYS)]
    if wrong:
        raise InputError(f"is incomplete or inconsistent at {', '.join(wrong)[:200]}", path=file, fix=_REBUILD)
    return meta
