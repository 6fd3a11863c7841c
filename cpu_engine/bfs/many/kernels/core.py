"""The dense core in a search from up to 64 roots at once: which roots wait for it, and values in and out.

``known`` and ``closed`` are the core solver's last answer on the core [0, k), bit-sliced as in levels.py: bit s of
``closed[p, v]`` is bit p of the value of v from root s, where bit s of ``known[v]`` is set. Comparing a value with a
root's depth is then a few operations for all 64 roots.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.bfs.many.kernels.levels import NONE, ONE, count_up

BLOCK = 256  # core vertices whose words stay in the nearest cache while all roots' values are put into them


@njit(cache=True)
def roots_that_can_gain(seen, core, depths):
    """The roots for which a core edge from the level ``depths`` could still lead to something nearer.

    That takes a core vertex with an in-neighbour in the core that has neither been reached nor is known to be on the
    next level.
    """
    known, closed, within = core.known, core.closed, core.within
    after = depths.copy()
    count_up(after, ~NONE)
    gain = NONE
    for v in range(known.size):
        soon = known[v]
        for p in range(closed.shape[0]):
            soon &= ~(closed[p, v] ^ after[p])
        gain |= within[v] & ~seen[v] & ~soon
    return gain


@njit(cache=True)
def admit_core_step(seen, planes, core, depths, going):
    """Before level ``depths`` is made: mark the core vertices that are on it by the core solver's answer as seen.

    Invariant  after: seen and planes include due[v], the roots in ``going`` for which v is on this level by the answer
               and has not been reached before.
    Races      none, serial.   Work  O(k * planes).
    """
    known, closed, due = core.known, core.closed, core.due
    for v in range(known.size):
        new = known[v] & going & ~seen[v]
        for p in range(closed.shape[0]):
            new &= ~(closed[p, v] ^ depths[p])
        due[v] = new
        if new != NONE:
            seen[v] |= new
            for p in range(planes.shape[0]):
                planes[p, v] |= new & depths[p]


@njit(cache=True)
def join_core_step(seen, front, core, depths, going, withheld, frontier, count):
    """After level ``depths`` was made: add the ``due`` vertices to it, and find the roots that must wait for the core.

    Invariant  before: ``front`` is level ``depths`` of the roots in ``going``, but for the vertices that are due.
               After: it is complete, and ``due`` is empty. A root must wait if a core vertex of this level does not
               have this very value in the core solver's answer, so that the answer does not cover its core edges -
               unless no core vertex could gain from these.
    Races      none, serial.   Work  O(k * planes).

    Returns (roots that must wait, roots that got a vertex, vertices listed): those that had no bit are added.
    """
    known, closed, due = core.known, core.closed, core.due
    wait, joined = NONE, NONE
    for v in range(known.size):
        if due[v] != NONE:
            if front[v] == NONE:
                frontier[count] = v
                count += 1
            joined |= due[v]
            front[v] |= due[v]
            due[v] = NONE
        if withheld and front[v] & going != NONE:
            agreed = known[v]
            for p in range(closed.shape[0]):
                agreed &= ~(closed[p, v] ^ depths[p])
            wait |= front[v] & going & ~agreed
    if wait != NONE:
        wait &= roots_that_can_gain(seen, core, depths)
    return wait, joined, count


@njit(cache=True)
def move_listed_step(source, target, mask, listed, count, taken, total):
    """Move the bits in ``mask`` of the listed vertices from one array of words to the other, and the lists with them.

    Invariant  ``listed[:count]`` are the vertices with a bit in ``source``, ``taken[:total]`` those in ``target``;
               after as before.
    Races      none, serial.   Work  O(count).

    Returns the new lengths of both lists.
    """
    left = 0
    for i in range(count):
        v = listed[i]
        word = source[v] & mask
        if word != NONE:
            if target[v] == NONE:
                taken[total] = v
                total += 1
            target[v] |= word
            source[v] &= ~mask
        if source[v] != NONE:
            listed[left] = v
            left += 1
    return left, total


@njit(cache=True, parallel=True)
def move_words_step(source, target, mask, left, arrived):
    """Move the bits in ``mask`` from one array of words to the other; by thread, vertices with a bit in each after.

    Invariant  none is lost.   Races  each thread has its own stretch.   Work  O(n).
    """
    threads, n = left.size, source.size
    for t in prange(threads):
        stay, there = 0, 0
        for v in range(t * n // threads, (t + 1) * n // threads):
            target[v] |= source[v] & mask
            source[v] &= ~mask
            stay += source[v] != NONE
            there += target[v] != NONE
        left[t], arrived[t] = stay, there


@njit(cache=True, parallel=True)
def read_core_step(seen, planes, known, closed, roots, words, values):
    """values[i, v] = the best known value of core vertex v from root ``roots[i]``; -1 where there is none.

    Invariant  a level counts before the core solver's answer, which is larger or the same. ``words`` is room for one
               array of k words per plane of ``closed``, and one more.
    Races      row i is written by its thread; words are made before.
    Work       O(k * rows * planes), many vertices at a time.
    """
    k = known.size
    some = words[closed.shape[0]]
    for v in range(k):
        some[v] = seen[v] | known[v]
    for p in range(closed.shape[0]):
        for v in range(k):
            words[p, v] = closed[p, v] & ~seen[v]
        if p < planes.shape[0]:
            for v in range(k):
                words[p, v] |= planes[p, v]
    for i in prange(roots.size):
        s = np.uint64(roots[i])
        row = values[i]
        for v in range(k):
            row[v] = np.int32((some[v] >> s) & ONE) - np.int32(1)  # -1: none
        for p in range(closed.shape[0]):
            plane = words[p]
            for v in range(k):
                row[v] += np.int32((plane[v] >> s) & ONE) << np.int32(p)


@njit(cache=True, parallel=True)
def merge_closed_step(sent, answer, roots, depth_of, seen, known, closed, findings):
    """Take the core solver's answer on these roots into ``known`` and ``closed``, as far as it can be true.

    Invariant  a value is refused if it is larger than what was sent, or missing, or shorter than any path: less than a
               level that is known, or at most the root's depth where it has not been. What was sent stands then.
    Races      a block's thread writes the block's words, and its own row of ``findings``.
    Work       O(k * rows * planes), many vertices at a time.

    ``findings[b]`` = (values that are new, values refused) of block b.
    """
    k, planes = known.size, closed.shape[0]
    all_roots = NONE
    for i in range(roots.size):
        all_roots |= ONE << np.uint64(roots[i])
    for b in prange(findings.shape[0]):
        first, last = b * BLOCK, min((b + 1) * BLOCK, k)
        value = np.empty(last - first, np.int32)
        some, here = known[first:last], seen[first:last]
        changed, refused = 0, 0
        for v in range(last - first):
            some[v] &= ~all_roots
            for p in range(planes):
                closed[p, first + v] &= ~all_roots
        for i in range(roots.size):
            s, depth = np.uint64(roots[i]), depth_of[i]
            mine, theirs = sent[i, first:last], answer[i, first:last]
            for v in range(value.size):
                visited = (here[v] >> s) & ONE != NONE
                worse = (mine[v] >= 0) & ((theirs[v] < 0) | (theirs[v] > mine[v]))
                early = (theirs[v] >= 0) & (theirs[v] < mine[v] if visited else theirs[v] <= depth)
                bad = worse | early | (theirs[v] < -1)
                value[v] = mine[v] if bad else theirs[v]
                changed += value[v] != mine[v]
                refused += bad
                some[v] |= np.uint64(value[v] >= 0) << s
            for p in range(planes):
                plane = closed[p, first:last]
                for v in range(value.size):
                    plane[v] |= np.uint64((max(value[v], 0) >> p) & 1) << s
        findings[b, 0], findings[b, 1] = changed, refused
