"""Which of an agreed list of vertices were found in this level: as bits where many were, as places where few were.

A message is bytes: the first is its form, and an empty message means no vertex. Lists are agreed: both sides hold the
same vertices in the same order, so that a place in the list names a vertex. A list is given by index (masters) or, with
an empty index array, as the local range that begins at ``first`` (mirrors).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cpu_engine.intrinsics.bisect import first_not_below
from cpu_engine.intrinsics.words import WORD, count_bits, word_of_flags

BITS, PLACES = 1, 2
HEADER = 8  # bytes before the payload, so that it is aligned


@njit(cache=True)
def pack_level_bits_step(index, first, count, level, reach, message):
    """Set bit i of ``message`` iff the i-th of the list is at ``reach``; return how many bits were set.

    Invariant  message is the header and ceil(count / 64) words.   Races  none, serial.
    Work       one look per entry of the list, 64 at a time, no branch.
    """
    message[:HEADER] = 0
    message[0] = BITS
    words = message[HEADER:].view(np.uint64)
    flags = np.zeros(WORD, np.uint8)
    by_index = index.view(np.uint32)
    total = 0
    for w in range(words.size):
        begin = w * WORD
        size = min(WORD, count - begin)
        if size < WORD:
            flags[:] = 0
        if index.size:
            places = by_index[begin : begin + size]
            for b in range(size):
                flags[b] = level[places[b]] == reach
        else:
            here = level[first + begin : first + begin + size]
            for b in range(size):
                flags[b] = here[b] == reach
        words[w] = word_of_flags(flags, 0)
        total += count_bits(words[w])
    return total


@njit(cache=True)
def list_places_step(found, count, index, first, size, message):
    """Write the places of the found vertices that are in the list; return how many.

    Invariant  the list ascends (index, or a range), so a place is found by bisection.   Races  none, serial.
    Work       O(count log size).
    """
    message[:HEADER] = 0
    message[0] = PLACES
    places = message[HEADER:].view(np.uint32)
    total = 0
    for i in range(count):
        v = found[i]
        if index.size:
            at = first_not_below(index, v)
            inside = at < size and index[at] == v
        else:
            at = v - first
            inside = 0 <= at < size
        if inside:
            places[total] = at
            total += 1
    return total


@njit(cache=True)
def take_range_bits_step(message, first, count, reach, giver, level, parent, visited):
    """Give ``reach`` to each vertex of the local range that has no level and whose bit is set; return how many.

    Invariant  a vertex with a level keeps it, and its parent; ``visited`` may lag behind ``level`` for what a pull has
               just found, so level decides. ``parent`` records the part that found it: -2 - giver.
    Races      none, serial.   Work  one look per entry, no branch: a message of bits has many set.
    """
    words = message[HEADER:].view(np.uint64)
    mark, total = np.int32(-2 - giver), 0
    for w in range(words.size):
        if words[w] == 0:
            continue
        begin = first + w * WORD
        size = min(WORD, count - w * WORD)
        here, depth, found = visited[begin : begin + size], level[begin : begin + size], parent[begin : begin + size]
        for b in range(size):
            bit = np.int32((words[w] >> np.uint64(b)) & np.uint64(1)) & -(depth[b] >> 31)
            here[b] |= np.uint8(bit)
            depth[b] += bit * (reach - depth[b])
            found[b] += bit * (mark - found[b])
            total += bit
    return total


@njit(cache=True)
def take_index_bits_step(message, index, reach, giver, level, parent, visited):
    """take_range_bits_step for a list given by index.

    Invariant, races, work: see there.
    """
    words = message[HEADER:].view(np.uint64)
    mark, total = np.int32(-2 - giver), 0
    for i in range(index.size):
        v = index[i]
        bit = np.int32((words[i >> 6] >> np.uint64(i & 63)) & np.uint64(1)) & -(level[v] >> 31)
        visited[v] |= np.uint8(bit)
        level[v] += bit * (reach - level[v])
        parent[v] += bit * (mark - parent[v])
        total += bit
    return total


@njit(cache=True)
def take_places_step(message, index, first, reach, giver, level, parent, visited, found, size):
    """take_range_bits_step for a message of places; list the finds; return the new size of the list.

    Invariant, races: see there.   Work  one look per place.
    """
    places = message[HEADER:].view(np.uint32)
    for i in range(places.size):
        v = np.int64(index[places[i]]) if index.size else first + np.int64(places[i])
        if level[v] < 0:
            visited[v] = 1
            level[v] = reach
            parent[v] = -2 - giver
            found[size] = v
            size += 1
    return size
