"""The proof of core numbers: enough neighbours as high as oneself, and an order of peeling. Serial, on any rows."""

from __future__ import annotations

from numba import njit

TOO_HIGH, TOO_LOW = range(2)  # findings


@njit(cache=True)
def list_neighbours(v, out_offsets, out_targets, in_offsets, in_sources, listed):
    """List the distinct neighbours of v in either direction, ascending, without v; return how many.

    Rows are ascending, so this is a merge.
    """
    a, a_end, b, b_end = out_offsets[v], out_offsets[v + 1], in_offsets[v], in_offsets[v + 1]
    count = 0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and out_targets[a] <= in_sources[b]):
            w = out_targets[a]
            a += 1
        else:
            w = in_sources[b]
            b += 1
        if w != v and (count == 0 or listed[count - 1] != w):
            listed[count] = w
            count += 1
    return count


@njit(cache=True)
def check_witnesses_step(out_offsets, out_targets, in_offsets, in_sources, core, listed, left, findings, example):
    """Look for a vertex with fewer neighbours of at least its own number than that number; left[v] = its neighbours.

    Invariant  no finding => no number is too high: those of at least k have k neighbours among themselves.
    Races      none, serial.   Work  every arc twice.
    """
    for v in range(core.size):
        count = list_neighbours(v, out_offsets, out_targets, in_offsets, in_sources, listed)
        left[v] = count
        witnesses = 0
        for i in range(count):
            witnesses += core[listed[i]] >= core[v]
        if witnesses < core[v]:
            findings[TOO_HIGH] += 1
            example[TOO_HIGH] = v


@njit(cache=True)
def check_peeling_step(
    out_offsets, out_targets, in_offsets, in_sources, core, rising, left, gone, queue, listed, findings, example
):
    """Take vertices away by rising number, each once it has no more neighbours left than its number says.

    Invariant  ``rising`` holds all vertices by rising core number; ``gone`` arrives as zeros, left[v] = neighbours.
               No finding => no number is too low: whoever goes at k is in no subgraph in which all have k + 1.
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
                queue[tail] = v
                tail += 1
        head = 0
        while head < tail:
            v = queue[head]
            head += 1
            for i in range(list_neighbours(v, out_offsets, out_targets, in_offsets, in_sources, listed)):
                w = listed[i]
                left[w] -= 1
                if core[w] == level and gone[w] == 0 and left[w] <= level:
                    gone[w] = 1
                    queue[tail] = w
                    tail += 1
        for i in range(first, last):
            if gone[rising[i]] == 0:
                findings[TOO_LOW] += 1
                example[TOO_LOW] = rising[i]
        first = last
