"""Kernels of the build on ranks. Places number all vertices in the user's order, and
perhaps ids that are none (numbering.py); ranks own ranges of them.

Encoding: a set of places is a bit each in uint64 words; ``before[w]`` members come before word w, so that a member's
number among all is found with one population count.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cpu_engine.graph.kernels.partition import part_of_arc

_ONE = np.uint64(1)
_M1, _M2, _M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_H01 = np.uint64(0x0101010101010101)


@njit(cache=True, inline="always")
def owner_of(position, cuts):
    """The range [cuts[r], cuts[r + 1]) that a position is in; empty ranges own nothing."""
    low, high = 0, cuts.shape[0] - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if cuts[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, inline="always")
def count_bits(word):
    """How many bits of a word are set."""
    word -= (word >> _ONE) & _M1
    word = (word & _M2) + ((word >> np.uint64(2)) & _M2)
    word = (word + (word >> np.uint64(4))) & _M4
    return np.int64((word * _H01) >> np.uint64(56))


@njit(cache=True)
def count_edges_by_owner_step(src, dst, first, cuts, mirror, drop_loops, counts):
    """Count the entries that each owner of a row will get; return the number of loops.

    Invariant  counts[r] grows by the entries whose row is in [cuts[r], cuts[r + 1]).
    Races      none, serial.   Work  O(edges).
    """
    loops = 0
    for i in range(src.shape[0]):
        u, v = np.int64(src[i]) - first, np.int64(dst[i]) - first
        if u == v:
            loops += 1
            if drop_loops:
                continue
        counts[owner_of(u, cuts)] += 1
        if mirror and u != v:
            counts[owner_of(v, cuts)] += 1
    return loops


@njit(cache=True)
def deal_edges_step(src, dst, weight, first, cuts, mirror, drop_loops, cursor, rows, columns, dealt_weight):
    """Write each entry (row within its owner's range, column) to its owner's stretch, from ``cursor`` on.

    Invariant  as counted by count_edges_by_owner_step; a stretch is in the order of the edges. Weights of size 0: none.
    Races      none, serial.   Work  O(edges).
    """
    weighted = weight.shape[0] > 0
    for i in range(src.shape[0]):
        u, v = np.int64(src[i]) - first, np.int64(dst[i]) - first
        if drop_loops and u == v:
            continue
        for _ in range(2 if mirror and u != v else 1):
            owner = owner_of(u, cuts)
            at = cursor[owner]
            cursor[owner] = at + 1
            rows[at] = u - cuts[owner]
            columns[at] = v
            if weighted:
                dealt_weight[at] = weight[i]
            u, v = v, u


@njit(cache=True)
def count_arcs_by_part_step(first, last, begin, size, columns, position, cuts, terms, high, counts):
    """Count the arcs of the rows [first, last) that each part gets.

    Invariant  row i is that of ``position + i``; ``terms``: by owner, what source and target contribute to the part of
               an arc; a target whose bit is in ``high`` (of size 0: none) contributes nothing.
    Races      none, serial.   Work  O(arcs).
    """
    source_term, target_term = terms
    for i in range(first, last):
        mine = source_term[owner_of(position + i, cuts)]
        for e in range(begin[i], begin[i] + size[i]):
            counts[_part(mine, columns[e], cuts, target_term, high)] += 1


@njit(cache=True, inline="always")
def _part(mine, column, cuts, target_term, high):
    v = np.int64(column)
    if high.shape[0] > 0 and high[v >> 6] >> np.uint64(v & 63) & _ONE:
        return part_of_arc(mine, 0)
    return part_of_arc(mine, target_term[owner_of(v, cuts)])


@njit(cache=True)
def deal_arcs_step(
    first, last, begin, size, columns, weight, position, cuts, terms, high, cursor, sources, targets, dealt_weight
):
    """Write the arcs of the rows [first, last) to their parts' stretches, as positions.

    Invariant  as counted by count_arcs_by_part_step.   Races  none, serial.   Work  O(arcs).
    """
    source_term, target_term = terms
    for i in range(first, last):
        mine = source_term[owner_of(position + i, cuts)]
        for e in range(begin[i], begin[i] + size[i]):
            part = _part(mine, columns[e], cuts, target_term, high)
            at = cursor[part]
            cursor[part] = at + 1
            sources[at] = position + i
            targets[at] = columns[e]
            if weight.shape[0] > 0:
                dealt_weight[at] = weight[e]


@njit(cache=True)
def count_ranges_step(begin, size, columns, cuts, counts):
    """Count the entries of all rows by the range that their column is in.   Races  none, serial.   Work  O(entries)."""
    for i in range(begin.shape[0]):
        for e in range(begin[i], begin[i] + size[i]):
            counts[owner_of(np.int64(columns[e]), cuts)] += 1


@njit(cache=True)
def deal_columns_step(begin, size, columns, cuts, cursor, dealt):
    """Write each column, from its range's beginning on, to its range's stretch.   Races  none.   Work  O(entries)."""
    for i in range(begin.shape[0]):
        for e in range(begin[i], begin[i] + size[i]):
            owner = owner_of(np.int64(columns[e]), cuts)
            dealt[cursor[owner]] = columns[e] - cuts[owner]
            cursor[owner] += 1


@njit(cache=True)
def count_loops_step(begin, size, columns, first):
    """Count the entries whose column is their row; row i is that of ``first + i``.   Races  none.   Work  O(entries).

    Invariant  columns are places.
    """
    loops = 0
    for i in range(begin.shape[0]):
        for e in range(begin[i], begin[i] + size[i]):
            loops += np.int64(columns[e]) == first + i
    return loops


@njit(cache=True)
def mark_outside_step(positions, first, last, words):
    """Add the positions outside [first, last) to a set.   Races  none, serial.   Work  O(positions), random access."""
    for p in positions:
        v = np.int64(p)
        if v < first or v >= last:
            words[v >> 6] |= _ONE << np.uint64(v & 63)


@njit(cache=True)
def count_before_step(words, before):
    """Count the members before each word; return how many there are.   Races  none, serial.   Work  O(words)."""
    total = 0
    for w in range(words.shape[0]):
        before[w] = total
        total += count_bits(words[w])
    return total


@njit(cache=True)
def list_members_step(words, members):
    """List a set's members, ascending.   Races  none, serial.   Work  O(words + members)."""
    count = 0
    for w in range(words.shape[0]):
        word = words[w]
        while word:
            lowest = word & (~word + _ONE)
            members[count] = (w << 6) + count_bits(lowest - _ONE)
            count += 1
            word ^= lowest


@njit(cache=True)
def localise_step(positions, first, own_local, words, before, mirror_local, local):
    """The local id of each position: ``own_local`` by place in the own range, ``mirror_local`` by place in the set.

    Invariant  every place is in the own range or in the set; ``local`` may be ``positions`` itself.
    Races      none, serial.   Work  O(positions), at random.
    """
    last = first + own_local.shape[0]
    for i in range(positions.shape[0]):
        v = np.int64(positions[i])
        if first <= v < last:
            local[i] = own_local[v - first]
        else:
            below = words[v >> 6] & ((_ONE << np.uint64(v & 63)) - _ONE)
            local[i] = mirror_local[before[v >> 6] + count_bits(below)]


@njit(cache=True)
def append_rows_step(keys, values, weight, cursor, columns, row_weight):
    """Append each value to its key's row, which is filled from ``cursor`` on. Weights of size 0: none.

    Invariant  a row is in the order of the pairs.   Races  none, serial.   Work  O(pairs), random access.
    """
    for i in range(keys.shape[0]):
        at = cursor[keys[i]]
        cursor[keys[i]] = at + 1
        columns[at] = values[i]
        if weight.shape[0] > 0:
            row_weight[at] = weight[i]


@njit(cache=True)
def transpose_in_order_step(order, offsets, columns, weight, cursor, transposed, transposed_weight):
    """Transpose rows, visited in this order: so each transposed row is in this order.

    Invariant  ``cursor`` is where each transposed row begins.   Races  none, serial.   Work  O(entries), random access.
    """
    for v in order:
        for e in range(offsets[v], offsets[v + 1]):
            u = columns[e]
            at = cursor[u]
            cursor[u] = at + 1
            transposed[at] = v
            if weight.shape[0] > 0:
                transposed_weight[at] = weight[e]
