"""One round of label propagation on a part whose masters have all their neighbours, by sorting every row."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.communities.kernels.check_labels import SHORT, longest_run, sort_labels
from cpu_engine.intrinsics.atomics import atomic_add

BLOCK = 128  # vertices that a thread takes at a time


@njit(cache=True, parallel=True)
def repeat_round_by_sorting_step(offsets, neighbours, label, fresh, changed, ticket):
    """fresh[v] = the most frequent label of master v's neighbours, the smallest of several; its own where it has none.

    Invariant  label is only read; it is that of each vertex's master for all copies; ``fresh`` is of masters.
    Races      thread t alone uses changed[t]; blocks of vertices are claimed at ``ticket``.
    Work       O(m log d) for rows of length d. ``changed[t]`` counts the vertices whose label is new.
    """
    for t in prange(changed.size):
        moved = 0
        block = atomic_add(ticket, 0, 1)
        while block * BLOCK < fresh.size:
            for v in range(block * BLOCK, min(block * BLOCK + BLOCK, fresh.size)):
                size = offsets[v + 1] - offsets[v]
                room = np.empty(size, label.dtype)
                for i in range(size):
                    room[i] = label[neighbours[offsets[v] + i]]
                if size > SHORT:
                    room.sort()
                else:
                    sort_labels(room)
                fresh[v] = longest_run(room) if size > 0 else label[v]
                moved += fresh[v] != label[v]
            block = atomic_add(ticket, 0, 1)
        changed[t] = moved
