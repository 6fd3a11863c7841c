"""The static shuffle: vertices dealt round robin to owners, renumbered so that an owner's ids are contiguous.

Internal ids fall with degree, so owner v mod T gets every T-th vertex of the degree order and all owners get nearly the
same number of edges. The shuffled id of v is ``starts[v mod T] + v div T``; back: ``(s - starts[t]) * T + t``.
Invariant: owner t's ids are exactly [starts[t], starts[t + 1]), in falling order of degree.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

BLOCK = 1024  # rows per turn: low ids are hubs


@njit(cache=True)
def shuffle_rows(first_row, last_row, row_begin, row_end, targets, starts, shuffled, at):
    """shuffle_targets_step for some rows; ``at`` is scratch, one place per owner."""
    owners = at.size
    for u in range(first_row, last_row):
        at[:] = 0
        for e in range(row_begin[u], row_end[u]):
            at[targets[e] % owners] += 1
        place = row_begin[u]
        for owner in range(owners):
            at[owner], place = place, place + at[owner]
        for e in range(row_begin[u], row_end[u]):
            owner = targets[e] % owners
            shuffled[at[owner]] = starts[owner] + targets[e] // owners
            at[owner] += 1


@njit(cache=True, parallel=True)
def shuffle_targets_step(row_begin, row_end, targets, starts, shuffled):
    """Rewrite each list in shuffled ids, ascending.

    Invariant  a list ascending by id becomes one ascending by shuffled id: counting by owner is stable.
    Races      a row is written by one thread.
    Work       O(m + n T), no comparison.
    """
    rows = row_begin.size
    for block in prange((rows + BLOCK - 1) // BLOCK):
        at = np.empty(starts.size - 1, np.int64)
        last = min((block + 1) * BLOCK, rows)
        shuffle_rows(block * BLOCK, last, row_begin, row_end, targets, starts, shuffled, at)


@njit(cache=True)
def lower_bound(values, first, last, bound):
    """The first position in values[first:last], which ascend, that holds ``bound`` or more; ``last`` if none does."""
    while first < last:
        middle = (first + last) >> 1
        if values[middle] < bound:
            first = middle + 1
        else:
            last = middle
    return first
