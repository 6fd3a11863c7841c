"""Peeling a part of a graph: who has few neighbours left goes, and takes one from each of its own.

Encodings: ``core[v]`` is the vertex's core number once it is known, NOT_YET before; ``degree`` counts a master's
neighbours that are still there, on all parts; ``losses`` what mirrors have to tell their masters. ``state``: see the
indices. Rows have each neighbour once and no loops.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cpu_engine.comm.kernels.sparse_updates import LISTED

NOT_YET = np.uint32(0xFFFFFFFF)
STACKED, ALIVE, EDGES, LOST = 0, 1, 2, 3
STATE = 4


@njit(cache=True)
def keep_distinct_step(offsets, targets, kept_offsets, kept):
    """Copy rows without repetitions, which are side by side, and without loops; return how many entries are left.

    Invariant  kept_offsets[v + 1] is where row v ends.   Races  none, serial.   Work  O(arcs).
    """
    size = 0
    for u in range(offsets.size - 1):
        last = -1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if v != last and v != u:
                kept[size] = v
                size += 1
            last = v
        kept_offsets[u + 1] = size
    return size


@njit(cache=True, inline="always")
def remove(v, level, core, stack, state, mark, changes, counts):
    """A master's core number is known: it goes, and its mirrors will hear of it."""
    core[v] = level
    stack[state[STACKED]] = v
    state[STACKED] += 1
    if mark[v] & LISTED == 0:
        mark[v] |= LISTED
        changes[counts[0]] = v
        counts[0] += 1


@njit(cache=True)
def peel_step(offsets, targets, masters, level, degree, core, losses, stack, state, mark, changes, counts):
    """Take one from every neighbour of those who go; masters that are left with ``level`` go as well, and so on.

    Invariant  a vertex goes onto the stack once; after: no master that is still there has ``level`` or fewer.
    Races      none, serial.
    Work       O(out-arcs of those who go).
    """
    while state[STACKED] > 0:
        state[STACKED] -= 1
        u = stack[state[STACKED]]
        state[EDGES] += offsets[u + 1] - offsets[u]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if v >= masters:
                losses[v] += 1
                state[LOST] += 1
            elif core[v] == NOT_YET:
                degree[v] -= 1
                if degree[v] == level:
                    remove(v, level, core, stack, state, mark, changes, counts)


@njit(cache=True)
def open_level_step(level, degree, core, alive, stack, state, mark, changes, counts):
    """Let go every master that has ``level`` neighbours or fewer.

    Invariant  alive[:state[ALIVE]] lists all masters that are still there, perhaps some who are not.
    Races      none, serial.   Work  O(alive).
    """
    kept = 0
    for i in range(state[ALIVE]):
        v = alive[i]
        if core[v] != NOT_YET:
            continue
        if degree[v] <= level:
            remove(v, level, core, stack, state, mark, changes, counts)
        else:
            alive[kept] = v
            kept += 1
    state[ALIVE] = kept


@njit(cache=True)
def smallest_degree_step(degree, core, alive, state):
    """The smallest degree of those who are still there, -1 if nobody is.

    Invariant  as open_level_step; after, nobody is listed who has gone.   Races  none, serial.   Work  O(alive).
    """
    kept = 0
    smallest = -1
    for i in range(state[ALIVE]):
        v = alive[i]
        if core[v] == NOT_YET:
            alive[kept] = v
            kept += 1
            if smallest < 0 or degree[v] < smallest:
                smallest = degree[v]
    state[ALIVE] = kept
    return smallest


@njit(cache=True)
def take_losses_step(vertices, level, degree, core, losses, stack, state, mark, changes, counts):
    """Masters are told how many neighbours they lost on another part.

    Invariant  losses of masters are 0 after.   Races  none, serial.   Work  O(vertices).
    """
    for v in vertices:
        lost = losses[v]
        losses[v] = 0
        if core[v] == NOT_YET:
            degree[v] -= lost
            if degree[v] <= level:
                remove(v, level, core, stack, state, mark, changes, counts)


@njit(cache=True)
def stack_step(vertices, stack, state):
    """Mirrors of vertices that went.   Invariant  each once.   Races  none, serial.   Work  O(vertices)."""
    for v in vertices:
        stack[state[STACKED]] = v
        state[STACKED] += 1
