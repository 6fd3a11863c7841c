"""The two passes of the proof on a part: over its arcs, and over its masters."""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.bfs.kernels.witness import FALSE_ROOT, OVERLONG, STRAY_PARENT, UNWITNESSED


@njit(cache=True, inline="always")
def _is_witnessed(begin, end, in_sources, internal_of, level, mine, parent):
    """Whether an in-neighbour in this row, sorted by internal ids, is ``parent`` and one level nearer."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if internal_of[in_sources[middle]] < parent:
            low = middle + 1
        else:
            high = middle
    return low < end and internal_of[in_sources[low]] == parent and level[in_sources[low]] == mine - 1


@njit(cache=True, parallel=True)
def check_arcs_step(in_offsets, in_sources, internal_of, level, parent, witnessed, findings, example):
    """Count the arcs here that lead more than one level further, and note whose parent an arc here witnesses.

    Invariant  level is that of each vertex's master for all copies, parent for those with in-arcs.
    Races      thread t owns findings[t] and example[t], and writes witnessed[v] of its own vertices only.
    Work       every arc once, plus one bisection per reached vertex.
    """
    threads = findings.shape[0]
    for t in prange(threads):
        for v in range(t, level.shape[0], threads):
            begin, end, mine = in_offsets[v], in_offsets[v + 1], level[v]
            for e in range(begin, end):
                near = level[in_sources[e]]
                if near >= 0 and (mine < 0 or mine > near + 1):
                    findings[t, OVERLONG] += 1
                    example[t, OVERLONG] = internal_of[v]
            if mine > 0 and begin < end:
                witnessed[v] = _is_witnessed(begin, end, in_sources, internal_of, level, mine, parent[v])


@njit(cache=True, parallel=True)
def judge_masters_step(names, level, parent, witnessed, root, findings, example):
    """Count the masters that contradict "level is the BFS distance from root and parent is a BFS tree".

    Invariant  ``names`` are the masters' internal ids; witnessed[v] is what all parts together say.
    Races      thread t owns findings[t] and example[t].   Work  O(masters).
    """
    threads = findings.shape[0]
    for t in prange(threads):
        for v in range(t, names.shape[0], threads):
            kind = -1
            if level[v] == 0 or names[v] == root:
                if names[v] != root or level[v] != 0 or parent[v] != names[v]:
                    kind = FALSE_ROOT
            elif level[v] < 0:
                if level[v] != -1 or parent[v] != -1:
                    kind = STRAY_PARENT
            elif not witnessed[v]:
                kind = UNWITNESSED
            if kind >= 0:
                findings[t, kind] += 1
                example[t, kind] = names[v]
