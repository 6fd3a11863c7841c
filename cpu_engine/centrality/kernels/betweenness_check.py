"""What the vertices between a root and everyone else weigh together, by going outwards only.

The mean weight of the inner vertices of all shortest paths to t follows from that of t's predecessors, so that the
sum over all t is made without the way back that dependencies need. It must be the sum of weight times dependency.
"""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True)
def weigh_paths(offsets, targets, root, weight, level, queue, paths, inner):
    """The mean weight of the inner vertices of the shortest paths from root to t, summed over all t."""
    level[:] = -1
    level[root], paths[root], inner[root], queue[0] = 0, 1.0, 0.0, root
    head, tail, everyone = 0, 1, 0.0
    while head < tail:
        u = queue[head]
        head += 1
        mean = inner[u] / paths[u]
        everyone += mean
        passed = mean + (weight[u] if u != root else 0.0)
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if level[v] < 0:
                level[v], paths[v], inner[v] = level[u] + 1, 0.0, 0.0
                queue[tail] = v
                tail += 1
            if level[v] > level[u]:
                paths[v] += paths[u]
                inner[v] += paths[u] * passed
    return everyone


@njit(cache=True, parallel=True)
def weigh_paths_step(offsets, targets, roots, weight, places, numbers, found):
    """found[i] = weigh_paths of root i.

    Invariant  the graph is only read.   Races  thread t alone uses places[t] and numbers[t].   Work  O(n + m) per root.
    """
    threads = places.shape[0]
    for t in prange(threads):
        for i in range(t, roots.size, threads):
            found[i] = weigh_paths(
                offsets, targets, roots[i], weight, places[t, 0], places[t, 1], numbers[t, 0], numbers[t, 1]
            )
