"""The passes of the certificate of shortest paths on a part: over its arcs, its masters, and chains of equal length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from cpu_engine.sssp.kernels.check import FALSE_ROOT, IMPROVABLE, STRAY, UNWITNESSED

WITNESSED, NEARER = 1, 2  # bits of a witness: there is a tight arc from the parent; the parent is truly nearer


class Claimed(NamedTuple):
    """What is to be proven, by local id: that of each vertex's master for all copies."""

    distance: np.ndarray
    reached: np.ndarray
    parent: np.ndarray  # int64, internal ids


@njit(cache=True, parallel=True)
def check_arcs_step(rows, internal_of, claimed, largest, witness, level_parent, findings, example):
    """Count the arcs here that lead nearer than their target's distance, and note whose parent an arc here witnesses.

    ``rows``: offsets, targets, weights. No sum is above ``largest``. level_parent[v] = the local id of a witnessed
    parent that is as far as v, so that distances alone do not rule out a circle.

    Invariant  claimed is only read; a vertex is no parent of its own.
    Races      thread t owns findings[t] and example[t]. All who write witness[v] or level_parent[v] write the same
               there: the parent has one copy here.
    Work       every arc once.
    """
    offsets, targets, weight = rows
    distance, reached, parent = claimed
    threads = findings.shape[0]
    for t in prange(threads):
        for u in range(t, distance.size, threads):
            if not reached[u]:
                continue
            for e in range(offsets[u], offsets[u + 1]):
                v, step = targets[e], weight[e]
                if not reached[v] or (step <= largest - distance[u] and distance[u] + step < distance[v]):
                    findings[t, IMPROVABLE] += 1
                    example[t, IMPROVABLE] = internal_of[v]
                elif u != v and parent[v] == internal_of[u] and distance[u] + step == distance[v]:
                    if distance[u] < distance[v]:
                        witness[v] = WITNESSED | NEARER
                    else:
                        witness[v] = WITNESSED
                        level_parent[v] = u


@njit(cache=True, parallel=True)
def judge_masters_step(names, claimed, witness, root, findings, example):
    """Count the masters that contradict "distance is a path's length, parent is the vertex before on it".

    Invariant  ``names`` are the masters' internal ids; witness[v] is what all parts together say.
    Races      thread t owns findings[t] and example[t].   Work  O(masters).
    """
    distance, reached, parent = claimed
    threads = findings.shape[0]
    for t in prange(threads):
        for v in range(t, names.size, threads):
            kind = -1
            if names[v] == root:
                if not (reached[v] and distance[v] == 0 and parent[v] == names[v]):
                    kind = FALSE_ROOT
            elif not reached[v]:
                if parent[v] != -1:
                    kind = STRAY
            elif witness[v] == 0:
                kind = UNWITNESSED
            if kind >= 0:
                findings[t, kind] += 1
                example[t, kind] = names[v]


@njit(cache=True)
def follow_level_parents_step(level_parent, rooted, seen, path, fresh):
    """Let who leads to a rooted vertex along ``level_parent`` be rooted, too; return how many became so.

    Invariant  level_parent[v] is a local id, or -1 where none is known here; ``seen`` arrives as zeros; fresh[v]
               becomes 1 with rooted[v]. A circle is not rooted.
    Races      none, serial.   Work  O(vertices).
    """
    count = 0
    for first in range(level_parent.size):
        size, v = 0, first
        while v >= 0 and rooted[v] == 0 and seen[v] == 0:
            seen[v] = 1
            path[size] = v
            size += 1
            v = level_parent[v]
        if v < 0 or rooted[v] == 0:
            continue
        for i in range(size):
            rooted[path[i]] = 1
            fresh[path[i]] = 1
        count += size
    return count
