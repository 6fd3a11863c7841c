"""Bottom-up level: unvisited vertices look for a visited in-neighbour, best first, and stop at the first.

"Visited" serves as "in the frontier": a vertex without a level has no neighbour in any level before the frontier's, so
a visited one is in the frontier. For that, ``visited`` must not change during the step: finds are marked in ``fresh``.
The best in-neighbour, of highest degree, is looked at first and sits in an array of its own; hanging vertices have no
other (Yasui 2014).
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.lists import append

BLOCK = 1024  # vertices per turn: low ids are hubs, so blocks go round robin to even out the threads


@njit(cache=True)
def find_visited(row_begin, row_end, sources, visited, v):
    """The first visited in-neighbour of v after the best one, and how many were looked at; -1 if there is none."""
    row = sources[row_begin[v] + 1 : row_end[v]]
    for i in range(row.size):
        if visited[row[i]] != 0:
            return np.int64(row[i]), i + 1
    return np.int64(-1), row.size


@njit(cache=True)
def pull_best_block(first, best_in, here, visited, fresh, level, parent, depth, rest, left):
    """Find the block's unvisited vertices whose best in-neighbour is visited; list those that stay unvisited.

    All arrays but ``visited`` and ``rest`` are the block's own part, which begins at vertex ``first``: an index that
    counts from zero needs no test for "from the end". There is no branch: which way a look falls is a coin toss, and a
    wrong guess would cost more than writes that change nothing; these are a loop of their own, to be vectorised.
    """
    found = 0
    for i in range(here.size):
        hit = np.uint8((here[i] ^ np.uint8(1)) & visited[best_in[i]])
        fresh[i] = hit
        found += hit
        rest[left] = first + i
        left += np.uint64((here[i] | hit) ^ np.uint8(1))
    reach = np.int32(depth + 1)
    for i in range(level.size):
        found_here = np.int32(fresh[i])
        level[i] += found_here * (reach - level[i])
        parent[i] += found_here * (np.int32(best_in[i]) - parent[i])
    return left, found


@njit(cache=True)
def pull_best_share_step(t, threads, best_in, visited, fresh, tree, depth, rest):
    """Thread t's blocks: every unvisited vertex whose best in-neighbour is visited is found; return what is left.

    Invariant, races: see pull_all_step.   Work  two looks per vertex.
    """
    n, level, parent = best_in.size, tree.level, tree.parent
    left, found = np.uint64(0), 0
    for first in range(t * BLOCK, n, threads * BLOCK):
        part = slice(first, min(first + BLOCK, n))
        left, more = pull_best_block(
            first, best_in[part], visited[part], visited, fresh[part], level[part], parent[part], depth, rest, left
        )
        found += more
    return np.int64(left), found


@njit(cache=True, inline="always")
def mark_find(v, u, depth, level, parent, fresh):
    """Give v the level after ``depth``, the parent u and the mark of a find."""
    level[v] = depth + 1
    parent[v] = u
    fresh[v] = 1


@njit(cache=True)
def pull_all_share_step(t, threads, rows, visited, fresh, tree, depth, rest, tally):
    """Thread t's part of pull_all_step: best in-neighbours first, then the rows of those that are left.

    Invariant, races, work: see pull_all_step.
    """
    row_begin, row_end, sources = rows.begin, rows.end, rows.sources
    level, parent = tree.level, tree.parent
    candidates, found = pull_best_share_step(t, threads, rows.best, visited, fresh, tree, depth, rest)
    left, looked = 0, candidates + found
    for i in range(candidates):
        v = rest[i]
        u = np.int64(-1)
        if v < rows.hanging_start:
            u, more = find_visited(row_begin, row_end, sources, visited, v)
            looked += more
        if u >= 0:
            mark_find(v, u, depth, level, parent, fresh)
            found += 1
        else:
            left = append(rest, left, v)
    tally[0], tally[1], tally[2] = left, found, looked


@njit(cache=True, parallel=True)
def pull_all_step(rows, visited, fresh, tree, depth, rest, tally):
    """Give ``depth + 1`` to each unvisited vertex with a visited in-neighbour, looking at every vertex.

    Invariant  before: exactly the vertices within ``depth`` hops are visited; after: the finds carry level and
               parent and are marked fresh; ``rest`` lists, per thread, the vertices that are still unvisited.
    Races      thread t writes only its own blocks' vertices; visited is only read.
    Work       one look per unvisited vertex in the good case, its whole in-list in the bad one.

    ``tally[t]`` = (left over, found, edges looked at). Vertices beyond the end of ``rows.best`` have no in-edges.
    """
    threads = rest.shape[0]
    for t in prange(threads):
        pull_all_share_step(np.int64(t), threads, rows, visited, fresh, tree, depth, rest[t], tally[t])


@njit(cache=True)
def pull_rest_share_step(rows, visited, fresh, tree, depth, rest, found, tally):
    """Like pull_all_share_step, over the unvisited vertices listed in ``rest``, which is shortened in place.

    Invariant, races, work: see pull_rest_step.
    """
    row_begin, row_end, sources, best_in = rows.begin, rows.end, rows.sources, rows.best
    level, parent = tree.level, tree.parent
    left, size, looked = 0, 0, 0
    for i in range(tally[0]):
        v = rest[i]
        if visited[v] != 0:  # by a push since
            continue
        best = best_in[v]
        u = np.int64(-1)
        looked += 1
        if visited[best] != 0:
            u = np.int64(best)
        elif v < rows.hanging_start:
            u, more = find_visited(row_begin, row_end, sources, visited, v)
            looked += more
        if u >= 0:
            mark_find(v, u, depth, level, parent, fresh)
            size = append(found, size, v)
        else:
            left = append(rest, left, v)
    tally[0], tally[1], tally[2] = left, size, looked


@njit(cache=True, parallel=True)
def pull_rest_step(rows, visited, fresh, tree, depth, rest, found, tally):
    """Give ``depth + 1`` to each vertex listed in ``rest`` that has a visited in-neighbour; list it in ``found``.

    Invariant  ``rest`` holds every unvisited vertex, before and after.
    Races      thread t owns row t of rest, found and tally; visited is only read.
    Work       the unvisited vertices only.
    """
    for t in prange(rest.shape[0]):
        pull_rest_share_step(rows, visited, fresh, tree, depth, rest[t], found[t], tally[t])


@njit(cache=True, parallel=True)
def settle_fresh_step(visited, fresh):
    """What was found becomes visited.

    Invariant  fresh is empty afterwards.   Races  none: element by element.   Work  O(n) bytes, vectorised.
    """
    for v in prange(visited.size):
        visited[v] |= fresh[v]
        fresh[v] = 0


@njit(cache=True)
def mark_found_step(found, count, visited, fresh):
    """settle_fresh_step for few finds: only the listed ones are touched.

    Invariant  fresh is empty afterwards, if it held only these.   Races  none, serial.   Work  O(count).
    """
    for i in range(count):
        visited[found[i]] = 1
        fresh[found[i]] = 0


@njit(cache=True)
def collect_level_step(level, depth, frontier):
    """List the vertices at ``depth``; return how many.

    Invariant  frontier = the level, ascending.   Races  none, serial.   Work  O(n).
    """
    count = 0
    for v in range(level.size):
        if level[v] == depth:
            count = append(frontier, count, v)
    return count


@njit(cache=True, parallel=True)
def first_sources_step(row_begin, row_end, sources, best_in):
    """The best in-neighbour of each vertex: the first of its list, or the vertex itself when it has none.

    Invariant  lists fall with degree.   Races  none: element by element.   Work  O(n).
    """
    for v in prange(best_in.size):
        best_in[v] = sources[row_begin[v]] if row_begin[v] < row_end[v] else v


@njit(cache=True, parallel=True)
def clear_run_step(level, parent, visited, fresh):
    """Forget a run: no vertex has a level.

    Invariant  visited[v] == 0 and level[v] == -1 for every v.   Races  none: element by element.   Work  O(n).
    """
    for v in prange(level.size):
        level[v] = -1
        parent[v] = -1
        visited[v] = 0
        fresh[v] = 0
