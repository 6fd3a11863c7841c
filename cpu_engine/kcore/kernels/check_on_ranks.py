"""The proof of core numbers on a part: witnesses, and a peeling in which every number is a level of its own. Serial."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Peeling(NamedTuple):
    """What a peeling has come to, by local id."""

    core: np.ndarray  # int64, that of each vertex's master for all copies
    left: np.ndarray  # int64, of masters: neighbours of at least their number that are still there
    gone: np.ndarray  # uint8, of masters
    owed: np.ndarray  # int32, of mirrors: neighbours lost since their masters last heard


@njit(cache=True)
def count_witnesses_step(in_offsets, in_sources, core, witnesses):
    """witnesses[v] = the different neighbours of v in its row here that have at least its number, v itself not counted.

    Invariant  a row holds equal neighbours side by side, and all arcs between two vertices are in one part.
    Races      none, serial.   Work  every arc once.
    """
    for v in range(core.size):
        count, last = 0, -1
        for e in range(in_offsets[v], in_offsets[v + 1]):
            u = in_sources[e]
            if u != v and u != last and core[u] >= core[v]:
                count += 1
            last = u
        witnesses[v] = count


@njit(cache=True)
def peel_step(out_offsets, out_targets, masters, peeling, queue, tail):
    """Take the ``tail`` vertices in the queue away from their neighbours here of the same number, and all who then go.

    Invariant  those in the queue are gone. A master goes once it has no more neighbours left than its number.
    Races      none, serial.   Work  the arcs of those that go.
    """
    core, left, gone, owed = peeling
    head = 0
    while head < tail:
        v = queue[head]
        head += 1
        last = -1
        for e in range(out_offsets[v], out_offsets[v + 1]):
            w = out_targets[e]
            parallel, last = w == last, w
            if parallel or w == v or core[w] != core[v]:
                continue
            if w >= masters:
                owed[w] += 1
                continue
            left[w] -= 1
            if gone[w] == 0 and left[w] <= core[w]:
                gone[w] = 1
                queue[tail] = w
                tail += 1
    return tail
