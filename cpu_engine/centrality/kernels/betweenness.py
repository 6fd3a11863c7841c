"""Path counts and dependencies of several roots at once: a row of COLUMNS numbers per vertex, a column per root.

Both passes of Brandes' algorithm are one operation: each vertex of a level sums the rows of its neighbours in the level
before (counts, from the root outwards over in-edges) or behind (dependencies, back towards it over out-edges). A
neighbour can be in that level for some roots only; ``front`` rows are zero in the other columns, so that rows are added
whole, and a word with a bit per root says which rows are worth reading at all.

Encoding: bit s of ``word[v]`` is set iff v is in the level at hand for root s; rows are flat, v's begins at
``v * COLUMNS``. Rows of vertices without a bit hold garbage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy import uint64

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.bisect import first_not_below

COLUMNS = 16
BLOCK = 256  # vertices that a thread takes at a time
GATHERED = 256  # neighbours that are gathered before their rows are read


class Rows(NamedTuple):
    """Neighbours on the side that a pass looks to: ids[offsets[v]:offsets[v + 1]]."""

    offsets: np.ndarray
    ids: np.ndarray


class Sums(NamedTuple):
    """Room for each thread: the sum of rows, and the neighbours whose rows are summed."""

    totals: np.ndarray
    found: np.ndarray


@njit(cache=True, parallel=True)
def mark_level_step(level, stride, column, depth, out_offsets, in_offsets, word):
    """word[v] = in which of COLUMNS columns from ``column`` on, row v of ``level`` is ``depth``.

    Invariant  level is flat, ``stride`` numbers a row, -1 where a root does not reach v.   Races  none.   Work  O(n).

    Returns the out-edges and the in-edges of the vertices with a bit.
    """
    out_edges, in_edges = 0, 0
    for v in prange(word.size):
        bits = np.int64(0)
        row = level[v * stride + column : v * stride + column + COLUMNS]
        for s in range(row.size):
            bits |= np.int64(row[s] == depth) << s
        word[v] = bits
        if bits != 0:
            out_edges += out_offsets[v + 1] - out_offsets[v]
            in_edges += in_offsets[v + 1] - in_offsets[v]
    return out_edges, in_edges


@njit(cache=True)
def add_rows(found, count, front, row):
    """Add the rows of the first ``count`` vertices in ``found`` to ``row``."""
    i = 0
    while i + 1 < count:  # two at a time: half as many trips of ``row`` to the cache
        one = front[uint64(found[i]) * uint64(COLUMNS) : (uint64(found[i]) + uint64(1)) * uint64(COLUMNS)]
        two = front[uint64(found[i + 1]) * uint64(COLUMNS) : (uint64(found[i + 1]) + uint64(1)) * uint64(COLUMNS)]
        for s in range(COLUMNS):
            row[s] += one[s] + two[s]
        i += 2
    if i < count:
        one = front[uint64(found[i]) * uint64(COLUMNS) : (uint64(found[i]) + uint64(1)) * uint64(COLUMNS)]
        for s in range(COLUMNS):
            row[s] += one[s]


@njit(cache=True)
def sum_neighbours(row_ids, word, wanted, front, found, total):
    """total = the sum of the rows of the neighbours that have a bit of ``wanted``."""
    for s in range(COLUMNS):
        total[s] = 0.0
    for begin in range(0, row_ids.size, GATHERED):
        part = row_ids[begin : min(begin + GATHERED, row_ids.size)]
        count = uint64(0)
        for i in range(part.size):  # no branch: whether a neighbour is in the level cannot be predicted
            found[count] = part[i]
            count += uint64((word[part[i]] & wanted) != 0)
        add_rows(found, count, front, total)


@njit(cache=True)
def count_paths(v, wanted, total, sigma, fresh):
    """Keep the path counts of v in the columns of ``wanted``, in ``sigma`` and as a row to be read next."""
    kept, row = sigma[v * COLUMNS : (v + 1) * COLUMNS], fresh[v * COLUMNS : (v + 1) * COLUMNS]
    for s in range(COLUMNS):
        value = total[s] if (wanted >> s) & 1 else 0.0
        kept[s] += value
        row[s] = value


@njit(cache=True, error_model="numpy")
def count_dependency(v, wanted, total, sigma, weight, fresh):
    """Turn sums into v's dependencies; returns their weighted sum, and leaves (1 + dependency) / paths as v's row."""
    paths, row = sigma[v * COLUMNS : (v + 1) * COLUMNS], fresh[v * COLUMNS : (v + 1) * COLUMNS]
    gained = 0.0
    for s in range(COLUMNS):
        mine = (wanted >> s) & 1
        dependency = paths[s] * total[s] if mine else 0.0
        gained += weight[s] * dependency
        row[s] = (1.0 + dependency) / paths[s] if mine else 0.0
    return gained


@njit(cache=True)
def keep_sums(v, wanted, total, sigma, fresh, weight, score):
    """What v makes of its neighbours' sums: path counts, or, if there is a ``score``, dependencies."""
    if score is None:
        count_paths(v, wanted, total, sigma, fresh)
    else:  # the compiler leaves one branch out
        score[v] += count_dependency(v, wanted, total, sigma, weight, fresh)


@njit(cache=True, parallel=True)
def pull_step(rows, next_word, word, front, fresh, sigma, weight, score, next_block, sums):
    """Give each vertex of a level what its neighbours in the level next to it add up to.

    Outwards (in-neighbours in the level before; no ``weight``, no ``score``) these are path counts; back towards the
    roots (out-neighbours in the level behind) dependencies, which are v's score as well.

    Invariant  ``next_word`` and ``front`` are the level next to it, whose rows are final; ``word`` is the level; sigma
               is final, outwards for all levels before.
    Races      a vertex's thread writes its score and rows of sigma and fresh; thread t alone uses its rows of ``sums``.
    Work       a look per arc of ``rows`` of the level's vertices, and the rows of those that are in the next level.
    """
    (offsets, ids), (totals, found), n = rows, sums, word.size
    for t in prange(totals.shape[0]):
        block = atomic_add(next_block, 0, 1)
        while block * BLOCK < n:
            for v in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
                if word[v] != 0:
                    sum_neighbours(ids[offsets[v] : offsets[v + 1]], next_word, word[v], front, found[t], totals[t])
                    keep_sums(v, word[v], totals[t], sigma, fresh, weight, score)
            block = atomic_add(next_block, 0, 1)


@njit(cache=True)
def push_share(low, high, frontier, offsets, targets, before, word, front, fresh):
    """The targets from ``low`` to ``high`` of push_paths_step."""
    for i in range(frontier.size):
        u = frontier[i]
        begin, end = offsets[u], offsets[u + 1]
        given = front[u * COLUMNS : (u + 1) * COLUMNS]
        e = begin + first_not_below(targets[begin:end], low)
        while e < end and targets[e] < high:
            v = targets[e]
            if word[v] & before[u]:
                row = fresh[v * COLUMNS : (v + 1) * COLUMNS]
                for s in range(COLUMNS):
                    row[s] += given[s]
            e += 1


@njit(cache=True, parallel=True)
def push_paths_step(offsets, targets, frontier, before, word, front, fresh, sigma, bounds):
    """pull_step outwards, by the vertices of the level before (``frontier``) giving their rows to their out-neighbours.

    Invariant  as pull_step.
    Races      none, without atomics: thread t writes rows of the vertices from bounds[t] to bounds[t + 1] only, which
               is a stretch of each list because lists are sorted.
    Work       O(n) to clear and keep, the out-edges of the level before, and threads bisections per vertex of it.
    """
    for t in prange(bounds.size - 1):
        for v in range(bounds[t], bounds[t + 1]):
            if word[v] != 0:
                fresh[v * COLUMNS : (v + 1) * COLUMNS] = 0.0
        push_share(bounds[t], bounds[t + 1], frontier, offsets, targets, before, word, front, fresh)
        for v in range(bounds[t], bounds[t + 1]):
            if word[v] != 0:
                count_paths(v, word[v], fresh[v * COLUMNS : (v + 1) * COLUMNS], sigma, fresh)


@njit(cache=True, parallel=True, error_model="numpy")
def turn_around_step(word, sigma, fresh):
    """Make the rows of the deepest level what its neighbours nearer to the root read: 1 / paths.

    Invariant  sigma is final.   Races  none.   Work  O(n).
    """
    for v in prange(word.size):
        if word[v] != 0:
            paths, row = sigma[v * COLUMNS : (v + 1) * COLUMNS], fresh[v * COLUMNS : (v + 1) * COLUMNS]
            for s in range(COLUMNS):
                row[s] = 1.0 / paths[s] if (word[v] >> s) & 1 else 0.0
