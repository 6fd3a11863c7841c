"""Rows of neighbours in a binary file, of which any range of entries is read without the rest.

Invariant: offsets are looked at where they are, as pages of the file; only the entries of a piece are in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.graph.formats.binary_input import check_offsets, check_targets


@dataclass(frozen=True)
class StoredRows:
    """Where a file has its row ends, its neighbours and perhaps their weights, and of which types."""

    path: Path
    n: int
    m: int
    ends_at: int
    end: str
    targets_at: int
    target: Any  # a type; of neighbours with weights beside them, fields v and w
    weights_at: int = -1
    weight: str = ""
    begin: int = 0  # the offset of the first row, where the file has it

    def require_sound_offsets(self, first: int, last: int) -> None:
        """InputError unless the offsets of the rows [first, last) rise, and from 0 to the entries over all rows."""
        ends = np.asarray(self._ends()[max(first - 1, 0) : last], np.int64)
        whole = last < self.n or (int(ends[-1]) if ends.size else 0) == self.m
        if whole and self.begin == 0 and bool((np.diff(ends) >= 0).all()) and (ends.size == 0 or int(ends[0]) >= 0):
            return
        offsets = np.empty(self.n + 1, np.int64)  # only for the message
        offsets[0], offsets[1:] = self.begin, self._ends()
        check_offsets(offsets, self.m, self.path)

    def pieces(self, first: int, last: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Sources, targets and raw weights of the entries [first, last), at most ``size`` at a time."""
        ends = self._ends()
        for at in range(first, last, size):
            stop = min(at + size, last)
            top, bottom = bisect_right(ends, at), bisect_right(ends, stop - 1)
            borders = np.concatenate(([at], np.asarray(ends[top:bottom], np.int64), [stop]))
            sources = np.repeat(np.arange(top, bottom + 1, dtype=np.int64), np.diff(borders))
            entries = self._read(self.targets_at, self.target, at, stop)
            weight = self._read(self.weights_at, self.weight, at, stop) if self.weight else None
            if entries.dtype.names:
                entries, weight = entries["v"], entries["w"]
            targets = entries.astype(np.int64)
            check_targets(targets, self.n, self.path, before=at)
            yield sources, targets, weight

    def weights(self, first: int, last: int, size: int) -> Iterator[np.ndarray]:
        """The raw weights of the entries [first, last), at most ``size`` at a time."""
        for at in range(first, last, size):
            yield self._read(self.weights_at, self.weight, at, min(at + size, last))

    def _ends(self) -> np.ndarray:
        if self.n == 0:
            return np.empty(0, self.end)
        return np.memmap(self.path, self.end, "r", self.ends_at, (self.n,))

    def _read(self, begin: int, dtype: Any, first: int, last: int) -> np.ndarray:
        return np.fromfile(self.path, dtype, last - first, offset=begin + np.dtype(dtype).itemsize * first)
