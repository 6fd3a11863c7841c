"""Whether mapped arrays are a graph: what other kernels take for granted, looked at once, row by row.

Every kernel reports the first offending place of each lane, or NOWHERE.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

NOWHERE = np.iinfo(np.int64).max


class VertexArrays(NamedTuple):
    """A graph's arrays that have an entry per vertex, and what they must agree with."""

    out_offsets: np.ndarray
    in_offsets: np.ndarray
    in_sources: np.ndarray
    best_in: np.ndarray
    user_position: np.ndarray
    internal_of_position: np.ndarray


@njit(cache=True, parallel=True)
def find_unsorted_step(values, strictly, first):
    """first[lane] = the first index in the lane's share whose value is below (``strictly``: not above) the one before.

    Invariant  values are only read.   Races  lane t alone writes first[t].   Work  one look per value.
    """
    lanes, size = first.size, values.size
    for lane in prange(lanes):
        first[lane] = NOWHERE
        for i in range(max(size * lane // lanes, 1), size * (lane + 1) // lanes):
            if values[i] < values[i - 1] or (strictly and values[i] == values[i - 1]):
                first[lane] = i
                break


@njit(cache=True)
def draw(value, key):
    """A number that looks random and depends on a value and a secret key."""
    word = (np.uint64(value) + key) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return word ^ (word >> np.uint64(29))


@njit(cache=True, parallel=True)
def check_rows_step(offsets, targets, weight_bits, n, keys, cuts, first, forth, back):
    """Look at every entry of every row: in range, rows ascending; first[lane] = the first row in which one is not.

    forth[lane] sums f(u) g(v) h(w) over the arcs u -> v of weight w in the lane's rows, back[lane] g(u) f(v) h(w); f, g
    and h are drawn from the keys. So ``forth`` of some arcs equals ``back`` of these arcs turned round. Of other arcs
    it does with a probability of about 2^-58 (Freivalds' test), as long as the keys are secret.

    Invariant  offsets are ascending, begin with 0 and end with targets.size; cuts split the rows.
    Races      a row is one lane's.   Work  one look per entry.
    """
    lanes = first.size
    for lane in prange(lanes):
        ahead, behind, bad = np.uint64(0), np.uint64(0), NOWHERE
        for u in range(cuts[lane], cuts[lane + 1]):
            begin, end = offsets[u], offsets[u + 1]
            if begin == end:
                continue
            falls, row_ahead, row_behind = np.int64(0), np.uint64(0), np.uint64(0)
            for e in range(begin, end):
                v = targets[e]
                falls += v < targets[max(e - 1, begin)]
                if weight_bits is None:
                    row_ahead += draw(v, keys[1])
                    row_behind += draw(v, keys[0])
                else:
                    scale = draw(weight_bits[e], keys[2]) | np.uint64(1)
                    row_ahead += draw(v, keys[1]) * scale
                    row_behind += draw(v, keys[0]) * scale
            if falls > 0 or targets[begin] < 0 or targets[end - 1] >= n:
                bad = min(bad, u)
            ahead += draw(u, keys[0]) * row_ahead
            behind += draw(u, keys[1]) * row_behind
        first[lane], forth[lane], back[lane] = bad, ahead, behind


@njit(cache=True, parallel=True)
def check_vertices_step(n, arrays, directed, hanging_start, by_degree, by_neighbour, by_position, named):
    """Per vertex: degrees descend, the best in-neighbour is the row's first, and the id maps are inverse.

    by_degree, by_neighbour, by_position [lane] = the first vertex that breaks the rule; named[lane] counts the
    positions of internal_of_position that have a vertex.

    Invariant  offsets and rows are sound.   Races  lane t writes its own entries.   Work  a look per vertex, position.
    """
    out_offsets, in_offsets, in_sources, best_in, user_position, internal_of_position = arrays
    lanes, positions = named.size, internal_of_position.size
    for lane in prange(lanes):
        by_degree[lane] = by_neighbour[lane] = by_position[lane] = NOWHERE
        for v in range(n * lane // lanes, n * (lane + 1) // lanes):
            degree = out_offsets[v + 1] - out_offsets[v]
            if directed:
                degree += in_offsets[v + 1] - in_offsets[v]
            if v > 0:
                before = out_offsets[v] - out_offsets[v - 1]
                if directed:
                    before += in_offsets[v] - in_offsets[v - 1]
                if degree > before:
                    by_degree[lane] = min(by_degree[lane], v)
            if degree < 1 or (degree > 1) != (v < hanging_start):
                by_degree[lane] = min(by_degree[lane], v)
            best = v if in_offsets[v] == in_offsets[v + 1] else np.int64(in_sources[in_offsets[v]])
            if best_in[v] != best:
                by_neighbour[lane] = min(by_neighbour[lane], v)
            position = np.int64(user_position[v])
            if not 0 <= position < positions or internal_of_position[position] != v:
                by_position[lane] = min(by_position[lane], v)
        count = 0
        for at in range(positions * lane // lanes, positions * (lane + 1) // lanes):
            count += internal_of_position[at] != -1
        named[lane] = count
