"""Peeling a part of a graph: a vertex with few neighbours left goes, and takes one from each of its own.

Rows have each neighbour once and no loops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from cpu_engine.comm.kernels.sparse_updates import LISTED

NOT_YET = np.uint32(0xFFFFFFFF)
STACKED, ALIVE, EDGES, LOST = 0, 1, 2, 3
STATE = 4


class Peeling(NamedTuple):
    """What is left of a part's vertices, and the list of changes that other parts must hear of."""

    degree: np.ndarray  # of masters: neighbours that are still there, on all parts
    core: np.ndarray  # core numbers once they are known, NOT_YET before
    losses: np.ndarray  # of mirrors: neighbours gone here, to be sent to their masters
    alive: np.ndarray  # alive[:state[ALIVE]]: all masters that are still there, perhaps some that are not
    stack: np.ndarray  # stack[:state[STACKED]]: vertices whose neighbours are still to be visited
    state: np.ndarray  # see the indices above
    mark: np.ndarray  # LISTED: among the changes
    changes: np.ndarray  # masters that went
    counts: np.ndarray


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
def remove(v, level, peeling):
    """Let a master go, now that its core number is known, and put it on the list of changes for its mirrors."""
    _, core, _, _, stack, state, mark, changes, counts = peeling
    core[v] = level
    stack[state[STACKED]] = v
    state[STACKED] += 1
    if mark[v] & LISTED == 0:
        mark[v] |= LISTED
        changes[counts[0]] = v
        counts[0] += 1


@njit(cache=True)
def peel_step(offsets, targets, masters, level, peeling):
    """Take one from every neighbour of a vertex that goes; masters left with ``level`` go as well, and so on.

    Invariant  a vertex goes onto the stack once; after: no master that is still there has ``level`` or fewer.
    Races      none, serial.
    Work       O(out-arcs of those that go).
    """
    degree, core, losses, _, stack, state, _, _, _ = peeling
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
                    remove(v, level, peeling)


@njit(cache=True)
def open_level_step(level, peeling):
    """Let go every master that has ``level`` neighbours or fewer.

    Invariant  see Peeling.   Races  none, serial.   Work  O(alive).
    """
    degree, core, _, alive, _, state, _, _, _ = peeling
    kept = 0
    for i in range(state[ALIVE]):
        v = alive[i]
        if core[v] != NOT_YET:
            continue
        if degree[v] <= level:
            remove(v, level, peeling)
        else:
            alive[kept] = v
            kept += 1
    state[ALIVE] = kept


@njit(cache=True)
def smallest_degree_step(peeling):
    """The smallest degree of the masters that are still there, -1 if there are none.

    Invariant  after, ``alive`` has none that has gone.   Races  none, serial.   Work  O(alive).
    """
    degree, core, _, alive, _, state, _, _, _ = peeling
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
def take_losses_step(vertices, level, peeling):
    """Subtract from these masters' degrees the neighbours that they lost on another part.

    Invariant  losses of masters are 0 after.   Races  none, serial.   Work  O(vertices).
    """
    degree, core, losses = peeling.degree, peeling.core, peeling.losses
    for v in vertices:
        lost = losses[v]
        losses[v] = 0
        if core[v] == NOT_YET:
            degree[v] -= lost
            if degree[v] <= level:
                remove(v, level, peeling)


@njit(cache=True)
def stack_step(vertices, peeling):
    """Stack mirrors of vertices that went.   Invariant  each once.   Races  none, serial.   Work  O(vertices)."""
    stack, state = peeling.stack, peeling.state
    for v in vertices:
        stack[state[STACKED]] = v
        state[STACKED] += 1
