"""The core's index as the coordinator keeps it: distances between all core vertices, made once, stored, and used.

Invariant: what is read back is what was written (checksum) and belongs to this very core (its name is a digest of the
core's edges); anything else counts as none. Whether the distances are true is not decided here: values from a wrong
index fail the certificate, and the index is thrown away.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.npy import open_regular, read_npy
from cpu_engine.hub_core.kernels.index import (
    FAR,
    close_row_step,
    close_row_within_two_step,
    close_rows_step,
    close_rows_within_two_step,
    index_core_step,
    pack_near_step,
)
from cpu_engine.hub_core.kernels.rows import skip_core_step
from hybrid.results.atomic_write import atomic_write

VERSION = 1  # of the file's layout
_FOLDER = "indexes"
_MAGIC = b"tandem-core-index\n"
_HEAD_BYTES = 1 << 16  # more than the heads of the file and of the array have
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class CoreIndex:
    """distance[u, v] = edges on a shortest path inside the core, uint8[k, k], 255 where there is none."""

    distance: np.ndarray

    @property
    def size(self) -> int:
        return int(self.distance.shape[0])

    @cached_property
    def diameter(self) -> int | None:
        """The largest distance; None where some vertex does not reach some other one."""
        largest = int(self.distance.max(initial=0))
        return None if largest == FAR else largest

    @cached_property
    def _near(self) -> np.ndarray:
        near = np.zeros((self.size, -(-self.size // 64)), np.uint64)
        pack_near_step(self.distance, near)
        return near

    @property
    def within_two(self) -> bool:
        """Whether values follow in closed form."""
        return self.diameter is not None and self.diameter <= 2

    def prepare(self) -> None:
        """Compute what ``close`` needs and compile its kernels, before a search is timed."""
        for values in (np.full(self.size, -1, np.int32), np.full((1, self.size), -1, np.int32)):
            self.close(values)

    def close(self, values: np.ndarray) -> np.ndarray:
        """The values, int32[k] or int32[B, k] (-1: none), closed under the core's edges."""
        closed = np.empty_like(values)
        if self.within_two:
            by_bits = close_row_within_two_step if values.ndim == 1 else close_rows_within_two_step
            by_bits(self._near, values, closed)
        else:
            by_rows = close_row_step if values.ndim == 1 else close_rows_step
            by_rows(self.distance, -1 if self.diameter is None else self.diameter, values, closed)
        return closed


def compute_index(out_offsets: np.ndarray, out_targets: np.ndarray, core_size: int) -> CoreIndex | None:
    """The index by the CPU, for devices that are only simulated; None where a distance does not fit into a byte."""
    end = skip_core_step(out_offsets[: core_size + 1], out_targets, core_size)
    distance = np.empty((core_size, core_size), np.uint8)
    targets = out_targets.view(f"u{out_targets.itemsize}")
    farthest = index_core_step(out_offsets[:core_size], end, targets, distance) if core_size else 0
    return None if farthest >= FAR else CoreIndex(distance)


# ------------------------------------------------------------------------------------------------------ its file


def core_digest(graph: Graph, core_size: int) -> str:
    """A digest of the core's edges: the same core has the same index, in any graph."""
    offsets, targets = graph.out_offsets[: core_size + 1], graph.out_targets
    inside = skip_core_step(offsets, targets, core_size) - offsets[:-1]
    rows = targets[: int(offsets[-1])]
    digest = hashlib.blake2b(f"{core_size}\n".encode(), digest_size=16)
    digest.update(inside.astype("<i8").tobytes())
    digest.update(rows[rows < core_size].astype("<i4").tobytes())
    return digest.hexdigest()


def index_path(folder: Path, graph: Graph, core_size: int) -> Path:
    """Where the index of this core is kept, in the folder of built graphs."""
    return folder / _FOLDER / f"{core_digest(graph, core_size)}-k{core_size}.index"


def load_index(path: Path, core_size: int) -> CoreIndex | None:
    """The stored index; None if there is none, or if it is damaged (the log says so, and the file is removed)."""
    try:
        with open_regular(path) as stream:
            content = stream.read(2 * core_size**2 + _HEAD_BYTES)  # what compresses badly grows by less
        return _parse(content, core_size)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        _log.warning("%s is not used, and removed: %s", path, error)
        forget_index(path)
        return None


def store_index(path: Path, index: CoreIndex) -> bool:
    """Keep it for the next job; a reader sees all of it or nothing. False, and a line in the log, if that fails."""
    text = io.BytesIO()
    np.save(text, np.ascontiguousarray(index.distance), allow_pickle=False)
    payload = zlib.compress(text.getvalue(), 1)  # mostly ones and twos: a tenth of it is left
    head = {"version": VERSION, "k": index.size, "checksum": hashlib.blake2b(payload, digest_size=16).hexdigest()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, _MAGIC + json.dumps(head).encode() + b"\n" + payload)
    except OSError as error:
        _log.warning("the index cannot be kept: %s", error)
        return False
    return True


def forget_index(path: Path) -> None:
    """Remove the file."""
    with contextlib.suppress(OSError):
        path.unlink()


def _parse(content: bytes, core_size: int) -> CoreIndex:
    if not content.startswith(_MAGIC):
        raise ValueError("it is no index")
    line, _, payload = content[len(_MAGIC) :].partition(b"\n")
    head = json.loads(line)
    if head["version"] != VERSION:
        raise ValueError(f"its layout is {head['version']}, this program reads {VERSION}")
    if hashlib.blake2b(payload, digest_size=16).hexdigest() != head["checksum"]:
        raise ValueError("its checksum is wrong")
    try:
        text = zlib.decompressobj().decompress(payload, core_size**2 + _HEAD_BYTES)
        distance = read_npy(io.BytesIO(text))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if distance.shape != (core_size, core_size) or distance.dtype != np.uint8:
        raise ValueError(f"it is {distance.dtype}{list(distance.shape)}, not of a core of {core_size}")
    return CoreIndex(distance)
