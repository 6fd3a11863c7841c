"""Parents, the certificate, and the throwing away of values that no path supports.

The certificate shares no code with the engines: it reads a finished (level, parent) and looks for a contradiction.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

UNWITNESSED, OVERLONG, FALSE_ROOT, STRAY_PARENT = range(4)  # rows of the certificate's findings
BLOCK = 4096  # vertices judged before the rows of those that need a parent are read


@njit(cache=True)
def list_orphans(first, here, level, parent, orphans):
    """List the block's reached vertices whose parent is none (-1) or not one step nearer; return how many.

    A parent below -1 is known on another part.

    ``here`` and ``parent`` are the block's own part, which begins at vertex ``first``. There is no branch: nearly every
    parent is right, but the look at its level is a gather, and gathers without branches are done many at a time.
    """
    count = np.uint64(0)
    for i in range(here.size):
        far = level[max(parent[i], 0)] + 1 != here[i]
        orphans[count] = first + i
        count += np.uint64((here[i] > 0) & (far | (parent[i] < 0)) & (parent[i] > -2))
    return np.int64(count)


@njit(cache=True, parallel=True)
def find_parents_step(offsets, sources, level, parent):
    """Give every reached vertex without a parent one step nearer such an in-neighbour, where there is one.

    Invariant  right parents are kept; level is only read. Vertices beyond the end of ``parent`` are only looked at.
    Races      a block's iteration writes only its own vertices' parents.
    Work       one look per vertex, and the in-list of each that needs a parent, up to the first fit.
    """
    n = parent.size
    for block in prange((n + BLOCK - 1) // BLOCK):
        first, last = block * BLOCK, min((block + 1) * BLOCK, n)
        orphans = np.empty(BLOCK + 1, np.int32)
        for i in range(list_orphans(first, level[first:last], level, parent[first:last], orphans)):
            v = orphans[i]
            parent[v] = -1
            for e in range(offsets[v], offsets[v + 1]):
                if level[sources[e]] == level[v] - 1:
                    parent[v] = sources[e]
                    break


@njit(cache=True)
def has_edge(offsets, sources, u, v):
    """Whether u is among v's in-neighbours (ascending), by bisection."""
    low, high = offsets[v], offsets[v + 1]
    while low < high:
        middle = (low + high) // 2
        if sources[middle] < u:
            low = middle + 1
        else:
            high = middle
    return low < offsets[v + 1] and sources[low] == u


@njit(cache=True, parallel=True)
def certify_step(in_offsets, in_sources, level, parent, root, findings, example):
    """Look for anything that contradicts "level is the BFS distance from root and parent is a BFS tree".

    Invariant  no finding => level is exact: each value is the length of a real path (parent chain over real edges,
               one step at a time, to the only vertex at 0), and no edge could shorten one.
    Races      thread t owns findings[t] and example[t]; level and parent are only read.
    Work       every edge once, plus one bisection per reached vertex.

    ``findings[t, kind]`` counts; ``example[t, kind]`` is one offending vertex, or -1.
    """
    n = level.size
    threads = findings.shape[0]
    for t in prange(threads):
        for v in range(t, n, threads):
            kind = -1
            if level[v] == 0 or v == root:
                if v != root or level[v] != 0 or parent[v] != v:
                    kind = FALSE_ROOT
            elif level[v] < 0:
                if level[v] != -1 or parent[v] != -1:
                    kind = STRAY_PARENT
            else:
                p = parent[v]
                if p < 0 or p >= n or level[p] != level[v] - 1 or not has_edge(in_offsets, in_sources, p, v):
                    kind = UNWITNESSED
            if kind >= 0:
                findings[t, kind] += 1
                example[t, kind] = v
            for e in range(in_offsets[v], in_offsets[v + 1]):
                near = level[in_sources[e]]
                if near >= 0 and (level[v] < 0 or level[v] > near + 1):
                    findings[t, OVERLONG] += 1
                    example[t, OVERLONG] = v


@njit(cache=True)
def translate_parents_step(parent, internal_of, found):
    """found[v] = the internal id of v's parent, -1 where it is not a local one.

    Invariant  parent[v] is a local id or negative.   Races  none, serial.   Work  one gather per vertex, no branch.
    """
    for v in range(found.size):
        internal = internal_of[max(parent[v], 0)]
        found[v] = internal if parent[v] >= 0 else -1


@njit(cache=True)
def answer_parents_step(wanted, levels, in_offsets, in_sources, level, parent, internal_of, found):
    """found[i] = the internal id of an in-neighbour of wanted[i] that is one step nearer than levels[i], or -1.

    Invariant  levels of all vertices with out-arcs here are final.   Races  none, serial.
    Work       one look where the own parent fits, else the in-list up to the first fit.
    """
    for i in range(wanted.size):
        v, near = wanted[i], levels[i] - 1
        found[i] = -1
        if parent[v] >= 0 and level[parent[v]] == near:
            found[i] = internal_of[parent[v]]
            continue
        for e in range(in_offsets[v], in_offsets[v + 1]):
            if level[in_sources[e]] == near:
                found[i] = internal_of[in_sources[e]]
                break
