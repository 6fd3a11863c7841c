"""Arrays out of binary files, a chunk at a time.

Invariant: sizes are checked against the file before anything is allocated, so a wrong header cannot exhaust memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.formats.source import Progress

CHUNK = 1 << 20


class BinaryInput:
    """Reads arrays in file order and reports progress. The file belongs to the caller."""

    def __init__(self, file: BinaryIO, path: Path, size: int, progress: Progress | None) -> None:
        self._file, self._path, self._size, self._progress = file, path, size, progress

    def skip(self, count: int) -> None:
        self._file.seek(count, 1)

    def array(self, dtype: str, count: int) -> np.ndarray:
        """The next ``count`` values, as they are."""
        values = np.empty(count, dtype)
        for start in range(0, count, CHUNK):
            values[start : start + CHUNK] = self.chunk(dtype, min(CHUNK, count - start))
        return values

    def integers(self, dtype: str, count: int) -> np.ndarray:
        """The next ``count`` integers as int64."""
        values = np.empty(count, np.int64)
        for start in range(0, count, CHUNK):
            values[start : start + CHUNK] = self.chunk(dtype, min(CHUNK, count - start))
        return values

    def chunk(self, dtype: str | np.dtype, count: int) -> np.ndarray:
        data = self._file.read(np.dtype(dtype).itemsize * count)
        if len(data) != np.dtype(dtype).itemsize * count:
            raise InputError(
                "the file became shorter while it was read", path=self._path, fix="read it again when it is whole"
            )
        if self._progress is not None:
            self._progress(self._file.tell(), self._size)
        return np.frombuffer(data, dtype)


def check_offsets(offsets: np.ndarray, edges: int, path: Path) -> None:
    """Row offsets begin at 0, never fall and end at the number of edges."""
    if offsets[0] != 0 or offsets[-1] != edges or (len(offsets) > 1 and bool((offsets[1:] < offsets[:-1]).any())):
        falls = np.flatnonzero(offsets[1:] < offsets[:-1])
        at = int(falls[0]) + 1 if len(falls) else len(offsets) - 1 if offsets[0] == 0 else 0
        raise InputError(
            f"the row offsets do not rise from 0 to {edges}",
            path=path,
            value=f"offset {at} is {int(offsets[at])}",
            fix="the file is damaged: write it again",
        )


def check_targets(targets: np.ndarray, vertices: int, path: Path, before: int = 0) -> None:
    """Neighbours are vertices 0..vertices-1; ``before`` others come in front of these."""
    if len(targets) and (int(targets.min()) < 0 or int(targets.max()) >= vertices):
        at = int(np.argmax((targets < 0) | (targets >= vertices)))
        raise InputError(
            f"an edge leads to a vertex outside 0..{vertices - 1}",
            path=path,
            value=f"edge {before + at} leads to {int(targets[at])}",
            fix="the file is damaged: write it again",
        )


def rows_of(offsets: np.ndarray) -> np.ndarray:
    """The row of each entry of a CSR structure."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
