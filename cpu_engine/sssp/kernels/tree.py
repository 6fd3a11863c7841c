"""Parents from finished distances, and distances as the caller gets them.

A parent is an in-neighbour over a tight edge: its distance plus the weight is the vertex's own. One that is truly
nearer is always right. Over an edge that adds nothing - weight 0, or too light for floating-point numbers to notice -
a parent may only be a vertex that has a parent already, or cycles without a root would arise.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.lines import ask_for_line
from cpu_engine.intrinsics.lists import append
from cpu_engine.sssp.kernels.pull import ENDS_AHEAD, ROWS_AHEAD
from cpu_engine.sssp.kernels.values import weight_of

FEW = 8  # edges in a short row


@njit(cache=True)
def tied_source(v, rows, dist, parent):
    """An in-neighbour over a tight edge that is as near as v and has a parent; -1: none."""
    offsets, words, weights, bits = rows
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    own = dist[v]
    for e in range(offsets[v], offsets[v + 1]):
        word = words[e]
        weight = weight_of(word, weights, e, bits)
        if weight > own:
            break
        u = np.uint64(word) & mask
        if dist[u] == own and dist[u] + weight == own and parent[u] >= 0:
            return np.int64(u)
    return -1


@njit(cache=True)
def parents_of_stretch(first, last, rows, dist, unreached, none, distance, parent):
    """One stretch of find_tight_parents_step; return how many reached ones got no parent.

    The rows are read here, not in a function of their own: a call costs more than the rest of a short row.
    """
    offsets, words, weights, bits = rows
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    one, rows_ahead, ends_ahead = np.uint64(1), np.uint64(ROWS_AHEAD), np.uint64(ENDS_AHEAD)
    end, last_word = np.uint64(last), np.uint64(words.size - 1)
    orphans = 0
    e = np.uint64(offsets[first])
    for number in range(first, last):
        v = np.uint64(number)
        own, stop, source = dist[v], np.uint64(offsets[v + one]), np.int64(-1)
        if v + rows_ahead < end:
            ask_for_line(words, min(np.uint64(offsets[v + rows_ahead]), last_word))
            ask_for_line(dist, np.uint64(words[min(np.uint64(offsets[v + ends_ahead]), last_word)]) & mask)
        if own == unreached:
            distance[v] = none
        else:
            distance[v] = own
            if stop - e <= np.uint64(FEW):  # without a branch: a wrong guess costs more than all of a short row
                while e < stop:
                    word = words[e]
                    u = np.uint64(word) & mask
                    near = dist[u]
                    tight = (near < own) & (near + weight_of(word, weights, e, bits) == own)
                    source = np.int64(u) if tight else source
                    e += one
            else:
                while e < stop:
                    word = words[e]
                    weight = weight_of(word, weights, e, bits)
                    if weight > own:
                        break
                    u = np.uint64(word) & mask
                    near = dist[u]
                    if near < own and near + weight == own:
                        source = np.int64(u)
                        break
                    e += one
            orphans += 1 if source < 0 else 0
        parent[v] = source
        e = stop
    return orphans


@njit(cache=True, parallel=True)
def find_tight_parents_step(cuts, rows, dist, root, unreached, none, ticket, distance, parent, counts):
    """distance[v] = dist[v], or ``none`` where that is ``unreached``; parent[v] = a tight source nearer than v, or -1.

    Invariant  dist is final; the root is its own parent. The sum of counts is how many reached vertices got none.
    Races      a vertex is one lane's.
    Work       in-edges up to the first fit, short rows whole.
    """
    for lane in prange(counts.size):
        orphans = 0
        stretch = atomic_add(ticket, 0, 1)
        while stretch < cuts.size - 1:
            orphans += parents_of_stretch(
                cuts[stretch], cuts[stretch + 1], rows, dist, unreached, none, distance, parent
            )
            stretch = atomic_add(ticket, 0, 1)
        counts[lane] = orphans
    parent[root] = root  # no vertex is nearer: it was counted
    counts[0] -= 1


@njit(cache=True)
def adopt_orphans_step(in_rows, out_rows, dist, unreached, parent, queue):
    """Give parents to the vertices that only edges without length lead to, in the order of a breadth-first search.

    Invariant  a vertex that has a parent is connected to the root by parents; ``queue`` has room for all.
    Races      none, serial.
    Work       the vertices, and the edges of those without a parent at first.
    """
    offsets, words, weights, bits = out_rows
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    head, tail = 0, 0
    for v in range(dist.size):
        if parent[v] < 0 and dist[v] != unreached:
            parent[v] = tied_source(v, in_rows, dist, parent)
            if parent[v] >= 0:
                tail = append(queue, tail, v)
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(offsets[u], offsets[u + 1]):
            word = words[e]
            if dist[u] + weight_of(word, weights, e, bits) != dist[u]:
                break
            target = np.uint64(word) & mask
            if parent[target] < 0 and dist[target] == dist[u]:
                parent[target] = u
                tail = append(queue, tail, target)


@njit(cache=True)
def find_overflow_step(rows, dist, unreached):
    """The first vertex without a distance that an edge leads to from one with a distance, -1 if there is none.

    Invariant  no vertex waits, so only a sum too large for the type can be the cause.   Races  none, serial.
    Work       every edge once.
    """
    offsets, words, _, bits = rows
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for u in range(dist.size):
        if dist[u] != unreached:
            for e in range(offsets[u], offsets[u + 1]):
                v = np.int64(np.uint64(words[e]) & mask)
                if dist[v] == unreached:
                    return v
    return -1
