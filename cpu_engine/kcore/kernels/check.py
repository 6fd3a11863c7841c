"""The proof of core numbers: enough neighbours as high as oneself, and an order of peeling. Serial, on any rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from cpu_engine.intrinsics.lists import append

TOO_HIGH, TOO_LOW = range(2)  # findings


class BothRows(NamedTuple):
    """The graph's rows in both directions, each ascending."""

    out_offsets: np.ndarray
    out_targets: np.ndarray
    in_offsets: np.ndarray
    in_sources: np.ndarray


@njit(cache=True)
def merge_neighbours(v, rows, row):
    """Write the distinct neighbours of v in either direction, ascending, without v, to ``row``; return how many."""
    out_offsets, out_targets, in_offsets, in_sources = rows
    a, a_end, b, b_end = out_offsets[v], out_offsets[v + 1], in_offsets[v], in_offsets[v + 1]
    count = 0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and out_targets[a] <= in_sources[b]):
            w = out_targets[a]
            a += 1
        else:
            w = in_sources[b]
            b += 1
        if w != v and (count == 0 or row[count - 1] != w):
            count = append(row, count, w)
    return count


@njit(cache=True)
def check_witnesses_step(rows, core, row, left, findings, example):
    """Look for a vertex with fewer neighbours of at least its own number than that number; left[v] = its neighbours.

    Invariant  no finding => no number is too high: those of at least k have k neighbours among themselves.
    Races      none, serial.   Work  every arc twice.
    """
    for v in range(core.size):
        count = merge_neighbours(v, rows, row)
        left[v] = count
        witnesses = 0
        for i in range(count):
            witnesses += core[row[i]] >= core[v]
        if witnesses < core[v]:
            findings[TOO_HIGH] += 1
            example[TOO_HIGH] = v


@njit(cache=True)
def check_peeling_step(rows, core, rising, left, gone, queue, row, findings, example):
    """Take vertices away by rising number, each once it has no more neighbours left than its number says.

    Invariant  ``rising`` holds all vertices by rising core number; ``gone`` arrives as zeros, left[v] = neighbours.
               No finding => no number is too low: a vertex that goes at k is in no subgraph in which all have k + 1.
    Races      none, serial.   Work  every arc twice.
    """
    first, n = 0, core.size
    while first < n:
        level, last, tail = core[rising[first]], first, 0
        while last < n and core[rising[last]] == level:
            v = rising[last]
            last += 1
            if left[v] <= level:
                gone[v] = 1
                tail = append(queue, tail, v)
        head = 0
        while head < tail:
            v = queue[head]
            head += 1
            for i in range(merge_neighbours(v, rows, row)):
                w = row[i]
                left[w] -= 1
                if core[w] == level and gone[w] == 0 and left[w] <= level:
                    gone[w] = 1
                    tail = append(queue, tail, w)
        for i in range(first, last):
            if gone[rising[i]] == 0:
                findings[TOO_LOW] += 1
                example[TOO_LOW] = rising[i]
        first = last
