"""One thread for small work: waking others costs more than they would do, and beside other programs a time slice.

``with threads_for(work)``, or ``@alone_if_small`` on a function of a graph. Work is the arcs and vertices that one
launch looks at; where launches are small it does not matter how many there are. Invariant: after the block there are as
many threads as before it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import numba

SMALL_WORK = 1 << 16  # a launch of less takes one thread some 50 microseconds

P = ParamSpec("P")
R = TypeVar("R")


def is_small(work: int) -> bool:
    """Whether a launch that looks at so many arcs and vertices is one thread's."""
    return work < SMALL_WORK


class Sized(Protocol):
    """What a graph tells of its size."""

    @property
    def n(self) -> int: ...

    @property
    def m(self) -> int: ...


G = TypeVar("G", bound=Sized)


class _Here(threading.local):
    alone = False  # inside of a block that took the other threads away


_here = _Here()


class threads_for:  # reads like a function
    """A block whose launches look at ``work`` arcs and vertices each."""

    __slots__ = ("_before", "_work")

    def __init__(self, work: int) -> None:
        self._work = work
        self._before = 0

    def __enter__(self) -> None:
        if is_small(self._work) and not _here.alone:
            before = int(numba.get_num_threads())
            if before > 1:
                self._before, _here.alone = before, True
                numba.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        if self._before:
            numba.set_num_threads(self._before)
            self._before, _here.alone = 0, False


def alone_if_small(function: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """The same function of a graph; on a small one by one thread."""

    @wraps(function)
    def call(graph: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with threads_for(graph.n + graph.m):
            return function(graph, *args, **kwargs)

    return call
