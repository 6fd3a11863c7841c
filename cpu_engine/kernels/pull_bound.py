"""Bottom-up step of the asynchronous engine: everything at distance ``bound`` is relaxed at once, from the other side.

Below ``bound`` nothing is active, so an in-neighbour at ``bound`` is as good as any: the first one ends the search.
``distance`` is the level array seen as uint32: "not reached" is the largest value.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

BLOCK = 1024  # vertices per turn: low ids are hubs, so blocks are dealt round robin to even out the threads


@njit(cache=True)
def find_at_bound(best_in, hanging_start, row_begin, row_end, sources, distance, v, bound):
    """The first in-neighbour of v at ``bound``, best first, and how many were looked at; -1 if there is none."""
    if distance[best_in[v]] == bound:
        return np.int64(best_in[v]), 1
    if v < hanging_start:
        row = sources[row_begin[v] + 1 : row_end[v]]
        for i in range(row.size):
            if distance[row[i]] == bound:
                return np.int64(row[i]), i + 2
        return np.int64(-1), row.size + 1
    return np.int64(-1), 1


@njit(cache=True)
def pull_bound_all_share_step(
    t, threads, best_in, hanging_start, row_begin, row_end, sources, distance, parent, bound, rest, tally
):
    """Thread t's blocks of pull_bound_all_step.

    Invariant, races, work: see there.
    """
    reach = np.uint32(bound + np.uint32(1))
    left, found, looked = 0, 0, 0
    for block in range(t * BLOCK, distance.size, threads * BLOCK):
        for v in range(block, min(block + BLOCK, distance.size)):
            if distance[v] <= reach:
                continue
            u, more = find_at_bound(best_in, hanging_start, row_begin, row_end, sources, distance, v, bound)
            looked += more
            if u >= 0:
                distance[v] = reach
                parent[v] = u
                found += 1
            else:
                rest[left] = v
                left += 1
    tally[0], tally[1], tally[2] = left, found, looked


@njit(cache=True, parallel=True)
def pull_bound_all_step(best_in, hanging_start, row_begin, row_end, sources, distance, parent, bound, rest, tally):
    """Relax every edge that leaves distance ``bound``, by looking at every vertex that could gain.

    Invariant  before: no vertex nearer than ``bound`` is active; after: none at ``bound`` is either. ``rest`` lists,
               per thread, the vertices further than ``bound + 1``.
    Races      thread t writes only its own blocks' vertices; a reader sees an old value or bound + 1, never ``bound``.
    Work       one look per vertex in the good case, its whole in-list in the bad one.

    ``tally[t]`` = (left in rest, found, edges looked at).
    """
    threads = rest.shape[0]
    for t in prange(threads):
        pull_bound_all_share_step(
            t, threads, best_in, hanging_start, row_begin, row_end, sources, distance, parent, bound, rest[t], tally[t]
        )


@njit(cache=True, parallel=True)
def pull_bound_rest_step(
    best_in, hanging_start, row_begin, row_end, sources, distance, parent, bound, rest, found, tally
):
    """pull_bound_all_step over the vertices in ``rest``, which is shortened in place; finds are listed in ``found``.

    Invariant  ``rest`` holds every vertex further than ``bound + 1``, before and after.
    Races      thread t owns row t of rest, found and tally.
    Work       the vertices in ``rest`` only.
    """
    reach = np.uint32(bound + np.uint32(1))
    for t in prange(rest.shape[0]):
        left, news, looked = 0, 0, 0
        for i in range(tally[t, 0]):
            v = rest[t, i]
            if distance[v] <= reach:
                continue
            u, more = find_at_bound(best_in, hanging_start, row_begin, row_end, sources, distance, v, bound)
            looked += more
            if u >= 0:
                distance[v] = reach
                parent[v] = u
                found[t, news] = v
                news += 1
            else:
                rest[t, left] = v
                left += 1
        tally[t, 0], tally[t, 1], tally[t, 2] = left, news, looked


@njit(cache=True)
def collect_from_step(distance, bound, active, work):
    """List every reached vertex at ``bound`` or further as active; return how many.

    Invariant  active[v] == 1 iff v is listed.   Races  none, serial.   Work  O(n).
    """
    count = 0
    for v in range(distance.size):
        if bound <= distance[v] < np.uint32(0xFFFFFFFF):
            active[v] = 1
            work[count] = v
            count += 1
    return count


@njit(cache=True)
def list_found_step(found, tally, active, work):
    """Make the finds of pull_bound_rest_step active; return how many.

    Invariant  active[v] == 1 iff v is listed.   Races  none, serial.   Work  O(finds).
    """
    count = 0
    for t in range(found.shape[0]):
        for i in range(tally[t, 1]):
            active[found[t, i]] = 1
            work[count] = found[t, i]
            count += 1
    return count


@njit(cache=True)
def survey_work_step(row_begin, row_end, distance, work, count):
    """The waiting vertices' edges, and the smallest and largest distance among them.

    Invariant  none changed.   Races  none, serial.   Work  O(count).
    """
    edges, nearest, furthest = 0, np.uint32(0xFFFFFFFF), np.uint32(0)
    for i in range(count):
        u = work[i]
        edges += row_end[u] - row_begin[u]
        nearest = min(nearest, distance[u])
        furthest = max(furthest, distance[u])
    return edges, nearest, furthest
