"""Bottom-up level at its plainest: an unvisited vertex looks at its in-neighbours up to the first from the frontier.

Encoding invariant: ``level[v]`` is -1 iff v is unvisited, ``depth`` iff it is in the frontier.
"""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True, parallel=True)
def pull_plain_step(rows, level, parent, depth):
    """Give ``depth + 1`` to each unvisited vertex with an in-neighbour at ``depth``; return finds and edges looked at.

    Invariant  before: exactly the vertices within ``depth`` hops carry a level; after: those within ``depth + 1`` over
               the edges handed in.
    Races      iteration v writes level[v] and parent[v] only; a concurrent reader of level[v] sees -1 or depth + 1,
               never ``depth``.
    Work       O(n) and the in-lists of the unvisited, each up to its first frontier member.
    """
    row_begin, row_end, sources = rows.begin, rows.end, rows.sources
    found, looked = 0, 0
    for v in prange(level.size):
        if level[v] == -1:
            at = row_begin[v]
            while at < row_end[v] and level[sources[at]] != depth:
                at += 1
            looked += at - row_begin[v]
            if at < row_end[v]:
                level[v] = depth + 1
                parent[v] = sources[at]
                found += 1
                looked += 1
    return found, looked
