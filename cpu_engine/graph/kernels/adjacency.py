"""From NetworkX's dict of dicts to rows of numbers, without making a Python object or counting a reference.

Addresses are int64. The *mark* of a key is what tells it from all others: the value of an int, or the hash of a number,
a text or a tuple of them where all nodes' hashes differ. ``kinds`` are the types int, float, str and tuple. A key of
another type, or one that is no node, makes ``strange`` nonzero: what was read is then to be thrown away.

No thread may change what is read. Serial kernels hold the interpreter's lock; those with threads let go of it, and
between two kernels any thread may take it: they are for a process with one Python thread. ``read_at_once_step`` is for
all others.

Encoding of the table of marks: open addressing, linear probing, at most half full; ``slot_number[h] == -1`` is empty.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.interpreter import (
    hash_of,
    member_of_tuple,
    next_of_dict,
    prefetch_object,
    size_of_dict,
    size_of_tuple,
    type_of,
    whole_number,
)
from cpu_engine.intrinsics.prefetch import prefetch

ABOVE, BELOW, SUM_ABOVE, SUM_BELOW, FACTS = 0, 1, 2, 3, 8  # of survey_halves_step; a cache line per part
_INT, _REAL, _TEXT, _TUPLE = 0, 1, 2, 3  # of kinds
_AHEAD = 12  # rows whose headers are asked for before their turn
_WAITING = 64  # keys that are asked for together, before the first of them is looked at
_GOLDEN, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # Knuth; splitmix64
_HALF, _SHIFT = np.uint64(32), np.uint64(29)


@njit(cache=True)
def list_rows_step(adjacency, node, row):
    """Write the addresses of a dict's keys and values.

    Invariant  ``node`` and ``row`` are as long as the dict.   Races  none, serial.   Work  O(rows).
    """
    position = np.int64(0)
    for r in range(row.shape[0]):
        _, position, node[r], row[r] = next_of_dict(adjacency, position)


@njit(cache=True, parallel=True)
def measure_rows_step(row, dict_type, size, strange):
    """Write how many neighbours each row has; ``strange[0]`` = 1 if one is no dict.

    Races      iteration r writes only size[r]; all write the same to strange[0].
    Work       O(rows), a cache miss for each unless it was asked for in time.
    """
    last = row.shape[0] - 1
    for r in prange(row.shape[0]):
        prefetch_object(row[min(r + _AHEAD, last)])
        if type_of(row[r]) == dict_type:
            size[r] = size_of_dict(row[r])
        else:
            strange[0] = 1


@njit(cache=True)
def read_marks_step(key, kinds, hashed, mark):
    """Write the marks of keys; return whether all are of the right types, and no int's value is beyond 64 bits.

    Invariant  ``mark`` is as long as ``key``, or longer.   Races  none; each caller has its own.   Work  O(keys).
    """
    last = key.shape[0] - 1
    for e in range(key.shape[0]):
        prefetch_object(key[min(e + _AHEAD, last)])
        if hashed:
            if not _has_plain_hash(key[e], kinds):
                return False
            mark[e] = hash_of(key[e])
        else:
            if type_of(key[e]) != kinds[_INT]:
                return False
            mark[e], beyond = whole_number(key[e])
            if beyond != 0:
                return False
    return True


@njit(cache=True)
def _has_plain_hash(key, kinds):
    kind = type_of(key)
    if kind != kinds[_TUPLE]:
        return kind == kinds[_TEXT] or kind == kinds[_INT] or kind == kinds[_REAL]
    for i in range(size_of_tuple(key)):
        kind = type_of(member_of_tuple(key, i))
        if kind != kinds[_INT] and kind != kinds[_TEXT] and kind != kinds[_REAL]:
            return False
    return True


@njit(cache=True)
def enter_marks_step(mark, slot_mark, slot_number):
    """Fill the table of marks with their places in ``mark``; return False if two are the same.

    Invariant  ``slot_number`` arrives as -1s; its size is a power of two.   Races  none, serial.   Work  O(marks).
    """
    mask = slot_number.shape[0] - 1
    for i in range(mark.shape[0]):
        h = _home(mark[i], mask)
        while slot_number[h] >= 0:
            if slot_mark[h] == mark[i]:
                return False
            h = (h + 1) & mask
        slot_mark[h], slot_number[h] = mark[i], i
    return True


@njit(cache=True)
def find_mark_step(mark, slot_mark, slot_number):
    """The number of a mark, -1 if it is not in the table.   Races  none, reads only.   Work  O(1) expected."""
    mask = slot_number.shape[0] - 1
    h = _home(mark, mask)
    while slot_number[h] >= 0 and slot_mark[h] != mark:
        h = (h + 1) & mask
    return slot_number[h]


@njit(cache=True, inline="always")
def _home(mark, mask):
    mixed = np.uint64(mark) * _GOLDEN
    return np.int64(mixed >> _HALF) & mask


@njit(cache=True, parallel=True)
def read_rows_step(row, offsets, part_rows, kinds, slot_mark, slot_number, target, strange):
    """Write the neighbours of all rows in turn: their numbers by the table, or where there is none their marks.

    Invariant  row r goes to target[offsets[r] : offsets[r + 1]]; with a table marks are hashes, without (of size 0)
               ints below 2**31. strange[p] = 1 if that did not hold in part p.
    Races      part p writes target[offsets[part_rows[p]] : offsets[part_rows[p + 1]]] and strange[p].
    Work       O(arcs); 64 keys are asked for at once, and then their slots, as each may lie anywhere.
    """
    for p in prange(part_rows.shape[0] - 1):
        if not _read_part(row, offsets, part_rows[p], part_rows[p + 1], kinds, slot_mark, slot_number, target):
            strange[p] = 1


@njit(cache=True)
def _read_part(row, offsets, first, stop, kinds, slot_mark, slot_number, target):
    key, mark = np.empty(_WAITING, np.int64), np.empty(_WAITING, np.int64)
    held, done, last, fine = 0, offsets[first], stop - 1, True
    for r in range(first, stop):
        prefetch_object(row[min(r + _AHEAD, last)])
        position = np.int64(0)
        for _ in range(offsets[r + 1] - offsets[r]):
            _, position, key[held], _ = next_of_dict(row[r], position)
            prefetch_object(key[held])
            held += 1
            if held == _WAITING:
                fine = _translate(key, mark, kinds, slot_mark, slot_number, target[done : done + held]) and fine
                done, held = done + held, 0
    last_ones = target[done : done + held]
    return _translate(key[:held], mark, kinds, slot_mark, slot_number, last_ones) and fine


@njit(cache=True)
def read_at_once_step(adjacency, node, dict_type, kinds, whole, mark, offsets, slot_mark, slot_number):
    """All of the above in one piece; return (whether it could be read, the targets).

    Invariant  ``node`` lists the addresses of nodes that the caller keeps alive; False if the dict has others by now.
               With ``whole`` marks are ints below 2**31 and the table is of size 0, else hashes.
    Races      none, serial: the interpreter's lock is held from the first look to the last.   Work  O(rows + arcs).
    """
    none, rows = np.empty(0, np.int32), node.shape[0]
    if size_of_dict(adjacency) != rows:
        return False, none
    found, row = np.empty(rows, np.int64), np.empty(rows, np.int64)
    list_rows_step(adjacency, found, row)
    for r in range(rows):
        if found[r] != node[r] or type_of(row[r]) != dict_type:
            return False, none
        offsets[r + 1] = offsets[r] + size_of_dict(row[r])
    if not read_marks_step(node, kinds, not whole, mark):
        return False, none
    if not whole and not enter_marks_step(mark, slot_mark, slot_number):
        return False, none
    target = np.empty(offsets[rows], np.int32)
    return _read_part(row, offsets, 0, rows, kinds, slot_mark, slot_number, target), target


@njit(cache=True)
def _translate(key, mark, kinds, slot_mark, slot_number, number):
    mask = slot_number.shape[0] - 1
    if not read_marks_step(key, kinds, mask >= 0, mark):
        return False
    if mask < 0:
        for e in range(key.shape[0]):
            number[e] = mark[e]
            if mark[e] != number[e]:
                return False
        return True
    for e in range(key.shape[0]):
        h = _home(mark[e], mask)
        prefetch(slot_mark, h)
        prefetch(slot_number, h)
    for e in range(key.shape[0]):
        number[e] = find_mark_step(mark[e], slot_mark, slot_number)
        if number[e] < 0:
            return False
    return True


@njit(cache=True, inline="always")
def _fingerprint(smaller, larger):
    mixed = np.uint64(smaller) * _GOLDEN + np.uint64(larger)
    mixed = (mixed ^ (mixed >> _HALF)) * _MIX
    return np.int64(mixed ^ (mixed >> _SHIFT))


@njit(cache=True, parallel=True)
def survey_halves_step(offsets, target, own, part_rows, facts):
    """Count the arcs to greater ids and to smaller ones, and add up a number that tells each such edge.

    Invariant  own[r] is the id of row r. If every edge is in the rows of both its ends, the sums over all parts agree.
    Races      part p writes facts[p] only, a cache line.   Work  O(arcs), in order.
    """
    for p in prange(part_rows.shape[0] - 1):
        above, below, sum_above, sum_below = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for r in range(part_rows[p], part_rows[p + 1]):
            for e in range(offsets[r], offsets[r + 1]):
                if target[e] > own[r]:
                    above += 1
                    sum_above += _fingerprint(own[r], target[e])
                elif target[e] < own[r]:
                    below += 1
                    sum_below += _fingerprint(target[e], own[r])
        facts[p, ABOVE], facts[p, BELOW], facts[p, SUM_ABOVE], facts[p, SUM_BELOW] = above, below, sum_above, sum_below


@njit(cache=True, parallel=True)
def keep_half_step(offsets, target, own, part_rows, part_begin, source, kept):
    """Write each edge once, as the row of its smaller end has it, and loops.

    Invariant  part_begin[p] arcs to ids that are not smaller are in the parts before p.
    Races      part p writes source and kept in part_begin[p] : part_begin[p + 1] only.   Work  O(arcs), in order.
    """
    for p in prange(part_rows.shape[0] - 1):
        at, end = part_begin[p], part_begin[p + 1]
        for r in range(part_rows[p], part_rows[p + 1]):
            for e in range(offsets[r], offsets[r + 1]):
                if at < end:  # the last ones of a part may all be of the other half
                    source[at], kept[at] = own[r], target[e]
                at += target[e] >= own[r]  # no branch: either half comes at random
