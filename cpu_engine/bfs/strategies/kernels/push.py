"""Top-down level, edge-balanced: threads share out the frontier's edges, not its vertices.

Encoding invariant: ``visited[v]`` is 0 iff v has no level.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.bisect import first_above
from cpu_engine.intrinsics.lists import append


@njit(cache=True)
def measure_frontier_step(row_begin, row_end, frontier, count, starts):
    """Edge number at which each frontier vertex's list starts, when all lists are laid end to end; return the total.

    Invariant  starts[i + 1] - starts[i] = edges of frontier[i].   Races  none, serial.   Work  O(count).
    """
    total = 0
    for i in range(count):
        starts[i] = total
        total += row_end[frontier[i]] - row_begin[frontier[i]]
    starts[count] = total
    return total


@njit(cache=True, inline="always")
def share_of_edges(t, threads, starts):
    """Thread t's equal share of lists laid end to end: the list in which it begins, its first edge, and its end."""
    total = starts[-1]
    edge, last = total * t // threads, total * (t + 1) // threads
    return first_above(starts, edge) - 1, edge, last


@njit(cache=True, inline="always")
def rest_of_row(vertices, row_begin, i, edge, last, starts, targets):
    """The i-th vertex, what a share that has come to ``edge`` has of its list, and the edge after that."""
    u = vertices[i]
    stop = min(last, starts[i + 1])
    first = row_begin[u] + edge - starts[i]
    return u, targets[first : first + stop - edge], stop


@njit(cache=True)
def push_share_step(t, threads, rows, frontier, count, starts, visited, tree, depth, mine):
    """Expand thread t's equal share of the frontier's edges; return how many vertices it listed in ``mine``.

    Invariant, races, work: see push_step. With one thread, nothing is listed twice.
    """
    row_begin, targets, level, parent = rows.begin, rows.targets, tree.level, tree.parent
    starts = starts[: count + 1]
    i, edge, last = share_of_edges(t, threads, starts)
    size = 0
    while edge < last:
        u, row, edge = rest_of_row(frontier, row_begin, i, edge, last, starts, targets)
        for v in row:
            if visited[v] == 0:
                visited[v] = 1
                level[v] = depth + 1
                parent[v] = u
                size = append(mine, size, v)
        i += 1
    return size


@njit(cache=True, parallel=True)
def push_step(rows, frontier, count, starts, visited, tree, depth, found, sizes):
    """Give ``depth + 1`` to each unvisited out-neighbour of the frontier.

    Invariant  before: exactly the vertices within ``depth`` hops are visited; after: those within ``depth + 1`` over
               the edges handed in.
    Races      two threads may both find v unvisited: both write the same level and either's parent is right, so no
               atomics; v may then be listed twice, once per thread, which costs a second look and nothing else.
    Work       the frontier's edges, in equal shares, a long list cut where a share ends.
    """
    threads = found.shape[0]
    for t in prange(threads):
        sizes[t] = push_share_step(np.int64(t), threads, rows, frontier, count, starts, visited, tree, depth, found[t])


@njit(cache=True)
def gather_found_step(found, sizes, frontier, total):
    """Append the threads' lists to ``frontier``, which holds ``total`` vertices; return its new length.

    Invariant  nothing is lost.   Races  none, serial.   Work  O(new vertices).
    """
    for t in range(found.shape[0]):
        for i in range(sizes[t]):
            frontier[total] = found[t, i]
            total += 1
    return total
