"""Arcs among the neighbours of chosen vertices, counted the slow way; shares no code with what it checks."""

from __future__ import annotations

from numba import njit

from cpu_engine.intrinsics.bisect import first_not_below


@njit(cache=True)
def recount_step(vertices, out_offsets, out_targets, in_offsets, in_sources, stamp, met, degree, arcs, pairs):
    """Of each listed vertex: its distinct neighbours, the arcs among them, and the pairs of them that are joined.

    Invariant  on entry no stamp is in 0..vertices.size - 1 and no ``met`` is negative but -1; both are scratch.
    Races      none, serial.
    Work       the rows, both directions, of all neighbours of each listed vertex.
    """
    n = stamp.size
    for i in range(vertices.size):
        v = vertices[i]
        for e in range(out_offsets[v], out_offsets[v + 1]):
            stamp[out_targets[e]] = i
        for e in range(in_offsets[v], in_offsets[v + 1]):
            stamp[in_sources[e]] = i
        stamp[v] = -1
        for side in range(2):
            offsets, ends = (out_offsets, out_targets) if side == 0 else (in_offsets, in_sources)
            for e in range(offsets[v], offsets[v + 1]):
                u = ends[e]
                if stamp[u] != i or met[u] == -2 - i:
                    continue
                met[u] = -2 - i  # this neighbour's rows are not to be read twice
                degree[i] += 1
                last = n
                for f in range(out_offsets[u], out_offsets[u + 1]):
                    w = out_targets[f]
                    if w != last and w != u and stamp[w] == i:
                        arcs[i] += 1
                        pairs[i] += 1
                    last = w
                last = n
                for f in range(in_offsets[u], in_offsets[u + 1]):
                    w = in_sources[f]
                    if w != last and w != u and stamp[w] == i and not has_target(out_offsets, out_targets, u, w):
                        pairs[i] += 1
                    last = w


@njit(cache=True)
def has_target(offsets, targets, u, w):
    """Whether w is in u's row, ascending."""
    row = targets[offsets[u] : offsets[u + 1]]
    at = first_not_below(row, w)
    return at < row.size and row[at] == w
