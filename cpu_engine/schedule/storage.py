"""What operators share, or each have for themselves: per-thread storage, reductions made of it, bitsets.

A loop hands an operator the row of its thread; rows begin on cache lines of their own, so that threads do not disturb
one another.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit

from cpu_engine.schedule.atomics import atomic_unite
from cpu_engine.schedule.errors import OperatorError

_LINE_BYTES = 64
_WORD_BITS = 64
Kind = Literal["sum", "min", "max", "any"]


class PerThread:
    """An array for each thread; the operator is given its own one, ``numpy.ndarray`` of ``size`` elements."""

    def __init__(self, size: int, dtype: Any = np.int64, *, threads: int | None = None) -> None:
        from cpu_engine.schedule.entry import real_threads

        self.size, self.dtype = size, np.dtype(dtype)
        self._initial: Any = 0
        self.rows = self._make(threads or real_threads())

    def _make(self, threads: int) -> np.ndarray:
        per_line = _LINE_BYTES // self.dtype.itemsize
        return np.full((threads, -(-max(self.size, 1) // per_line) * per_line), self._initial, self.dtype)

    def of(self, thread: int) -> np.ndarray:
        """The array of one thread."""
        return self.rows[thread, : self.size]

    @property
    def all(self) -> np.ndarray:
        """The arrays of all threads, one per row."""
        return self.rows[:, : self.size]

    def fit(self, threads: int) -> np.ndarray:
        """The rows for a loop of so many threads; those that are missing are begun."""
        if threads > self.rows.shape[0]:
            self.rows = np.concatenate([self.rows, self._make(threads - self.rows.shape[0])])
        return self.rows


class Reduction(PerThread):
    """One number from all threads: an operator updates ``mine[0]``, ``value`` is what they make together.

    sum: ``mine[0] += x``; min, max: ``mine[0] = min(mine[0], x)``; any: ``mine[0] = True``, with dtype bool.
    """

    def __init__(self, kind: Kind, dtype: Any = np.int64) -> None:
        if kind not in _IDENTITY:
            raise OperatorError(f"reduction {kind!r} is not known", fix=f"use one of {', '.join(_IDENTITY)}")
        self.kind = kind
        super().__init__(1, dtype)
        self._initial = _IDENTITY[kind](self.dtype)
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        self.rows[:] = self._initial

    @property
    def value(self) -> Any:
        """What the threads' numbers make together."""
        return _TOGETHER[self.kind](self.all).item()


def _largest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _smallest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


_IDENTITY: dict[str, Any] = {"sum": lambda _: 0, "min": _largest, "max": _smallest, "any": lambda _: False}
_TOGETHER: dict[str, Any] = {"sum": np.sum, "min": np.min, "max": np.max, "any": np.any}


class Bitset:
    """``size`` bits that threads set together: pass ``words`` to the operator, which calls set_bit and test_bit."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.words = np.zeros(-(-size // _WORD_BITS), np.uint64)

    def clear(self) -> None:
        self.words[:] = 0

    def count(self) -> int:
        """How many bits are set."""
        return int(np.unpackbits(self.words.view(np.uint8)).sum())

    def indices(self) -> np.ndarray:
        """Which bits are set, ascending."""
        return np.flatnonzero(np.unpackbits(self.words.view(np.uint8), bitorder="little")[: self.size])


@njit(cache=True)
def set_bit(words, index):
    """Set a bit, atomically; return whether it was not set before.

    Invariant  of all threads that set a bit, one gets True.   Races  none: one atomic or.   Work  O(1).
    """
    return atomic_unite(words, index >> 6, np.uint64(1) << np.uint64(index & 63))


@njit(cache=True)
def test_bit(words, index):
    """Whether a bit is set.   Races  may miss one that is being set.   Work  O(1)."""
    return (words[index >> 6] >> np.uint64(index & 63)) & np.uint64(1) != 0
