"""Galois binary graphs (.gr, versions 1 and 2): out-edges as rows over 0..n-1.

Layout, little-endian: version, bytes per edge datum, n, m (8 bytes each); n row ends (8 bytes each); m targets (4 bytes
each in version 1, 8 in version 2), padded to 8 (version 1) or perhaps to 16 bytes (version 2); m edge data.
Invariant: the file has exactly the size that its header implies. The type of the edge data is not in the file: integers
unless every value only makes sense as a float; the notes say what was chosen.
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
from cpu_engine.graph.formats.binary_input import BinaryInput, check_offsets, check_targets, rows_of
from cpu_engine.graph.formats.csr_output import to_rows
from cpu_engine.graph.formats.source import Progress, check_file
from cpu_engine.graph.formats.stored_rows import StoredRows

NAME = "galois"
HEADER_BYTES = 32
_UNSIGNED = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}


@dataclass(frozen=True)
class Header:
    version: int
    datum_bytes: int
    n: int
    m: int

    def sizes(self) -> tuple[int, ...]:
        """File sizes that fit: without and with padding behind the targets."""
        target_bytes = 4 * self.version
        plain = HEADER_BYTES + 8 * self.n + target_bytes * self.m
        data = self.datum_bytes * self.m
        padding = target_bytes * (self.m % 2)
        # Version 1 data is always aligned; without data, and in version 2, writers differ.
        return (plain + padding + data,) if self.version == 1 and data else (plain + data, plain + padding + data)


def parse_header(start: bytes) -> Header | None:
    """The header, or None if the bytes cannot be one."""
    if len(start) < HEADER_BYTES:
        return None
    header = Header(*struct.unpack_from("<4Q", start))
    sane = header.version in (1, 2) and header.datum_bytes <= 64 and header.n < 2**40 and header.m < 2**48
    return header if sane else None


def _sound_header(file: BinaryIO, path: Path, size: int) -> Header:
    header = parse_header(file.read(HEADER_BYTES))
    if header is None:
        raise InputError(
            "not a Galois graph: the version must be 1 or 2", path=path, fix="name the format that the file has"
        )
    if size not in header.sizes():
        raise InputError(
            f"the header declares {plural(header.n, 'vertex')} and {plural(header.m, 'edge')}, "
            f"so {count(header.sizes()[0])} bytes; the file has {count(size)}",
            path=path,
            fix="the file is cut off or damaged: write or download it again",
        )
    return header


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read a Galois .gr file."""
    size = check_file(path)
    with path.open("rb") as file:
        header = _sound_header(file, path, size)
        data = BinaryInput(file, path, size, progress)
        offsets = np.zeros(header.n + 1, np.int64)
        offsets[1:] = data.integers("<u8", header.n)
        check_offsets(offsets, header.m, path)
        targets = data.integers("<u4" if header.version == 1 else "<u8", header.m)
        check_targets(targets, header.n, path)
        weight: np.ndarray | None = None
        notes: tuple[str, ...] = ()
        if header.datum_bytes and header.m:
            data.skip(size - file.tell() - header.datum_bytes * header.m)
            weight, notes = _edge_data(data, header)
    return EdgeList(rows_of(offsets), targets, weight, id_range=(0, header.n), format=NAME, path=str(path), notes=notes)


def stored_rows(path: Path) -> tuple[StoredRows, int]:
    """Where a Galois .gr file has what, and the bytes of its edge data, known as weights or not."""
    size = check_file(path)
    with path.open("rb") as file:
        header = _sound_header(file, path, size)
    weights_at, weight = -1, ""
    if header.m and header.datum_bytes in _UNSIGNED:
        weights_at, weight = size - header.datum_bytes * header.m, _UNSIGNED[header.datum_bytes]
    target, targets_at = "<u4" if header.version == 1 else "<i8", HEADER_BYTES + 8 * header.n
    found = StoredRows(path, header.n, header.m, HEADER_BYTES, "<i8", targets_at, target, weights_at, weight)
    return found, header.datum_bytes if header.m else 0


def _edge_data(data: BinaryInput, header: Header) -> tuple[np.ndarray | None, tuple[str, ...]]:
    size = header.datum_bytes
    if size not in _UNSIGNED:
        return None, data_notes(size, "")
    raw = data.array(_UNSIGNED[size], header.m)
    kind = weight_kind(size, _looks_like_floats(raw, size))
    return as_weights(raw, kind), data_notes(size, kind)


def weight_kind(size: int, floats: bool) -> str:
    """How edge data of so many bytes is read."""
    if floats:
        return f"float{8 * size}"
    return "int64" if size == 8 else f"uint{8 * size}"


def as_weights(raw: np.ndarray, kind: str) -> np.ndarray:
    """Raw edge data as weights of this kind."""
    if kind.startswith("float"):
        return raw.view(f"<f{raw.itemsize}").astype(np.float64)
    return raw.view("<i8").astype(np.int64, copy=False) if kind == "int64" else raw.astype(np.int64)


def data_notes(size: int, kind: str) -> tuple[str, ...]:
    """What to say of edge data of so many bytes that is read as this kind; '': left out."""
    if not size:
        return ()
    if not kind:
        return (
            f"the edge data ({plural(size, 'byte')} per edge) is left out: only 1, 2, 4 or 8 bytes are read as weights",
        )
    return (f"edge data of {plural(size, 'byte')} read as {kind} weights; the file does not state their type",)


def _looks_like_floats(raw: np.ndarray, size: int) -> bool:
    """Whether each value is an everyday float, and one of them is not 0."""
    every, some = float_evidence(raw, size)
    return every and some


def float_evidence(raw: np.ndarray, size: int) -> tuple[bool, bool]:
    """Whether each value is 0 or an everyday float whose bits, read as an integer, are no everyday weight; and one is.

    4 bytes: 1e-9..1e9, integers of 0.8 to 1.3 thousand million (time stamps lie above). 8 bytes: integers above 1e17.
    """
    if size not in (4, 8):
        return False, False
    lowest, highest = (1e-9, 1e9) if size == 4 else (1e-300, 1e300)
    with np.errstate(all="ignore"):  # arbitrary bits may be signalling NaNs
        values = np.abs(raw.view(f"<f{size}").astype(np.float64))
        everyday = (values >= lowest) & (values <= highest)
    return bool((everyday | (values == 0)).all()), bool(everyday.any())


def _fits_4_bytes(weight: np.ndarray) -> bool:
    """Whether whole weights can take 4 bytes that no reader of ours would take for floats."""
    fits = weight.min() >= 0 and weight.max() < 2**32
    return bool(fits) and not _looks_like_floats(weight.astype("<u4"), 4)


def write(file: BinaryIO, edges: EdgeList, path: Path) -> None:
    """Write version 1; integer weights take 4 bytes where they fit, else 8, floats 8."""
    rows = to_rows(edges, path, highest=2**32 - 2)
    weight, m = rows.weight, len(rows.targets)
    datum = ""
    if weight is not None and m:
        datum = "<f8" if weight.dtype.kind == "f" else "<u4" if _fits_4_bytes(weight) else "<i8"
    file.write(struct.pack("<4Q", 1, np.dtype(datum).itemsize if datum else 0, rows.n, m))
    file.write(rows.offsets[1:].astype("<u8").tobytes())
    file.write(rows.targets.astype("<u4").tobytes())
    file.write(bytes(4 * (m % 2)))
    if weight is not None and datum:
        file.write(weight.astype(datum).tobytes())
