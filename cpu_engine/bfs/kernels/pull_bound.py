"""Bottom-up step of the asynchronous engine: everything at distance ``bound`` is relaxed at once, from the other side.

Below ``bound`` nothing is active, so an in-neighbour at ``bound`` is as good as any: the first one ends the search.
``tree.level`` is seen as uint32, the distance: "not reached" is the largest value.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

BLOCK = 1024  # vertices per turn: low ids are hubs, so blocks go round robin to even out the threads


@njit(cache=True)
def is_below(a, b):
    """1 if a < b, else 0, for uint32: the sign of the difference, since a comparison may become a branch."""
    return ((np.int64(a) - np.int64(b)) >> 63) & 1


@njit(cache=True)
def pull_bound_best_block(first, best_in, here, distance, parent, bound, hits, rest, left):
    """Relax the block's vertices whose best in-neighbour is at ``bound``; list those that could still gain.

    ``best_in``, ``here`` and ``parent`` are the block's own part, which begins at vertex ``first``; there is no branch
    (see pull.pull_best_block).
    """
    level, reach = here.view(np.int32), np.uint32(bound + np.uint32(1))
    found = 0
    for i in range(here.size):
        could_gain = is_below(reach, here[i])
        hit = could_gain & is_below(distance[best_in[i]], reach)
        hits[i] = hit
        found += hit
        rest[left] = first + i
        left += np.uint64(could_gain ^ hit)
    for i in range(here.size):
        hit = np.int32(hits[i])
        level[i] += hit * (np.int32(reach) - level[i])
        parent[i] += hit * (np.int32(best_in[i]) - parent[i])
    return left, found


@njit(cache=True)
def find_after_best(row_begin, row_end, sources, distance, v, bound):
    """The first in-neighbour of v at ``bound`` after the best one, and how many were looked at; -1 if there is none."""
    row = sources[row_begin[v] + 1 : row_end[v]]
    for i in range(row.size):
        if distance[row[i]] == bound:
            return np.int64(row[i]), i + 1
    return np.int64(-1), row.size


@njit(cache=True)
def pull_bound_all_share_step(t, threads, rows, tree, bound, rest, tally):
    """Thread t's blocks of pull_bound_all_step: best in-neighbours first, then the rows of those that are left.

    Invariant, races, work: see there.
    """
    row_begin, row_end, sources, best_in = rows.begin, rows.end, rows.sources, rows.best
    distance, parent = tree.level, tree.parent
    n, reach = best_in.size, np.uint32(bound + np.uint32(1))
    hits = np.empty(BLOCK, np.uint8)
    candidates, found = np.uint64(0), 0
    for first in range(t * BLOCK, n, threads * BLOCK):
        part = slice(first, min(first + BLOCK, n))
        candidates, more = pull_bound_best_block(
            first, best_in[part], distance[part], distance, parent[part], bound, hits, rest, candidates
        )
        found += more
    left, looked = 0, np.int64(candidates) + found
    for i in range(candidates):
        v = rest[i]
        u = np.int64(-1)
        if v < rows.hanging_start:
            u, more = find_after_best(row_begin, row_end, sources, distance, v, bound)
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
def pull_bound_all_step(rows, tree, bound, rest, tally):
    """Relax every edge that leaves distance ``bound``, by looking at every vertex that could gain.

    Invariant  before: no vertex nearer than ``bound`` is active; after: none at ``bound`` is either. ``rest`` lists,
               per thread, the vertices further than ``bound + 1``.
    Races      thread t writes only its own blocks' vertices; a reader sees an old value or bound + 1, never ``bound``.
    Work       one look per vertex in the good case, its whole in-list in the bad one.

    ``tally[t]`` = (left in rest, found, edges looked at).
    """
    threads = rest.shape[0]
    for t in prange(threads):
        pull_bound_all_share_step(np.int64(t), threads, rows, tree, bound, rest[t], tally[t])


@njit(cache=True)
def pull_bound_rest_share_step(rows, tree, bound, rest, found, tally):
    """One thread's part of pull_bound_rest_step.

    Invariant, races, work: see there.
    """
    row_begin, row_end, sources, best_in = rows.begin, rows.end, rows.sources, rows.best
    distance, parent, reach = tree.level, tree.parent, np.uint32(bound + np.uint32(1))
    left, size, looked = 0, 0, 0
    for i in range(tally[0]):
        v = rest[i]
        if distance[v] <= reach:
            continue
        best = best_in[v]
        u = np.int64(-1)
        looked += 1
        if distance[best] == bound:
            u = np.int64(best)
        elif v < rows.hanging_start:
            u, more = find_after_best(row_begin, row_end, sources, distance, v, bound)
            looked += more
        if u >= 0:
            distance[v] = reach
            parent[v] = u
            found[size] = v
            size += 1
        else:
            rest[left] = v
            left += 1
    tally[0], tally[1], tally[2] = left, size, looked


@njit(cache=True, parallel=True)
def pull_bound_rest_step(rows, tree, bound, rest, found, tally):
    """pull_bound_all_step over the vertices in ``rest``, which is shortened in place; finds are listed in ``found``.

    Invariant  ``rest`` holds every vertex further than ``bound + 1``, before and after.
    Races      thread t owns row t of rest, found and tally.
    Work       the vertices in ``rest`` only.
    """
    for t in prange(rest.shape[0]):
        pull_bound_rest_share_step(rows, tree, bound, rest[t], found[t], tally[t])


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
def list_found_step(found, sizes, active, work, count):
    """Make the threads' finds active, each once however often it is named; return the new length of ``work``.

    Invariant  active[v] == 1 iff v is listed.   Races  none, serial.   Work  O(finds).
    """
    for t in range(found.shape[0]):
        for i in range(sizes[t]):
            v = found[t, i]
            if active[v] == 0:
                active[v] = 1
                work[count] = v
                count += 1
    return count


@njit(cache=True)
def survey_work_step(row_begin, row_end, distance, work, count):
    """The waiting vertices' edges, those of the nearest ones, and the smallest and largest distance among them.

    Invariant  none changed.   Races  none, serial.   Work  O(count).
    """
    edges, near_edges, nearest, furthest = 0, 0, np.uint32(0xFFFFFFFF), np.uint32(0)
    for i in range(count):
        u = work[i]
        here, size = distance[u], row_end[u] - row_begin[u]
        if here < nearest:
            nearest, near_edges = here, 0
        if here == nearest:
            near_edges += size
        edges += size
        furthest = max(furthest, here)
    return edges, near_edges, nearest, furthest


@njit(cache=True)
def bring_forward_step(distance, work, count, nearest):
    """Reorder ``work`` so that the vertices at ``nearest`` come first; return how many they are.

    Invariant  the same vertices are listed.   Races  none, serial.   Work  O(count).
    """
    front = 0
    for i in range(count):
        u = work[i]
        if distance[u] == nearest:
            work[i] = work[front]
            work[front] = u
            front += 1
    return front
