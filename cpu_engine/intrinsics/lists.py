"""Lists of vertices in arrays; the caller keeps their sizes."""

from __future__ import annotations

from numba import njit


@njit(cache=True, inline="always")
def append(vertices, size, v):
    """Put v behind the first ``size`` vertices; return the new size."""
    vertices[size] = v
    return size + 1


@njit(cache=True, inline="always")
def append_unmarked(vertices, size, v, mark):
    """Put v behind the first ``size`` vertices and mark it, unless it is marked; return the size."""
    if mark[v] == 0:
        mark[v] = 1
        vertices[size] = v
        size += 1
    return size
