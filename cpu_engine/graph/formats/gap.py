"""GAP serialised graphs (.sg, and .wsg with weights): rows of neighbours over 0..n-1.

Layout, little-endian and unaligned: directed (1 byte), entries m, vertices n (8 bytes each); n + 1 row offsets (8 bytes
each); m neighbours (4 bytes each; in .wsg each followed by a 4-byte weight). A directed graph repeats offsets and
neighbours for the in-edges. Nothing in the header tells .sg from .wsg: the size of the file does.
Invariant: the file has exactly the size that its header implies; an undirected one holds each edge in both directions.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cpu_engine.counted import count, plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.binary_input import CHUNK, BinaryInput, check_offsets, check_targets, rows_of
from cpu_engine.graph.formats.csr_output import Rows, sort_rows, to_rows
from cpu_engine.graph.formats.source import Progress, check_file
from cpu_engine.graph.formats.stored_rows import StoredRows
from cpu_engine.graph.formats.symmetry import edge_without_reverse, is_symmetric

NAME = "gap"
HEADER_BYTES = 17
HIGHEST_ID = 2**31 - 2
PAIR = np.dtype([("v", "<i4"), ("w", "<i4")])
_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Header:
    directed: bool
    m: int
    n: int

    def size(self, weighted: bool, inverse: bool) -> int:
        rows = 8 * (self.n + 1) + (8 if weighted else 4) * self.m
        return HEADER_BYTES + rows * (2 if inverse else 1)

    def weighted(self, size: int) -> bool | None:
        """Whether a file of ``size`` bytes has weights; None when no layout has that size."""
        for inverse in (self.directed, False):
            for weighted in (False, True):
                if size == self.size(weighted, inverse):
                    return weighted
        return None


def parse_header(start: bytes) -> Header | None:
    """The header, or None if the bytes cannot be one."""
    if len(start) < HEADER_BYTES or start[0] > 1:
        return None
    directed, m, n = struct.unpack_from("<?qq", start)
    return Header(directed, m, n) if 0 <= n <= HIGHEST_ID + 1 and 0 <= m < 2**40 else None


def _sound_header(file: BinaryIO, path: Path, size: int) -> tuple[Header, bool]:
    """The header, and whether there are weights."""
    header = parse_header(file.read(HEADER_BYTES))
    if header is None:
        raise InputError("not a GAP serialised graph", path=path, fix="name the format that the file has")
    weighted = header.weighted(size)
    if weighted is None:
        inverse = header.directed
        raise InputError(
            f"the header declares {plural(header.n, 'vertex')} and {plural(header.m, 'edge')}, "
            f"so {count(header.size(False, inverse))} bytes (.sg) or {count(header.size(True, inverse))} (.wsg); "
            f"the file has {count(size)}",
            path=path,
            fix="the file is cut off or damaged: write or download it again",
        )
    return header, weighted


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read a .sg or .wsg file."""
    size = check_file(path)
    with path.open("rb") as file:
        header, weighted = _sound_header(file, path, size)
        data = BinaryInput(file, path, size, progress)
        offsets = data.integers("<i8", header.n + 1)
        check_offsets(offsets, header.m, path)
        targets, weight = _neighbours(data, header.m, weighted)
    check_targets(targets, header.n, path)
    src = rows_of(offsets)
    if not header.directed:
        _check_symmetric(src, targets, path)
    return EdgeList(
        src,
        targets,
        weight,
        id_range=(0, header.n),
        directed=header.directed,
        symmetric_stored=not header.directed,
        format=NAME,
        path=str(path),
    )


def stored_rows(path: Path) -> tuple[StoredRows, bool]:
    """Where a .sg or .wsg file has what, and whether the graph is directed."""
    size = check_file(path)
    with path.open("rb") as file:
        header, weighted = _sound_header(file, path, size)
        begin = int(np.frombuffer(file.read(8), "<i8")[0])
    targets_at = HEADER_BYTES + 8 * (header.n + 1)
    target = PAIR if weighted else "<i4"
    found = StoredRows(path, header.n, header.m, HEADER_BYTES + 8, "<i8", targets_at, target, begin=begin)
    return found, header.directed


def _neighbours(data: BinaryInput, count: int, weighted: bool) -> tuple[np.ndarray, np.ndarray | None]:
    if not weighted:
        return data.integers("<i4", count), None
    targets, weight = np.empty(count, np.int64), np.empty(count, np.int64)
    for start in range(0, count, CHUNK):
        pairs = data.chunk(PAIR, min(CHUNK, count - start))
        targets[start : start + CHUNK], weight[start : start + CHUNK] = pairs["v"], pairs["w"]
    return targets, weight


def _check_symmetric(src: np.ndarray, dst: np.ndarray, path: Path) -> None:
    if is_symmetric(src, dst):
        return
    at = edge_without_reverse(src, dst)
    raise InputError(
        "the graph is marked undirected, but an edge lacks its reverse",
        path=path,
        value=f"{int(src[at])} {int(dst[at])}",
        fix="write it again as a directed graph, or with both directions",
    )


def write(file: BinaryIO, edges: EdgeList, path: Path, *, weighted: bool) -> None:
    """Write .sg (weights, if any, are left out) or .wsg (weights must be integers of 32 bits)."""
    if weighted:
        _check_weights(edges.weight, path)
    rows = to_rows(edges, path, highest=HIGHEST_ID)
    directed = edges.directed is not False
    file.write(struct.pack("<?qq", directed, len(rows.targets), rows.n))
    _write_rows(file, rows, weighted)
    if directed:
        sources = rows_of(rows.offsets)
        _write_rows(file, sort_rows(rows.targets, sources, rows.weight, rows.n), weighted)


def _check_weights(weight: np.ndarray | None, path: Path) -> None:
    if weight is None:
        raise InputError("the graph has no weights, a .wsg file needs them", path=path, fix="write .sg")
    if weight.dtype.kind not in "iu" or (len(weight) and (weight.min() < _INT32.min or weight.max() > _INT32.max)):
        raise InputError(
            "the weights are not integers of 32 bits, a .wsg file holds no others", path=path, fix="write .wel or .gr"
        )


def _write_rows(file: BinaryIO, rows: Rows, weighted: bool) -> None:
    file.write(rows.offsets.astype("<i8").tobytes())
    if not weighted or rows.weight is None:
        file.write(rows.targets.astype("<i4").tobytes())
        return
    pairs = np.empty(len(rows.targets), PAIR)
    pairs["v"], pairs["w"] = rows.targets, rows.weight
    file.write(pairs.tobytes())
