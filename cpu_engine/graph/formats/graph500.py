"""Graph500 edge lists: pairs of vertex ids, nothing else, as the reference generator keeps them.

Two layouts, little-endian: plain (two 8-byte ids) and packed (12 bytes: the low 32 bits of source and target, then the
high 16 bits of the source and of the target).
Invariant: edges are undirected and stored once. The files have no magic, so without a name they are recognised only if
exactly one layout gives the size and ids that a generated graph can have.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.binary_input import CHUNK, BinaryInput
from cpu_engine.graph.formats.source import Progress, check_file

PLAIN, PACKED = "graph500", "graph500-packed"
EDGE_BYTES = {PLAIN: 16, PACKED: 12}
_LAYOUT = {
    PLAIN: np.dtype([("v0", "<i8"), ("v1", "<i8")]),
    PACKED: np.dtype([("v0", "<u4"), ("v1", "<u4"), ("v0_high", "<i2"), ("v1_high", "<i2")]),
}
# A generated graph has 2^scale ids and a multiple of that many edges; tiny ones get room.
HIGHEST_PER_EDGE, HIGHEST_FLOOR = 16, 1024


def read_plain(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read pairs of 64-bit ids."""
    return _read(path, PLAIN, progress)


def read_packed(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read packed 48-bit pairs."""
    return _read(path, PACKED, progress)


def _read(path: Path, name: str, progress: Progress | None) -> EdgeList:
    count = count_edges(path, name)
    src, dst = np.empty(count, np.int64), np.empty(count, np.int64)
    at = 0
    for u, v in read_range(path, name, 0, count, progress):
        src[at : at + len(u)], dst[at : at + len(u)] = u, v
        at += len(u)
    return EdgeList(
        src, dst, directed=False, format=name, path=str(path), notes=() if count else ("the file has no edges",)
    )


def count_edges(path: Path, name: str) -> int:
    """How many edges the file has; InputError if that is no whole number."""
    size = check_file(path)
    if size % EDGE_BYTES[name]:
        raise InputError(
            f"the size, {plural(size, 'byte')}, is not a multiple of the {EDGE_BYTES[name]} bytes of an edge",
            path=path,
            fix="the file is cut off, or it has another format",
        )
    return size // EDGE_BYTES[name]


def read_range(
    path: Path, name: str, first: int, last: int, progress: Progress | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both ends of the edges [first, last), at most ``CHUNK`` at a time."""
    with path.open("rb") as file:
        file.seek(first * EDGE_BYTES[name])
        data = BinaryInput(file, path, path.stat().st_size, progress)
        for start in range(first, last, CHUNK):
            u, v = _decode(data.chunk(_LAYOUT[name], min(CHUNK, last - start)), name)
            bad = np.flatnonzero((u < 0) | (v < 0))
            if len(bad):
                at = int(bad[0])
                raise InputError(
                    f"edge {start + at} has a negative vertex id",
                    path=path,
                    value=f"{int(u[at])} {int(v[at])}",
                    fix=f"write ids from 0, or name the format if it is not {name}",
                )
            yield u, v


def _decode(edges: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == PLAIN:
        return edges["v0"], edges["v1"]
    return (
        edges["v0"].astype(np.int64) | edges["v0_high"].astype(np.int64) << 32,
        edges["v1"].astype(np.int64) | edges["v1_high"].astype(np.int64) << 32,
    )


def plausible_layouts(file: BinaryIO, size: int) -> list[str]:
    """The layouts under which the first edges of the file look generated."""
    found = []
    for name, width in EDGE_BYTES.items():
        if size == 0 or size % width:
            continue
        file.seek(0)
        count = min(CHUNK, size // width)
        u, v = _decode(np.frombuffer(file.read(count * width), _LAYOUT[name]), name)
        highest = max(HIGHEST_FLOOR, HIGHEST_PER_EDGE * (size // width))
        if min(u.min(), v.min()) >= 0 and max(u.max(), v.max()) < highest:
            found.append(name)
    return found
