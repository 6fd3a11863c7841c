"""Arguments that the kernels of the searches take together, each a NamedTuple of arrays and numbers.

A kernel unpacks a group before its loops: numba counts references where an array is taken out of a tuple. Groups hold
no groups, because a parallel loop cannot take nested tuples. A parallel kernel writes to no array that it has taken out
of a group: numba does not see that the array is an argument's, and drops the stores as dead code. It passes the group
to the function of a thread's share, which may (tests/unit/cpu_engine/test_kernel_groups.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class OutRows(NamedTuple):
    """Out-neighbours: those of u are targets[begin[u]:end[u]]; stretches of ``targets`` may be left out."""

    begin: np.ndarray
    end: np.ndarray
    targets: np.ndarray


class InRows(NamedTuple):
    """In-neighbours: those of v are sources[begin[v]:end[v]]; stretches of ``sources`` may be left out.

    ``best[v]`` is the first of them, or v itself where there is none. From ``hanging_start`` on no vertex has a second.
    """

    begin: np.ndarray
    end: np.ndarray
    sources: np.ndarray
    best: np.ndarray
    hanging_start: int


class Tree(NamedTuple):
    """Level and parent of each vertex, -1 where there is none.

    Asynchronous kernels see the levels as uint32: "not reached" is then the largest value.
    """

    level: np.ndarray
    parent: np.ndarray


class Finds(NamedTuple):
    """A list that all threads append to: ``vertices[:tail[0]]`` is used, and ``tail`` is moved atomically."""

    vertices: np.ndarray
    tail: np.ndarray


class Queue(NamedTuple):
    """The frontier is vertices[begin:end], what is known of the next level vertices[end:tail]."""

    vertices: np.ndarray
    begin: int
    end: int
    tail: int
