"""Graph500's rules for a BFS tree, judged from the input edge list and the parents alone - no graph, no engine.

Vertices are the input's: 0 to n - 1. ``parent[v]`` is -1 where v is not in the tree, and the root's own id at the root.
``depth`` is derived here from the parents: -1 while a vertex is not known to hang from the root.
"""

from __future__ import annotations

from numba import njit, prange
from numpy import int64, uint64

SPLIT, SPREAD = range(2)  # rows of what check_edges_step finds wrong with an edge


@njit(cache=True, parallel=True)
def descend_step(parent, depth, last, found):
    """Give ``last + 1`` to every vertex whose parent has depth ``last``; ``found[t]`` counts them.

    Invariant  before: depth is right for the vertices within ``last`` tree edges of the root, -1 for others; after:
               within ``last + 1``. A vertex in a cycle, or under one, never gets a depth.
    Races      iteration v writes depth[v] only; a reader sees -1 or last + 1, never ``last``.
    Work       O(n).
    """
    threads = found.size
    for t in prange(threads):
        count = 0
        for v in range(t * parent.size // threads, (t + 1) * parent.size // threads):
            if depth[v] == -1 and parent[v] != -1 and depth[parent[v]] == last:
                depth[v] = last + 1
                count += 1
        found[t] = count


@njit(cache=True)
def check_share_step(t, threads, src, dst, parent, depth, confirmed, wrong, example):
    """Thread t's part of check_edges_step; returns the edges within the tree's vertices.

    Invariant, races, work: see check_edges_step.
    """
    inside = 0
    for e in range(t * src.size // threads, (t + 1) * src.size // threads):
        u, v = uint64(src[e]), uint64(dst[e])  # unsigned: numba need not provide for negative indices
        near, far = depth[u], depth[v]
        kind = -1
        if (near == -1) != (far == -1):
            kind = SPLIT
        elif near - far > 1 or far - near > 1:
            kind = SPREAD
        if kind >= 0:
            wrong[t, kind] += 1
            example[t, kind] = e
        if near >= 0 and far >= 0:
            inside += 1
            if far == near + 1 and parent[v] == src[e]:
                confirmed[v] = 1
            if near == far + 1 and parent[u] == dst[e]:
                confirmed[u] = 1
    return inside


@njit(cache=True, parallel=True)
def check_edges_step(src, dst, parent, depth, confirmed, inside, wrong, example):
    """Judge every edge of the input list: ends at most one level apart, both in the tree or both not.

    Invariant  after: confirmed[v] = 1 iff the list has the edge between v and its parent, one level apart.
    Races      all that threads write to ``confirmed`` is 1; row t of the counters is thread t's.
    Work       each edge once.

    ``inside[t]`` counts the edges with both ends in the tree, repeated ones and self-loops included; ``wrong[t, kind]``
    those that break a rule, and ``example[t, kind]`` is the index of one, or -1.
    """
    threads = inside.size
    for t in prange(threads):
        inside[t] = check_share_step(int64(t), threads, src, dst, parent, depth, confirmed, wrong, example)


@njit(cache=True, parallel=True)
def count_spans_step(src, dst, depth, inside, wrong):
    """Count the edges with both ends in the tree, and those that span more than a level or leave it.

    Invariant  ``depth`` is -1 outside the tree.   Races  thread t owns inside[t] and wrong[t].   Work  O(edges).
    """
    threads = inside.shape[0]
    for t in prange(threads):
        both = false = 0
        for i in range(src.shape[0] * t // threads, src.shape[0] * (t + 1) // threads):
            u, v = depth[src[i]], depth[dst[i]]
            both += u >= 0 and v >= 0
            false += (u < 0) != (v < 0) or abs(u - v) > 1
        inside[t] += both
        wrong[t] += false
