"""Cutting a graph into parts: arcs dealt to parts, ends numbered locally, rows both ways.

Encodings: ``source_term`` and ``target_term`` are a policy (graph/partition/policies.py). ``pairs`` is int32[arcs, 2]
of internal ids (source, target), ascending by source, then target. All serial: over ranks, each does its own share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def part_of_arc(from_source, from_target):
    """The part of an arc whose ends contribute these two terms."""
    return from_source + from_target if from_target >= 0 else ~from_target


@njit(cache=True)
def count_slice_step(first, last, offsets, targets, source_term, target_term, counts):
    """Add to counts[p] the arcs of rows [first, last) that go to part p.

    Invariant  the sum of ``counts`` grows by offsets[last] - offsets[first].
    Races      none, serial.
    Work       O(arcs of the rows), random access to target_term.
    """
    for u in range(first, last):
        mine = source_term[u]
        for e in range(offsets[u], offsets[u + 1]):
            counts[part_of_arc(mine, target_term[targets[e]])] += 1


@njit(cache=True)
def deal_slice_step(first, last, offsets, targets, source_term, target_term, cursor, pairs):
    """Write the arcs of rows [first, last), part by part.

    Invariant  cursor[p] is where the next arc of part p goes; within a part, arcs stay in their order.
    Races      none, serial.
    Work       O(arcs of the rows), one stream of writes per part.
    """
    for u in range(first, last):
        mine = source_term[u]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            p = part_of_arc(mine, target_term[v])
            at = cursor[p]
            cursor[p] = at + 1
            pairs[at, 0] = u
            pairs[at, 1] = v


@njit(cache=True)
def deal_weights_step(first, last, offsets, targets, weight, source_term, target_term, cursor, dealt):
    """Write the weights of the arcs of rows [first, last), part by part, in the order of deal_slice_step.

    Invariant  cursor[p] is where the next weight of part p goes.
    Races      none, serial.
    Work       O(arcs of the rows), one stream of writes per part.
    """
    for u in range(first, last):
        mine = source_term[u]
        for e in range(offsets[u], offsets[u + 1]):
            p = part_of_arc(mine, target_term[targets[e]])
            at = cursor[p]
            cursor[p] = at + 1
            dealt[at] = weight[e]


@njit(cache=True)
def merge_rows_step(first, last, out_rows, in_rows, offsets, targets):
    """Write the out-row and the in-row of each vertex of [first, last) as one ascending row, repetitions kept.

    Invariant  offsets[u + 1] - offsets[u] is the length of both rows of u together.
    Races      none, serial.
    Work       O(entries of the rows).
    """
    out_offsets, out_targets = out_rows
    in_offsets, in_sources = in_rows
    for u in range(first, last):
        i, out_end = out_offsets[u], out_offsets[u + 1]
        j, in_end = in_offsets[u], in_offsets[u + 1]
        for at in range(offsets[u], offsets[u + 1]):
            if j == in_end or (i < out_end and out_targets[i] <= in_sources[j]):
                targets[at] = out_targets[i]
                i += 1
            else:
                targets[at] = in_sources[j]
                j += 1


@njit(cache=True)
def count_ends_step(pairs, out_count, in_count):
    """Add each arc to the counts of its two ends.

    Invariant  counts are by internal id.   Races  none, serial.   Work  O(arcs), random access to in_count.
    """
    for e in range(pairs.shape[0]):
        out_count[pairs[e, 0]] += 1
        in_count[pairs[e, 1]] += 1


@njit(cache=True)
def count_mirrors_step(owner_of, part, out_count, in_count, counts):
    """Count the masters of ``part`` in counts[part] and, for any other part q, its vertices with arcs here.

    Invariant  ``counts`` arrives as zeros.   Races  none, serial.   Work  O(vertices).
    """
    for v in range(owner_of.shape[0]):
        owner = owner_of[v]
        if owner == part or out_count[v] + in_count[v] > 0:
            counts[owner] += 1


@njit(cache=True)
def number_locals_step(owner_of, part, out_count, in_count, cursor, internal_of, local_of):
    """Give local ids to masters and mirrors, in ascending order of internal id within each owner.

    Invariant  cursor[q] is the next local id for a vertex of q; internal_of[local_of[v]] == v for those numbered,
               local_of of the others is left alone.
    Races      none, serial.
    Work       O(vertices).
    """
    for v in range(owner_of.shape[0]):
        owner = owner_of[v]
        if owner == part or out_count[v] + in_count[v] > 0:
            at = cursor[owner]
            cursor[owner] = at + 1
            internal_of[at] = v
            local_of[v] = at


@njit(cache=True)
def fill_rows_step(pairs, local_of, out_cursor, in_cursor, out_targets, in_sources):
    """Write each arc into its source's out-row and its target's in-row, under local ids.

    Invariant  out_cursor[l] and in_cursor[l] are where the next entry of local vertex l goes; rows come out sorted by
               the neighbour's internal id because arcs come in ascending order, over all calls.
    Races      none, serial.
    Work       O(arcs), random access to local_of and in_sources.
    """
    for e in range(pairs.shape[0]):
        u, v = local_of[pairs[e, 0]], local_of[pairs[e, 1]]
        at = out_cursor[u]
        out_cursor[u] = at + 1
        out_targets[at] = v
        at = in_cursor[v]
        in_cursor[v] = at + 1
        in_sources[at] = u


@njit(cache=True)
def fill_weights_step(pairs, weight, local_of, out_cursor, out_weight):
    """Write each arc's weight where fill_rows_step writes its target.

    Invariant  out_cursor[l] is where the next weight of local vertex l goes.
    Races      none, serial.
    Work       O(arcs).
    """
    for e in range(pairs.shape[0]):
        u = local_of[pairs[e, 0]]
        at = out_cursor[u]
        out_cursor[u] = at + 1
        out_weight[at] = weight[e]


class Copies(NamedTuple):
    """What parts hold: arcs[p] and mirrors[p] of part p; of p's mirrors of q's vertices those that have out-arcs
    (read[p, q]), and those that have in-arcs (written[p, q]).
    """

    arcs: np.ndarray
    mirrors: np.ndarray
    read: np.ndarray
    written: np.ndarray


@njit(cache=True)
def survey_copies_step(out_rows, in_rows, owner_of, source_term, target_term, copies, stamp, touched):
    """Count, without building them, the arcs and mirrors of every part.

    ``out_rows`` and ``in_rows`` are (offsets, neighbours).

    Invariant  all of ``copies`` arrive as zeros, ``stamp`` (int64[parts]) as -1 all over. While vertex v is looked at,
               stamp[p] >> 2 == v iff p holds a copy of it, with bits 0 and 1 for out-arcs and in-arcs there.
    Races      none, serial.
    Work       O(arcs + copies), random access to the terms and to one row of ``read`` and ``written`` per copy.
    """
    out_offsets, out_targets = out_rows
    in_offsets, in_sources = in_rows
    arcs, mirrors, read, written = copies
    for v in range(owner_of.shape[0]):
        owner, count = np.int64(owner_of[v]), 0
        mine = source_term[v]
        for e in range(out_offsets[v], out_offsets[v + 1]):
            p = part_of_arc(mine, target_term[out_targets[e]])
            arcs[p] += 1
            if stamp[p] >> 2 != v:
                stamp[p] = v << 2 | 1
                touched[count] = p
                count += 1
        mine = target_term[v]
        for e in range(in_offsets[v], in_offsets[v + 1]):
            p = part_of_arc(source_term[in_sources[e]], mine)
            if stamp[p] >> 2 != v:
                stamp[p] = v << 2
                touched[count] = p
                count += 1
            stamp[p] |= 2
        for i in range(count):
            p = touched[i]
            if p != owner:
                mirrors[p] += 1
                read[p, owner] += stamp[p] & 1
                written[p, owner] += stamp[p] >> 1 & 1
