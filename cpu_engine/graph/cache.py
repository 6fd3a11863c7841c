"""Built graphs kept for the next run, found by what they were built from.

Invariant: the key is content (a file's digest or a generator's arguments), options and format version, so an entry is
never stale; it is only ever complete (renamed in) or absent. The cache is a convenience: no failure of it is a failure
of the job.

    <cache_dir>/graphs/<key>/        a graph store (store.py)
    <cache_dir>/digests/<name>.json  a file's digest with the size, times and inode it was taken at
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store import (
    FORMAT_VERSION,
    TEMPORARY_PREFIX,
    open_store,
    sync_directory,
    temporary_beside,
    write_beside,
)

BUILD_VERSION = 1  # raised whenever the same input would build to a different graph
ABANDONED_AFTER_S = 24 * 3600
RACY_WINDOW_NS = 2_000_000_000  # file systems with coarse clocks can hide a change this soon after another
_BLOCK = 1 << 24


@dataclass(frozen=True)
class CacheInfo:
    """How a graph was obtained; ``path`` is None when it could not be kept, ``note`` tells what was not ordinary."""

    hit: bool
    path: Path | None
    seconds_open: float
    seconds_build: float
    seconds_save: float = 0.0
    note: str | None = None


def cached_graph(key_parts: dict[str, Any], make: Callable[[], Graph], cache_dir: Path) -> tuple[Graph, CacheInfo]:
    """The graph for ``key_parts`` from the cache, or from ``make()`` and then kept."""
    path = Path(cache_dir) / "graphs" / graph_key(key_parts)
    notes: list[str] = []
    started = time.perf_counter()
    if path.exists():
        try:
            graph = open_store(path)
            return graph, CacheInfo(True, path, time.perf_counter() - started, 0.0)
        except InputError as error:
            notes.append(f"the cached graph was damaged and is built again ({error.reason})")
            _discard(path)
    opened = time.perf_counter()
    graph = make()
    built = time.perf_counter()
    kept: Path | None = path
    try:
        _keep(graph, path)
    except OSError as error:
        kept = None
        notes.append(f"the graph could not be kept in the cache {cache_dir} ({error.strerror or error})")
    saved = time.perf_counter()
    return graph, CacheInfo(False, kept, opened - started, built - opened, saved - built, "; ".join(notes) or None)


def graph_key(key_parts: dict[str, Any]) -> str:
    """The name of the entry for these parts; every part must be plain JSON."""
    parts = {"parts": key_parts, "format_version": FORMAT_VERSION, "build_version": BUILD_VERSION}
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def file_digest(path: str | Path, cache_dir: Path) -> str:
    """A file's content digest; not read again while its size, times and inode are those of the last reading."""
    real = os.path.realpath(path)
    index = Path(cache_dir) / "digests" / f"{hashlib.blake2b(os.fsencode(real), digest_size=16).hexdigest()}.json"
    try:
        identity = _identity(real)
        remembered = _read_index(index)
        if remembered.get("identity") == identity and "digest" in remembered:
            return str(remembered["digest"])
        hasher = hashlib.blake2b(digest_size=32)
        with open(real, "rb") as stream:
            while block := stream.read(_BLOCK):
                hasher.update(block)
        unchanged = _identity(real) == identity
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", path=path, fix="check the name and the permissions"
        ) from error
    settled = time.time_ns() - identity["mtime_ns"] > RACY_WINDOW_NS
    if unchanged and settled:
        _write_index(index, {"path": real, "identity": identity, "digest": hasher.hexdigest()})
    return hasher.hexdigest()


def _keep(graph: Graph, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    with write_beside(graph, path) as temporary:
        try:
            os.rename(temporary, path)
        except OSError:
            # Another process has put the same graph there first; its copy is as good as ours.
            if not path.exists():
                raise
        sync_directory(path.parent)


def _discard(path: Path) -> None:
    """Take an entry out of the way in one step, so that no reader sees half of it."""
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


def _identity(real: str) -> dict[str, int]:
    status = os.stat(real)
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino, "device": status.st_dev}


def _read_index(index: Path) -> dict[str, Any]:
    try:
        remembered = json.loads(index.read_bytes())
    except (OSError, ValueError):
        return {}
    return remembered if isinstance(remembered, dict) else {}


def _write_index(index: Path, remembered: dict[str, Any]) -> None:
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_beside(index)
        temporary.write_text(json.dumps(remembered))
        os.replace(temporary, index)
    except OSError:
        return  # the next run reads the file again, no more
