"""The dense core as seen by the engines: which part of each edge list stays inside the first k vertices."""

from __future__ import annotations

from numba import njit

from cpu_engine.intrinsics.bisect import first_not_below


@njit(cache=True)
def skip_core_step(offsets, neighbours, k):
    """Where each vertex's list begins once the edges inside the core [0, k) are left out.

    Invariant  lists are ascending, so a core vertex's core neighbours are a prefix of its list.
    Races      none, serial.
    Work       O(n + k log degree).
    """
    begin = offsets[:-1].copy()
    for u in range(k):
        begin[u] += first_not_below(neighbours[offsets[u] : offsets[u + 1]], k)
    return begin


@njit(cache=True)
def skip_core_of_part_step(offsets, neighbours, core_vertices, internal_of, k):
    """skip_core_step over local ids: ``internal_of`` has the internal ids, ``core_vertices`` the vertices in the core.

    Invariant  rows are sorted by internal id, so a core vertex's core neighbours are a prefix of its row.
    Races      none, serial.
    Work       O(local vertices + core arcs).
    """
    begin = offsets[:-1].copy()
    for i in range(core_vertices.size):
        u = core_vertices[i]
        while begin[u] < offsets[u + 1] and internal_of[neighbours[begin[u]]] < k:
            begin[u] += 1
    return begin
