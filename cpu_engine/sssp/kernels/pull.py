"""Distances from the other side: a vertex looks along its in-edges, lightest first, for a nearer way.

The further it looks the heavier the edges, so it may stop at the first that no source could make worth while.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.lines import ask_for_line
from cpu_engine.sssp.kernels.bins import clear_bins, put_in_bin
from cpu_engine.sssp.kernels.values import bucket_of, weight_of

ROWS_AHEAD = 32  # vertices ahead at which a row, and then the distance of its first end, is asked for
ENDS_AHEAD = 16


@njit(cache=True)
def pull_distance(v, rows, dist, low, bound):
    """(v's distance over the best in-edge if that is nearer than both it and ``bound``, else its own; edges looked at).

    No source that matters is nearer than ``low``.
    """
    offsets, words, weights, bits = rows
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    best = dist[v]
    first, last = np.uint64(offsets[v]), np.uint64(offsets[v + 1])
    e = first
    while e < last:
        word = words[e]
        weight = weight_of(word, weights, e, bits)
        nearest = low + weight
        if not 0 <= nearest < min(best, bound):
            break
        reach = dist[np.uint64(word) & mask] + weight
        if 0 <= reach < best:
            best = reach
        e += np.uint64(1)
    return best, np.int64(e - first)


@njit(cache=True)
def ask_for_row(v, rows):
    """Ask for the beginning of a vertex's row."""
    ask_for_line(rows.words, min(rows.offsets[v], rows.words.size - 1))


@njit(cache=True)
def ask_for_end(v, rows, dist):
    """Ask for the distance of the first vertex in a row."""
    offsets, words, _, bits = rows
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    ask_for_line(dist, np.uint64(words[min(offsets[v], words.size - 1)]) & mask)


@njit(cache=True)
def pull_into_bins(lane, first, last, rest, rows, dist, low, scale, bins):
    """Let rest[lane, first:last] pull, and wait if they are nearer than the bound; return the edges looked at."""
    base, width, bound = scale
    looked = 0
    for i in range(first, last):
        if i + ROWS_AHEAD < last:
            ask_for_row(rest[lane, i + ROWS_AHEAD], rows)
            ask_for_end(rest[lane, i + ENDS_AHEAD], rows, dist)
        v = rest[lane, i]
        best, more = pull_distance(v, rows, dist, low, bound)
        looked += more
        if best < dist[v]:
            dist[v] = best
        if best < bound:
            put_in_bin(bins, lane, bucket_of(best, base, width), v)
    return looked


@njit(cache=True)
def list_unsettled(lane, first, last, dist, settled, rest, count):
    """Append the vertices of first..last that are not nearer than ``settled``; return the new count. No branch."""
    for v in range(first, last):
        rest[lane, count] = v
        count += dist[v] >= settled
    return count


@njit(cache=True, parallel=True)
def pull_beyond_all_step(cuts, rows, dist, low, settled, scale, bins, ticket, rest, tally):
    """Make up for the edges that a bound has left out: every vertex at ``settled`` or further pulls.

    Invariant  a vertex nearer than ``settled`` is final; one nearer than ``low`` has pushed over all edges. Afterwards
               no vertex below the bound lacks an edge from a settled one, and every vertex from ``settled`` to below
               the bound is in the bin of its bucket. rest[lane], with room for one more than all, lists those that
               were not settled; tally[lane] = (how many, edges looked at).
    Races      a vertex is one lane's, which alone writes its dist; readers see a path's length either way.
    Work       one look per vertex, and the in-edges of the unsettled that are light enough to matter.
    """
    for lane in prange(rest.shape[0]):
        clear_bins(bins, lane)
        count, looked = 0, 0
        stretch = atomic_add(ticket, 0, 1)
        while stretch < cuts.size - 1:
            before = count
            count = list_unsettled(lane, cuts[stretch], cuts[stretch + 1], dist, settled, rest, count)
            looked += pull_into_bins(lane, before, count, rest, rows, dist, low, scale, bins)
            stretch = atomic_add(ticket, 0, 1)
        tally[lane, 0], tally[lane, 1] = count, looked


@njit(cache=True)
def keep_unsettled(lane, rest, size, dist, settled):
    """Leave only those in rest[lane, :size] that are not nearer than ``settled``; return how many."""
    count = 0
    for i in range(size):
        v = rest[lane, i]
        rest[lane, count] = v
        count += dist[v] >= settled
    return count


@njit(cache=True, parallel=True)
def pull_beyond_rest_step(rows, dist, low, settled, scale, bins, rest, tally):
    """pull_beyond_all_step for the vertices that an earlier call wrote to ``rest``.

    Invariant, races: see pull_beyond_all_step.   Work  the same without the look at those settled before.
    """
    for lane in prange(rest.shape[0]):
        clear_bins(bins, lane)
        count = keep_unsettled(lane, rest, tally[lane, 0], dist, settled)
        tally[lane, 0] = count
        tally[lane, 1] = pull_into_bins(lane, 0, count, rest, rows, dist, low, scale, bins)


@njit(cache=True)
def pull_stretch(first, last, rows, dist, low, unreached):
    """One stretch of pull_all_step: (distances that fell, edges looked at)."""
    fell, looked = 0, 0
    for v in range(first, last):
        best, more = pull_distance(v, rows, dist, low, unreached)
        looked += more
        if best < dist[v]:
            dist[v] = best
            fell += 1
    return fell, looked


@njit(cache=True, parallel=True)
def pull_all_step(cuts, rows, dist, low, unreached, ticket, tally):
    """Bellman and Ford's round: every vertex pulls; tally[lane] = (distances that fell, edges looked at).

    Invariant  dist[v] is the length of a path, and only falls; ``low`` is 0.
    Races      a vertex is one lane's; a reader sees the old or the new distance, both lengths of paths.
    Work       all edges lighter than their target's distance.
    """
    for lane in prange(tally.shape[0]):
        fell, looked = 0, 0
        stretch = atomic_add(ticket, 0, 1)
        while stretch < cuts.size - 1:
            more, others = pull_stretch(cuts[stretch], cuts[stretch + 1], rows, dist, low, unreached)
            fell += more
            looked += others
            stretch = atomic_add(ticket, 0, 1)
        tally[lane, 0], tally[lane, 1] = fell, looked
