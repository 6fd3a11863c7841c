"""Connected components by hooking: every vertex points to a smaller one, until all of a component point to its least.

Invariant of ``parent`` throughout: parent[v] <= v, v and parent[v] are connected, roots point to themselves. So the
root of a tree is its smallest vertex, whatever order arcs are looked at in.
"""

from __future__ import annotations

from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_claim

BLOCK = 1024  # vertices per turn: low ids are hubs, so blocks are dealt round robin to even out the threads


@njit(cache=True, parallel=True)
def hook_first_step(best_in, out_begin, out_end, out_targets, parent):
    """Point each vertex to the smallest of itself and its neighbours: rows are ascending, so these are their firsts.

    Invariant  see above.   Races  none: element by element.   Work  O(n); no arc but the first of each row.
    """
    for v in prange(parent.size):
        low = min(v, best_in[v])
        if out_begin[v] < out_end[v]:
            low = min(low, out_targets[out_begin[v]])
        parent[v] = low


@njit(cache=True, inline="always")
def link(u, v, parent):
    """Make u and v have the same root, hooking the larger root under the smaller one.

    Another thread may hook either root meanwhile: then go on from where they point now (Sutton 2018, Afforest).
    """
    one, other = parent[u], parent[v]
    while one != other:
        high, low = max(one, other), min(one, other)
        above = parent[high]
        if above == low or (above == high and atomic_claim(parent, high, high, low)):
            break
        one, other = parent[parent[high]], parent[low]


@njit(cache=True, parallel=True)
def link_place_step(begin, end, neighbours, place, parent):
    """Link each vertex with the neighbour at one place of its row.

    Invariant  see above.   Races  roots are hooked by compare-and-swap; other writes do not happen here.
    Work       one arc per vertex.
    """
    for v in prange(parent.size):
        if begin[v] + place < end[v]:
            link(v, neighbours[begin[v] + place], parent)


@njit(cache=True, parallel=True)
def link_outside_step(begin, end, neighbours, giant, parent, looked, lanes):
    """Link each vertex outside the tree rooted at ``giant`` with all of its neighbours.

    Invariant  see above. Inside the tree nothing needs a look: its arcs to the outside are seen from there.
    Races      as above; looked[lane] (arcs looked at) is the lane's own. A vertex that joins the tree meanwhile is
               looked at or not, both are right.
    Work       the arcs of the vertices outside.
    """
    for lane in prange(lanes):
        count = 0
        for first in range(lane * BLOCK, parent.size, lanes * BLOCK):
            for v in range(first, min(first + BLOCK, parent.size)):
                if parent[v] != giant:
                    for e in range(begin[v], end[v]):
                        link(v, neighbours[e], parent)
                    count += end[v] - begin[v]
        looked[lane] += count


@njit(cache=True)
def link_listed_step(ones, others, parent):
    """Link ones[i] with others[i], all i; return how many pairs had different roots before.

    Invariant  see above.   Races  none, serial.   Work  O(pairs): for the few vertices of a core.
    """
    joined = 0
    for i in range(ones.size):
        one, other = ones[i], others[i]
        while parent[one] != one:
            one = parent[one]
        while parent[other] != other:
            other = parent[other]
        if one != other:
            parent[max(one, other)] = min(one, other)
            joined += 1
    return joined


@njit(cache=True, parallel=True)
def compress_step(parent):
    """Point every vertex to its root.

    Invariant  parent[parent[v]] == parent[v] for all v.
    Races      others shorten the same paths; a path is only ever replaced by a shorter one to the same root.
    Work       O(n) in practice: a thread goes upwards, where most paths are short already.
    """
    for v in prange(parent.size):
        while parent[v] != parent[parent[v]]:
            parent[v] = parent[parent[v]]


@njit(cache=True, parallel=True)
def count_roots_step(parent):
    """How many vertices point to themselves.   Races  none: a sum.   Work  O(n)."""
    count = 0
    for v in prange(parent.size):
        count += parent[v] == v
    return count
