"""BFS from several roots, each by one thread with a queue: no levels to wait for, nothing shared.

The way for graphs in which searches never meet: on a road map, words of bits would carry one bit at a time.
"""

from __future__ import annotations

from numba import njit, prange
from numpy import int64, uint64


@njit(cache=True)
def search_queue(offsets, targets, root, level, parent, queue):
    """Levels and parents from one root; returns (vertices reached, edges looked at). ``level`` is -1 before."""
    level[root] = 0
    parent[root] = root
    queue[0] = root
    head, tail, looked = 0, 1, 0
    while head < tail:
        u = uint64(queue[head])
        head += 1
        depth = level[u] + 1
        begin, end = offsets[u], offsets[u + uint64(1)]
        looked += end - begin
        for e in range(begin, end):
            v = targets[uint64(e)]
            if level[v] == -1:
                level[v] = depth
                parent[v] = u
                queue[uint64(tail)] = v
                tail += 1
    return tail, looked


@njit(cache=True)
def write_column(values, table, stride, column):
    """Put the values into one column of a flat table."""
    for v in range(values.size):
        table[v * stride + column] = values[v]


@njit(cache=True)
def search_each_share_step(t, offsets, targets, roots, scratch, levels, parents, stride, column, tally):
    """Thread t's part of search_each_step: consecutive roots, so that threads write to different cache lines.

    Invariant, races, work: see search_each_step.
    """
    threads = scratch.shape[0]
    level, parent, queue = scratch[t, 0], scratch[t, 1], scratch[t, 2]
    for i in range(t * roots.size // threads, (t + 1) * roots.size // threads):
        level[:] = -1
        parent[:] = -1
        reached, looked = search_queue(offsets, targets, roots[i], level, parent, queue)
        write_column(level, levels, stride, column + i)
        if parents.size > 0:
            write_column(parent, parents, stride, column + i)
        tally[t, 0] += looked
        tally[t, 1] = max(tally[t, 1], level[queue[reached - 1]])


@njit(cache=True, parallel=True)
def search_each_step(offsets, targets, roots, scratch, levels, parents, stride, column, tally):
    """Write the levels (and parents, unless that table is empty) from each root into its column, -1 = not reached.

    Invariant  a queue is in order of level, so the first to find a vertex gives it its level and parent.
    Races      none: thread t has scratch[t], tally[t] and the columns of its roots.
    Work       O(roots * m) over all threads, no barrier.

    ``tally[t]`` gains (edges looked at) and gets (the largest level).
    """
    for t in prange(scratch.shape[0]):
        search_each_share_step(int64(t), offsets, targets, roots, scratch, levels, parents, stride, column, tally)
