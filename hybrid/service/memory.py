"""The C library's heap in a process that lives for weeks: few arenas, and free pages given back now and then.

By default every thread may get an arena of its own, each of which keeps the most that it ever held: memory follows the
highest of each thread's past, not what is used. Where the C library is another one, nothing is done.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable

_M_ARENA_MAX = -8  # malloc.h
_ARENAS = 2  # one for the thread that computes, one for those that talk
_INTERVAL_S = 10.0


def keep_few_arenas() -> bool:
    """At the start, before there are threads; whether the C library does it."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS))
    except (AttributeError, OSError):
        return False


class Tidier:
    """Gives free pages back, at most every few seconds: it takes a millisecond or so."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._trim: Callable[[ctypes.c_size_t], object] | None = None
        with contextlib.suppress(AttributeError, OSError):
            self._trim = ctypes.CDLL(None).malloc_trim

    def tidy(self) -> bool:
        """After work that freed much; whether it was time."""
        now = self._clock()
        if self._trim is None or now - self._last < _INTERVAL_S:
            return False
        self._last = now
        self._trim(ctypes.c_size_t(0))
        return True
