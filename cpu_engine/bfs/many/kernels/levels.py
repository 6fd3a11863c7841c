"""Levels of a BFS from up to 64 roots at once: one bit per root, one 64-bit word per vertex.

Encoding invariant, between levels: bit s of ``seen[v]`` is set iff root s reaches v within ``depth`` edges; bit s of
``front[v]`` iff it needs exactly ``depth``. The level numbers are bit-sliced: bit s of ``planes[p, v]`` is bit p of the
level of v from root s. So are the depths: bit s of ``depths[p]`` is bit p of the level that root s is about to make,
which lets some roots wait while others go on (cpu_engine/bfs/many/core.py); mostly all are at the same ``depth``.

Lists are given by where each begins and ends, so that a part of them can be left out.

Indices are cast to unsigned numbers and blocks are cut out as views: numba otherwise provides for negative indices at
every access, which doubles the time of these loops.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy import int64, uint64

from cpu_engine.bfs.many.kernels.groups import Words

BLOCK = 512  # vertices per turn: low ids are hubs, so blocks go round robin to even out the threads
NONE = np.uint64(0)
ONE = np.uint64(1)


@njit(cache=True)
def count_up(depths, mask):
    """Add one to the bit-sliced depths of the roots in ``mask``."""
    for p in range(depths.size):
        carry = depths[p] & mask
        depths[p] ^= mask
        mask = carry


@njit(cache=True)
def first_at_least(targets, begin, end, bound):
    """Index of the first of targets[begin:end], ascending, that is not below ``bound``; for 0 without a look."""
    if bound <= 0:
        return begin
    while begin < end:
        middle = (begin + end) >> 1
        if targets[uint64(middle)] < bound:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True)
def push_listed_share_step(t, rows, words, frontier, count, found, bounds, depths, tally):
    """Thread t's part of push_listed_step: the targets from bounds[t] to bounds[t + 1].

    Invariant, races, work: see push_listed_step.
    """
    begins, ends, targets = rows.begin, rows.end, rows.targets
    seen, front, fresh, planes = words.seen, words.front, words.fresh, words.planes
    low, high = bounds[t], bounds[t + 1]
    total, looked, edges = low, 0, 0
    for i in range(count):
        u = uint64(frontier[i])
        word = front[u]
        begin, end = first_at_least(targets, begins[u], ends[u], low), ends[u]
        e = begin
        while e < end and targets[uint64(e)] < high:
            v = targets[uint64(e)]
            new = word & ~seen[v]
            if new != NONE:
                if fresh[v] == NONE:
                    found[uint64(total)] = v
                    total += 1
                fresh[v] |= new
            e += 1
        looked += e - begin
    for i in range(low, total):
        v = uint64(found[uint64(i)])
        new = fresh[v]
        seen[v] |= new
        for p in range(planes.shape[0]):
            if depths[p] != NONE:
                planes[p, v] |= new & depths[p]
        edges += ends[v] - begins[v]
    tally[t, 0] += looked
    tally[t, 1] = total - low
    tally[t, 2] = edges


@njit(cache=True, parallel=True)
def push_listed_step(rows, words, frontier, count, found, bounds, depths, tally):
    """Make level ``depths`` from a listed frontier: push its bits, and list the vertices that got new ones.

    Invariant  before: ``fresh`` is all zero, ``frontier[:count]`` lists the vertices with a bit in ``front``, which is
               the level before. After: ``fresh`` is level ``depths``, seen and planes include it, and thread t has
               listed its vertices in ``found`` from bounds[t] on.
    Races      none, without atomics: thread t writes seen, fresh, planes and found from bounds[t] to bounds[t + 1]
               only, which is a stretch of each list because lists are sorted; ``front`` is only read.
    Work       O(edges of the frontier) + threads * count bisections.

    ``tally[t]`` gains (edges looked at) and gets (vertices found, their edges).
    """
    for t in prange(bounds.size - 1):
        push_listed_share_step(int64(t), rows, words, frontier, count, found, bounds, depths, tally)


@njit(cache=True)
def push_thin_levels_step(rows, words, frontier, count, found, depths, going, most, budget, tally):
    """Make up to ``most`` levels as push_listed_step does, while each has at most ``budget`` edges.

    Invariant  as push_listed_step's for each level; ``fresh`` is all zero again at the end, and ``depths`` is the last
               level that was made.
    Races      none, serial: thousands of tiny levels must not pay for waking threads.
    Work       O(edges of the frontiers).

    Returns (vertices in the frontier, their edges, levels made). The arrays change roles with each level: after an odd
    number of levels ``fresh`` is the front and ``found`` the frontier.
    """
    whole = np.empty(2, np.int64)
    whole[0], whole[1] = 0, words.seen.size
    edges, levels = count_list_edges_step(rows, frontier, count), 0
    while count > 0 and edges <= budget and levels < most:
        levels += 1
        count_up(depths, going)
        push_listed_share_step(int64(0), rows, words, frontier, count, found, whole, depths, tally)
        front = words.front
        for i in range(count):
            front[frontier[i]] = NONE
        count, edges = tally[0, 1], tally[0, 2]
        frontier, found = found, frontier
        words = Words(words.seen, words.fresh, front, words.planes)
    return count, edges, levels


@njit(cache=True)
def count_list_edges_step(rows, frontier, count):
    """The edges of the listed vertices.   Invariant  nothing is written.   Races  none, serial.   Work  O(count)."""
    begins, ends = rows.begin, rows.end
    edges = 0
    for i in range(count):
        edges += ends[frontier[i]] - begins[frontier[i]]
    return edges


@njit(cache=True)
def push_share_step(t, rows, front, mask, frontier, count, fresh, bounds):
    """Thread t's part of push_step, the targets from bounds[t] to bounds[t + 1]; returns the edges looked at.

    Invariant, races, work: see push_step.
    """
    begins, ends, targets = rows.begin, rows.end, rows.targets
    low, high = bounds[t], bounds[t + 1]
    looked = 0
    for i in range(count):
        u = uint64(frontier[i])
        word = front[u] & mask
        if word != NONE:
            begin, end = first_at_least(targets, begins[u], ends[u], low), ends[u]
            e = begin
            while e < end and targets[uint64(e)] < high:
                fresh[targets[uint64(e)]] |= word
                e += 1
            looked += e - begin
    return looked


@njit(cache=True, parallel=True)
def push_step(rows, front, mask, frontier, count, fresh, bounds, tally):
    """Give the bits in ``mask`` of each frontier vertex to its out-neighbours, in ``fresh``, seen before or not.

    Invariant  seen, front and planes are only read; fresh[v] gains what the in-neighbours of v in the frontier have.
    Races      none, without atomics: thread t writes fresh[bounds[t]:bounds[t + 1]] only, which is a stretch of each
               list because lists are sorted.
    Work       O(edges of the frontier) + threads * count bisections.

    ``tally[t, 0]`` gains the edges looked at.
    """
    for t in prange(bounds.size - 1):
        tally[t, 0] += push_share_step(int64(t), rows, front, mask, frontier, count, fresh, bounds)


@njit(cache=True)
def pull_block_step(best, begins, ends, sources, seen, front, fresh, mask, pushed):
    """Bits new to a block, into ``fresh``; all but sources and front are the block's. Returns the edges looked at.

    Invariant, races, work: see settle_step.
    """
    looked = 0
    for i in range(seen.size):
        have = seen[i]
        new = fresh[i] & ~have if pushed else NONE
        wanted = mask & ~have
        if wanted != NONE:
            missing = wanted & ~front[best[i]]  # the largest hub: mostly it has them all, and its row need not be read
            looked += 1
            if missing != NONE:
                begin, end = begins[i] + 1, ends[i]
                e = begin
                while e + 3 < end:  # four at a time: their loads overlap
                    near = front[sources[uint64(e)]] | front[sources[uint64(e + 1)]]
                    far = front[sources[uint64(e + 2)]] | front[sources[uint64(e + 3)]]
                    missing &= ~(near | far)
                    e += 4
                    if missing == NONE:
                        break
                while e < end and missing != NONE:
                    missing &= ~front[sources[uint64(e)]]
                    e += 1
                looked += e - begin
            new |= wanted & ~missing
        fresh[i] = new
    return looked


@njit(cache=True)
def record_block_step(seen, fresh):
    """Add a block's new bits to the seen ones; returns (vertices with new bits, union of the bits)."""
    count, union = 0, NONE
    for i in range(seen.size):
        seen[i] |= fresh[i]
        union |= fresh[i]
        count += fresh[i] != NONE
    return count, union


@njit(cache=True)
def merge_block_step(plane, fresh, mask):
    """Add a block's new bits, of the roots in ``mask``, to one plane."""
    for i in range(plane.size):
        plane[i] |= fresh[i] & mask


@njit(cache=True)
def settle_share_step(t, rows, words, depths, mask, pushed, found, tally):
    """Thread t's part of settle_step, every threads-th block of vertices; returns the roots that found anything.

    Invariant, races, work: see settle_step.
    """
    best, begins, ends, sources = rows.best, rows.begin, rows.end, rows.sources
    seen, front, fresh, planes = words.seen, words.front, words.fresh, words.planes
    threads, room = found.shape
    looked, total, union = 0, 0, NONE
    for first in range(t * BLOCK, seen.size, threads * BLOCK):
        last = min(first + BLOCK, seen.size)
        block_seen, block_fresh = seen[first:last], fresh[first:last]
        looked += pull_block_step(
            best[first:last], begins[first:last], ends[first:last], sources, block_seen, front, block_fresh, mask,
            pushed,
        )  # fmt: skip
        count, some = record_block_step(block_seen, block_fresh)
        if some != NONE:
            union |= some
            for p in range(planes.shape[0]):
                if depths[p] != NONE:
                    merge_block_step(planes[p, first:last], block_fresh, depths[p])
            if total + count <= room:
                at = total
                for i in range(block_fresh.size):
                    if block_fresh[i] != NONE:
                        found[t, at] = first + i
                        at += 1
            total += count
    tally[t, 0] += looked
    tally[t, 1] = total
    return union


@njit(cache=True, parallel=True)
def settle_step(rows, words, depths, mask, pushed, found, unions, tally):
    """Make level ``depths``: what was pushed (if ``pushed``), and for the roots in ``mask`` what each vertex can pull.

    Invariant  before: ``front`` is the level before, ``fresh`` holds what the roots outside ``mask`` pushed (garbage if
               not ``pushed``). After: ``fresh`` is level ``depths``, seen and planes include it.
    Races      a block's thread writes seen, fresh and planes of the block only; ``front`` is only read.
    Work       O(n) plus the in-edges of vertices that miss bits, with early exit when the last one is found; lists
               begin with the hubs, which have most bits.

    ``tally[t]`` gains (edges looked at) and gets (vertices found); ``unions[t]`` is the roots that found anything;
    ``found[t]`` lists the vertices, complete if there is room for all.
    """
    for t in prange(unions.size):
        unions[t] = settle_share_step(int64(t), rows, words, depths, mask, pushed, found, tally)


@njit(cache=True, parallel=True)
def collect_step(words, mask, found, sizes):
    """List the vertices that have a bit of ``mask``; thread t lists its stretch of ids at the stretch's own place.

    Invariant  words are only read; each stretch of ``found`` is ascending.   Races  stretches are disjoint.
    Work       O(n).
    """
    threads = sizes.size
    for t in prange(threads):
        first, last = t * words.size // threads, (t + 1) * words.size // threads
        mine, into = words[first:last], found[first:last]
        size = 0
        for i in range(mine.size):
            if mine[i] & mask != NONE:
                into[size] = first + i
                size += 1
        sizes[t] = size


@njit(cache=True)
def count_bits_step(words, sample, flip, mask, counts):
    """How many of the sampled words, flipped and masked, have each bit; returns how many have any.

    Invariant  words are only read.   Races  none, serial.   Work  O(sample).
    """
    counts[:] = 0
    some = 0
    for i in range(sample.size):
        word = (words[sample[i]] ^ flip) & mask
        some += word != NONE
        for s in range(counts.size):
            counts[s] += np.int64((word >> np.uint64(s)) & ONE)
    return some


@njit(cache=True, parallel=True)
def clear_words_step(seen, planes):
    """Set everything to zero, with all threads: one alone does not reach the memory's bandwidth.

    Invariant  none.   Races  each thread has its own part.   Work  O(n).
    """
    for v in prange(seen.size):
        seen[v] = NONE
        for p in range(planes.shape[0]):
            planes[p, v] = NONE
