"""The dense core as seen by the engines: which part of each edge list stays inside the first k vertices."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def skip_core_step(offsets, neighbours, k):
    """Where each vertex's list begins once the edges inside the core [0, k) are left out.

    Invariant  lists are ascending, so a core vertex's core neighbours are a prefix of its list.
    Races      none, serial.
    Work       O(n + k log degree).
    """
    begin = offsets[:-1].copy()
    for u in range(k):
        begin[u] += np.searchsorted(neighbours[offsets[u] : offsets[u + 1]], k)
    return begin
