"""A level over the list of all edges (COO): no lists per vertex, no frontier, every edge looks at its own two ends.

Encoding invariant: ``level[v]`` is -1 iff v is unvisited, ``depth`` iff it is in the frontier.
"""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True, parallel=True)
def spread_sources_step(row_begin, row_end, sources):
    """Write each vertex's id over its row: the source of every edge. Elsewhere ``sources`` keeps what it had.

    Invariant  sources[e] = u for every e in u's row.   Races  none: rows do not overlap.   Work  O(m).
    """
    for u in prange(row_begin.size):
        for e in range(row_begin[u], row_end[u]):
            sources[e] = u


@njit(cache=True, parallel=True)
def expand_edges_step(sources, targets, level, parent, depth):
    """Give ``depth + 1`` to the target of each edge from ``depth`` to an unvisited vertex; -1 for a source is no edge.

    Invariant  before: exactly the vertices within ``depth`` hops carry a level; after: those within ``depth + 1`` over
               the edges handed in.
    Races      two edges into v may both find it unvisited: both write the same level, and either's source is a right
               parent, so no atomics.
    Work       O(m), in equal shares whatever the degrees are.
    """
    for e in prange(sources.size):
        u = sources[e]
        if u >= 0 and level[u] == depth and level[targets[e]] == -1:
            level[targets[e]] = depth + 1
            parent[targets[e]] = u


@njit(cache=True, parallel=True)
def count_level_step(level, depth):
    """How many vertices are at ``depth``.

    Invariant  nothing changes.   Races  none: a reduction.   Work  O(n), vectorised.
    """
    count = 0
    for v in prange(level.size):
        count += level[v] == depth
    return count
