"""Top-down level without atomics: every thread walks the whole frontier, but only the edges into its own vertices.

Lists are in shuffled ids (shuffle.py), so an owner's edges are a stretch of every list, found by binary search, and its
writes stay in a stretch of ``visited`` that no other thread touches.
Encoding invariant: ``visited[s]`` is 0 iff the vertex with shuffled id s has no level.
"""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.graph.kernels.shuffle import lower_bound


@njit(cache=True)
def push_edges_share_step(t, starts, rows, frontier, counts, visited, tree, depth, found, size):
    """Expand the edges into owner t's vertices; return how many finds ``found`` now holds for t, and edges looked at.

    Invariant, races, work: see push_edges_step.
    """
    row_begin, row_end, shuffled = rows.begin, rows.end, rows.targets
    level, parent = tree.level, tree.parent
    owners = starts.size - 1
    mine_begin, mine_end = starts[t], starts[t + 1]
    looked = 0
    for owner in range(owners):
        for i in range(starts[owner], starts[owner] + counts[owner]):
            u = frontier[i]
            start = lower_bound(shuffled, row_begin[u], row_end[u], mine_begin)
            stop = lower_bound(shuffled, start, row_end[u], mine_end)
            looked += stop - start
            for e in range(start, stop):
                s = shuffled[e]
                if visited[s] == 0:
                    visited[s] = 1
                    v = (s - mine_begin) * owners + t
                    level[v] = depth + 1
                    parent[v] = u
                    found[mine_begin + size] = v
                    size += 1
    return size, looked


@njit(cache=True, parallel=True)
def push_edges_step(starts, rows, frontier, counts, visited, tree, depth, found, sizes, looked):
    """Give ``depth + 1`` to each unvisited out-neighbour of the frontier.

    Invariant  owner t's part of a frontier is frontier[starts[t] : starts[t] + counts[t]], each vertex once.
    Races      none: a vertex, its entry in ``found`` and its byte in ``visited`` are written by its owner alone, and
               nothing that another owner writes is read.
    Work       the frontier's edges, split as evenly as the shuffle splits the graph; and two binary searches per
               frontier vertex and owner, which is the price.
    """
    for t in prange(starts.size - 1):
        sizes[t], looked[t] = push_edges_share_step(
            t, starts, rows, frontier, counts, visited, tree, depth, found, sizes[t]
        )


@njit(cache=True, parallel=True)
def list_owned_step(level, depth, starts, frontier, counts, visited):
    """Make frontier and visited anew from the levels, when another strategy found the last ones.

    Invariant  afterwards as push_edges_step wants it, with the vertices at ``depth`` as the frontier.
    Races      none: owner t writes its own stretches.
    Work       O(n).
    """
    owners = starts.size - 1
    for t in prange(owners):
        count = 0
        for s in range(starts[t], starts[t + 1]):
            v = (s - starts[t]) * owners + t
            visited[s] = level[v] >= 0
            if level[v] == depth:
                frontier[starts[t] + count] = v
                count += 1
        counts[t] = count
