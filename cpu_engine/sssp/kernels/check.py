"""The certificate of shortest paths. It shares no code with the strategies: it reads the graph as it was built."""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.intrinsics.bisect import first_not_below

UNWITNESSED, IMPROVABLE, FALSE_ROOT, STRAY, ROOTLESS = range(5)  # columns of the findings
STRETCH = 512


@njit(cache=True)
def has_tight_edge(offsets, targets, weight, distance, u, v):
    """Whether some edge from u to v is as long as their distances differ; parallel edges stand side by side."""
    e = offsets[u] + first_not_below(targets[offsets[u] : offsets[u + 1]], v)
    while e < offsets[u + 1] and targets[e] == v:
        step = weight[e] if weight.size else weight.dtype.type(1)
        if distance[u] + step == distance[v]:
            return True
        e += 1
    return False


@njit(cache=True)
def judge_vertex(offsets, targets, weight, distance, reached, parent, root, v):
    """Which claim vertex v breaks, -1: none."""
    n = distance.size
    if v == root:
        return -1 if reached[v] and distance[v] == 0 and parent[v] == v else FALSE_ROOT
    if not reached[v]:
        return -1 if parent[v] == -1 else STRAY
    p = parent[v]
    if p < 0 or p >= n or p == v or not reached[p]:
        return UNWITNESSED
    return -1 if has_tight_edge(offsets, targets, weight, distance, p, v) else UNWITNESSED


@njit(cache=True)
def improvable_edges(offsets, targets, weight, distance, reached, u, largest):
    """How many edges of u lead nearer than their target's distance, and the last such target."""
    count, example = 0, -1
    for e in range(offsets[u], offsets[u + 1]):
        step = weight[e] if weight.size else weight.dtype.type(1)
        v = targets[e]
        # A sum above the largest number cannot be nearer than a distance.
        if not reached[v] or (step <= largest - distance[u] and distance[u] + step < distance[v]):
            count += 1
            example = v
    return count, example


@njit(cache=True, parallel=True)
def certify_paths_step(offsets, targets, weight, distance, reached, parent, root, largest, findings, example):
    """Look for anything that contradicts "distance is the shortest, parent is a tree over tight edges".

    ``weight`` is empty where each edge counts 1; no sum is above ``largest``. That parents lead to the root is another
    matter (find_rootless_step).

    Invariant  distance, reached and parent are only read.   Races  thread t owns findings[t] and example[t].
    Work       every edge once, plus one bisection per reached vertex.
    """
    n, threads = distance.size, findings.shape[0]
    stretches = (n + STRETCH - 1) // STRETCH
    for t in prange(threads):
        for stretch in range(t, stretches, threads):
            for v in range(stretch * STRETCH, min((stretch + 1) * STRETCH, n)):
                kind = judge_vertex(offsets, targets, weight, distance, reached, parent, root, v)
                if kind >= 0:
                    findings[t, kind] += 1
                    example[t, kind] = v
                if reached[v]:
                    count, far = improvable_edges(offsets, targets, weight, distance, reached, v, largest)
                    if count > 0:
                        findings[t, IMPROVABLE] += count
                        example[t, IMPROVABLE] = far


@njit(cache=True)
def find_rootless_step(distance, reached, parent, root, state, path):
    """(how many reached vertices' parents do not lead to the root, one of them or -1).

    Invariant  state is 0 before: 0 unknown, 1 on the present path, 2 leads to the root, 3 does not. Parents that are
               truly nearer need no look: a chain of them ends at distance 0 or where it is no longer so.
    Races      none, serial.
    Work       one visit per vertex.
    """
    n, rootless, example = parent.size, 0, -1
    state[root] = 2
    for first in range(n):
        if not reached[first] or state[first] != 0:
            continue
        size, v = 0, first
        while state[v] == 0:
            state[v] = 1
            path[size] = v
            size += 1
            p = parent[v]
            if p < 0 or p >= n or not reached[p]:
                break
            v = p
        verdict = 2 if state[v] == 2 else 3
        for i in range(size):
            state[path[i]] = verdict
        if verdict == 3:
            rootless += size
            example = first
    return rootless, example
