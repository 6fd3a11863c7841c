"""Shortest paths the textbook way: a queue, a heap, Brandes. Serial; nothing here is shared with the engines."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import njit


@njit(cache=True)
def search_with_queue_step(offsets, targets, root, level, parent, queue):
    """Breadth-first search from ``root``; how many vertices it reached, in ``queue`` in the order of their levels.

    Invariant  level and parent are -1 but where this search has been; the queue holds rising levels.
    Races      none, serial.
    Work       O(n + m).
    """
    level[root], parent[root], queue[0] = 0, root, root
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for v in targets[offsets[u] : offsets[u + 1]]:
            if level[v] < 0:
                level[v], parent[v], queue[tail] = level[u] + 1, u, v
                tail += 1
    return tail


@njit(cache=True)
def settle_nearest_step(offsets, targets, weight, root, largest, distance, parent, settled):
    """Dijkstra with a binary heap; on entry nothing is settled, every parent is -1 and the root's distance is 0.

    Invariant  a settled vertex has its final distance, and its parent was settled before it.
    Races      none, serial.
    Work       O((n + m) log m); paths longer than ``largest`` are left out.
    """
    parent[root] = root
    heap = [(distance[root], np.int64(root))]
    while len(heap) > 0:
        near, u = heappop(heap)
        if settled[u]:
            continue
        settled[u] = 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if settled[v] or weight[e] > largest - near:
                continue
            through = near + weight[e]
            if parent[v] < 0 or through < distance[v]:
                distance[v], parent[v] = through, u
                heappush(heap, (through, np.int64(v)))


@njit(cache=True)
def add_dependencies_step(offsets, targets, roots, level, queue, paths, depends, score):
    """Brandes: to every vertex, from every root, the share of the shortest paths that have it inside.

    Invariant  between roots level is -1 and paths, depends are 0 everywhere; parallel arcs are one.
    Races      none, serial.
    Work       O(m) for each root.
    """
    for root in roots:
        level[root], paths[root], queue[0] = 0, 1.0, root
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if e > offsets[u] and targets[e - 1] == v:
                    continue
                if level[v] < 0:
                    level[v], queue[tail] = level[u] + 1, v
                    tail += 1
                if level[v] == level[u] + 1:
                    paths[v] += paths[u]
        for at in range(tail - 1, -1, -1):
            u = queue[at]
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if (e == offsets[u] or targets[e - 1] != v) and level[v] == level[u] + 1:
                    depends[u] += paths[u] / paths[v] * (1.0 + depends[v])
            if u != root:
                score[u] += depends[u]
        for at in range(tail):
            u = queue[at]
            level[u], paths[u], depends[u] = -1, 0.0, 0.0
