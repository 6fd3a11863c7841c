"""Built graphs kept for the next run, found by what they were built from.

Invariant: the key is content (a file's digest or a generator's arguments), options and format version, so an entry is
never stale; it is only ever complete (renamed in) or absent. The cache is a convenience: no failure of it is a failure
of the job.

    <cache_dir>/graphs/<key>/        a graph store (store.py)
    <cache_dir>/digests/<name>.json  a file's digest with the size, times and inode it was taken at
    <cache_dir>/checked/<name>.json  which stores were checked, in the cache and elsewhere, likewise
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.array_folder import retire, sweep, sync_directory
from cpu_engine.graph.store.graph_store import FORMAT_VERSION, open_store, remember_as_sound, write_beside
from cpu_engine.graph.store.npy import open_regular
from cpu_engine.graph.store.remembered import Memory, identity_of

BUILD_VERSION = 2  # raised whenever the same input would build to a different graph
_BLOCK = 1 << 24


@dataclass(frozen=True)
class CacheInfo:
    """How a graph was obtained; ``path`` is None when it could not be kept, ``note`` tells what was not ordinary."""

    hit: bool
    path: Path | None
    seconds_open: float
    seconds_build: float
    note: str | None = None


def cached_graph(key_parts: dict[str, Any], make: Callable[[], Graph], cache_dir: Path) -> tuple[Graph, CacheInfo]:
    """The graph for ``key_parts`` from the cache, or from ``make()`` and then kept."""
    path = cache_path(key_parts, cache_dir)
    notes: list[str] = []
    started = time.perf_counter()
    if path.exists():
        try:
            graph = open_store(path, checked_folder(cache_dir))
            return graph, CacheInfo(True, path, time.perf_counter() - started, 0.0)
        except InputError as error:
            notes.append(f"the cached graph was damaged and is built again ({error.reason})")
            retire(path)
    opened = time.perf_counter()
    graph = make()
    built = time.perf_counter()
    kept: Path | None = path
    try:
        _keep(graph, path)
        remember_as_sound(path, graph, checked_folder(cache_dir))
    except OSError as error:
        kept = None
        notes.append(f"the graph could not be kept in the cache {cache_dir} ({error.strerror or error})")
    return graph, CacheInfo(False, kept, opened - started, built - opened, "; ".join(notes) or None)


def cache_path(key_parts: dict[str, Any], cache_dir: Path) -> Path:
    """Where the graph for these parts is, if it is kept."""
    return Path(cache_dir) / "graphs" / graph_key(key_parts)


def graph_key(key_parts: dict[str, Any]) -> str:
    """The name of the entry for these parts; every part must be plain JSON."""
    parts = {"parts": key_parts, "format_version": FORMAT_VERSION, "build_version": BUILD_VERSION}
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def checked_folder(cache_dir: Path) -> Path:
    """Where is remembered which stores were checked."""
    return Path(cache_dir) / "checked"


def file_digest(path: str | Path, cache_dir: Path) -> str:
    """A file's content digest; not read again while its size, times and inode are those of the last reading."""
    real, memory = Path(os.path.realpath(path)), _digests(cache_dir)
    try:
        identity = identity_of([real])
        remembered = memory.recall(real, identity)
        if remembered is not None:
            return remembered
        hasher = hashlib.blake2b(digest_size=32)
        with open_regular(real) as stream:
            while block := stream.read(_BLOCK):
                hasher.update(block)
        unchanged = identity_of([real]) == identity
    except ValueError as error:
        raise InputError(str(error), path=path, fix="write the graph to a file first") from error
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", path=path, fix="check the name and the permissions"
        ) from error
    if unchanged:
        memory.keep(real, identity, hasher.hexdigest())
    return hasher.hexdigest()


def knows_digest(path: str | Path, cache_dir: Path) -> bool:
    """Whether ``file_digest`` would answer without reading the file."""
    try:
        real = Path(os.path.realpath(path))
        return _digests(cache_dir).recall(real, identity_of([real])) is not None
    except OSError:
        return False


def _digests(cache_dir: Path) -> Memory:
    return Memory(Path(cache_dir) / "digests")


def _keep(graph: Graph, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    with write_beside(graph, path) as temporary:
        try:
            os.rename(temporary, path)
        except OSError:
            # Another process has put the same graph there first; its copy is as good as ours.
            if not path.exists():
                raise
        sync_directory(path.parent)
