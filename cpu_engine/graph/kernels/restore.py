"""Results back in the user's order: one pass over the user's vertices, isolated ones included.

A search has two values per vertex, level and parent. Both go as one word, (level + 1) << bits | (parent's user id + 1),
which is made in internal order, where everything lies side by side, so that the user's order costs one gather. Zero is
"neither", as isolated vertices have. With 32 bits for the id every pair fits 64 bits and comes back unchanged; a word
of 32 bits holds it if the id needs few bits and the search is not deep.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(cache=True, parallel=True)
def restore_levels_step(internal_of_position, level, user_level):
    """user_level[p] = level of the vertex at position p, -1 where it has no edges.

    Invariant  internal_of_position[p] is an internal id or -1.   Races  none: element by element.
    Work       one gather per vertex; writes are sequential.
    """
    for p in prange(user_level.size):
        v = internal_of_position[p]
        user_level[p] = level[v] if v >= 0 else -1


@njit(cache=True, parallel=True)
def restore_parents_step(internal_of_position, user_id_of, parent, user_parent):
    """user_parent[p] = the user's id of the parent of the vertex at position p, -1 where it has none.

    Invariant  parent[v] is an internal id or -1.   Races  none: element by element.
    Work       three gathers per vertex, the last mostly at hubs and so in cache; writes are sequential. Every look
               happens, at vertex 0 where there is none to look at: without branches the loop is vectorised.
    """
    for p in prange(user_parent.size):
        v = internal_of_position[p]
        u = parent[max(v, 0)] if v >= 0 else -1
        user_id = user_id_of[max(u, 0)]
        user_parent[p] = user_id if u >= 0 else -1


@njit(cache=True, parallel=True)
def restore_values_step(internal_of_position, value, none, user_value):
    """user_value[p] = value of the vertex at position p, ``none`` where it has no edges.

    Invariant, races, work: see restore_levels_step.
    """
    for p in prange(user_value.size):
        v = internal_of_position[p]
        user_value[p] = value[v] if v >= 0 else none


@njit(cache=True, parallel=True)
def pack_search_step(level, parent, user_id_of, bits, word):
    """word[v] = (level[v] + 1) << bits | (the user's id of parent[v], or -1) + 1; return the lowest and highest level.

    Invariant  parent[v] is an internal id or -1. Words of 64 bits are right with 32 bits for ids below 2**31. Words of
               32 bits are right if the levels returned are -1 or above and below 2**(31 - bits) - 1: the caller looks.
    Races      none: element by element.   Work  one gather per vertex, mostly of a hub and so in cache.
    """
    lowest, highest = np.int32(0), np.int32(0)
    for v in prange(word.size):
        u = parent[v]
        user_id = np.int64(user_id_of[max(u, 0)])
        user_id = user_id if u >= 0 else np.int64(-1)
        word[v] = (np.int64(level[v]) + 1) << bits | (user_id + 1)
        lowest = min(lowest, level[v])
        highest = max(highest, level[v])
    return lowest, highest


@njit(cache=True, parallel=True)
def unpack_search_step(internal_of_position, word, bits, user_level, user_parent):
    """user_level[p], user_parent[p] = what pack_search_step put into the word of the vertex at p, -1 if it is isolated.

    Invariant  internal_of_position[p] is an internal id or -1; there is a word.   Races  none: element by element.
    Work       one gather per vertex - which is kind to caches: vertices of one degree lie in the user's order -
               and 12 bytes written, which is what it costs.
    """
    low = (np.int64(1) << bits) - 1
    for p in prange(user_level.size):
        v = internal_of_position[p]
        found = word[max(v, 0)]
        found = found if v >= 0 else word.dtype.type(0)
        user_level[p] = np.int32(found >> bits) - np.int32(1)
        user_parent[p] = (np.int64(found) & low) - 1
