"""The proof of levels alone, of many roots at once: a table with a row per vertex and a column per root.

It shares no code with the engines and knows nothing of their words and planes: it reads numbers, and looks for a
contradiction. All that it needs of a vertex's in-neighbours is the smallest level among them, so that an edge costs one
vector minimum, whatever the number of roots.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy import uint64

UNSUPPORTED, OVERLONG, FALSE_ROOT = range(3)  # rows of the findings
_WIDTH = 64
_BLOCK = 64  # vertices per turn: low ids are hubs, so blocks go round robin


@njit(cache=True)
def smallest_rows(begin, end, sources, level, stride, column, low):
    """low[s] = the smallest of column s in the rows of sources[begin:end]; all bits set where there is none.

    The loop over 64 columns is written out with that number: only then is it a single instruction.
    """
    low[:] = ~low.dtype.type(0)
    for e in range(begin, end):
        at = uint64(sources[uint64(e)]) * uint64(stride) + uint64(column)
        if low.size == _WIDTH:
            for s in range(_WIDTH):
                near = level[at + uint64(s)]
                low[uint64(s)] = near if near < low[uint64(s)] else low[uint64(s)]
        else:
            for s in range(low.size):
                near = level[at + uint64(s)]
                low[uint64(s)] = near if near < low[uint64(s)] else low[uint64(s)]


@njit(cache=True)
def looks_right(level, at, low):
    """Whether each column is one above the smallest of the in-neighbours, or both are none. A root never looks right.

    Nearly every row does, so that few have to be looked at number by number.
    """
    zero, one = low.dtype.type(0), low.dtype.type(1)
    none = ~zero
    wrong = False
    for s in range(low.size):
        here = level[at + uint64(s)]
        unreached = (here == none) & (low[uint64(s)] == none)
        wrong |= (here == zero) | ((low.dtype.type(max(here, one) - one) != low[uint64(s)]) & (not unreached))
    return not wrong


@njit(cache=True)
def judge_row(v, here, low, roots, findings, example):
    """Hold a vertex's levels against the smallest ones of its in-neighbours; count what cannot be."""
    for s in range(here.size):
        kind = -1
        if (here[s] == 0) != (roots[s] == v):
            kind = FALSE_ROOT
        elif here[s] != 0:
            nearer = np.int64(here[s]) - 1
            if low[s] < nearer:
                kind = OVERLONG
            elif low[s] > nearer and here[s] != ~low.dtype.type(0):
                kind = UNSUPPORTED
        if kind >= 0:
            findings[s, kind] += 1
            example[s, kind] = v


@njit(cache=True)
def check_levels_share_step(t, threads, offsets, sources, level, stride, column, roots, findings, example):
    """Thread t's part of check_levels_step, every threads-th block.

    Invariant, races, work: see check_levels_step.
    """
    n, width = offsets.size - 1, roots.size
    low = np.empty(width, level.dtype)
    for first in range(t * _BLOCK, n, threads * _BLOCK):
        for v in range(first, min(first + _BLOCK, n)):
            smallest_rows(offsets[v], offsets[v + 1], sources, level, stride, column, low)
            at = v * stride + column
            if not looks_right(level, uint64(at), low):
                judge_row(v, level[at : at + width], low, roots, findings, example)


@njit(cache=True, parallel=True)
def check_levels_step(offsets, sources, level, stride, column, roots, findings, example):
    """Look for anything that contradicts "column s is the BFS distance from roots[s]".

    Invariant  no finding => every column is exact: only the root has 0, each reached vertex has an in-neighbour one
               level nearer (so its value is the length of a real path, by going on from there to the root), and no
               edge leads from a reached vertex more than one level further (so no value can be shortened).
    Races      thread t owns findings[t] and example[t]; all else is only read.
    Work       every edge once, a row of both ends each.

    ``level`` is flat and unsigned, all bits set where a vertex is not reached; the columns of ``roots`` begin at
    ``column``. ``findings[t, s, kind]`` counts; ``example[t, s, kind]`` is one offending vertex, or -1.
    """
    for t in prange(findings.shape[0]):
        check_levels_share_step(
            t, findings.shape[0], offsets, sources, level, stride, column, roots, findings[t], example[t]
        )
