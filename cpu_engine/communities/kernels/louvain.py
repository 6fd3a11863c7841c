"""The steps of Louvain's method: moving vertices between communities, dividing these, and making each part a vertex.

The graph is a symmetric matrix of weights by rows, a pair's weight in several pieces if need be; what lies on the
diagonal is apart, in ``loops`` (an edge from a vertex to itself counts twice, as its two ends do).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

GAIN = 1e-12  # of the whole weight: a smaller gain may be nothing but rounding, and could go in circles


class Weights(NamedTuple):
    """The matrix of a level; see the module."""

    offsets: np.ndarray
    ids: np.ndarray
    weight: np.ndarray
    loops: np.ndarray
    strength: np.ndarray  # [v]: the sum of v's row, diagonal included
    whole: float  # the sum of all


@njit(cache=True)
def best_community(v, weights, resolution, community, inside, near, touched):
    """The community where v adds most to the modularity, its own if no other adds more; v has been taken out of it.

    ``near`` is zero before and after; ``touched`` is room for the communities around v.
    """
    offsets, ids, weight, _, strength, whole = weights
    count, own = 0, community[v]
    for e in range(offsets[v], offsets[v + 1]):
        u = ids[e]
        if u != v and weight[e] > 0.0:
            c = community[u]
            if near[c] == 0.0:
                touched[count] = c
                count += 1
            near[c] += weight[e]
    share = resolution * strength[v] / whole
    best, most = own, near[own] - share * inside[own]
    for i in range(count):
        c = touched[i]
        gain = near[c] - share * inside[c]
        if gain > most + GAIN * whole:
            best, most = c, gain
        near[c] = 0.0
    return best


@njit(cache=True)
def move_vertices_step(weights, resolution, queue, waiting, community, inside, near, touched):
    """Move vertices one by one to the best community around them until no move gains; returns the moves.

    Invariant  inside[c] = the strength of c's members; modularity grows with every move. All vertices wait at first, in
               the order of ``queue``; a vertex that moves makes the neighbours outside its new community wait again.
               ``near`` is zero before and after.
    Races      none, serial: each move depends on the ones before, which is what makes the result reproducible.
    Work       the rows of all that waited, each time.
    """
    offsets, ids, strength = weights.offsets, weights.ids, weights.strength
    n = queue.size
    head, length, moves = 0, n, 0
    while length > 0:
        v = queue[head]
        head = head + 1 if head + 1 < n else 0
        length -= 1
        waiting[v] = 0
        own = community[v]
        inside[own] -= strength[v]
        best = best_community(v, weights, resolution, community, inside, near, touched)
        inside[best] += strength[v]
        if best != own:
            community[v] = best
            moves += 1
            for e in range(offsets[v], offsets[v + 1]):
                u = ids[e]
                if waiting[u] == 0 and community[u] != best:
                    waiting[u] = 1
                    place = head + length
                    queue[place if place < n else place - n] = u
                    length += 1
    return moves


@njit(cache=True)
def refine_step(order, weights, resolution, community, part, inside, alone, near, touched):
    """Divide each community anew: vertices that are still alone join the part of it, around them, that gains most.

    Invariant  before: part[v] = v, inside = strength, alone = 1; after: a part lies within a community and is
               connected, since a vertex that joins has an edge into it. ``near`` is zero before and after.
    Races      none, serial.
    Work       O(n + m).
    """
    offsets, ids, weight, _, strength, whole = weights
    for i in range(order.size):
        v = order[i]
        if alone[v] == 0:
            continue
        count = 0
        for e in range(offsets[v], offsets[v + 1]):
            u = ids[e]
            if u != v and community[u] == community[v] and weight[e] > 0.0:
                p = part[u]
                if near[p] == 0.0:
                    touched[count] = p
                    count += 1
                near[p] += weight[e]
        share = resolution * strength[v] / whole
        best, most = v, 0.0
        for j in range(count):
            p = touched[j]
            gain = near[p] - share * inside[p]
            if gain > most + GAIN * whole:
                best, most = p, gain
            near[p] = 0.0
        if best != v:
            part[v] = best
            inside[best] += strength[v]
            alone[v], alone[best] = 0, 0  # the vertex ``best`` is in part ``best``, or no vertex could join it


@njit(cache=True)
def number_communities_step(community, number):
    """Number the communities from 0 in the order of their first vertices, in place; returns how many there are.

    Invariant  number is -1 before for every community.   Races  none, serial.   Work  O(n).
    """
    count = 0
    for v in range(community.size):
        c = community[v]
        if number[c] < 0:
            number[c] = count
            count += 1
        community[v] = number[c]
    return count


@njit(cache=True)
def merge_communities_step(weights, community, begin, members, near, touched, to_offsets, to_ids, to_weight, to_loops):
    """Make each community or part a vertex: weights between two are added up, what is inside goes to the diagonal.

    Invariant  members[begin[c] : begin[c + 1]] are c's; to_loops and near are zero before, near after as well.
    Races      none, serial.
    Work       O(n + m).
    """
    offsets, ids, weight, loops, _, _ = weights
    total = 0
    for c in range(begin.size - 1):
        count = 0
        for i in range(begin[c], begin[c + 1]):
            v = members[i]
            to_loops[c] += loops[v]
            for e in range(offsets[v], offsets[v + 1]):
                if ids[e] == v or weight[e] <= 0.0:  # loops are counted already
                    continue
                d = community[ids[e]]
                if d == c:
                    to_loops[c] += weight[e]
                else:
                    if near[d] == 0.0:
                        touched[count] = d
                        count += 1
                    near[d] += weight[e]
        for i in range(count):
            to_ids[total] = touched[i]
            to_weight[total] = near[touched[i]]
            near[touched[i]] = 0.0
            total += 1
        to_offsets[c + 1] = total
