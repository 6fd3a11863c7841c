"""Connected components within a part, and labels that fall for whole components at once.

Encoding: ``root[v]`` leads towards the smallest local id of v's component; after compress_roots_step it is that id.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.components.kernels.weak import link
from cpu_engine.intrinsics.lists import append_unmarked

SAMPLED_NEIGHBOURS = 2  # Sutton et al. 2018 (Afforest): after so many rounds most of a component is one tree


@njit(cache=True, parallel=True)
def link_some_step(begin, end, neighbours, root, nth):
    """Join each vertex with the nth entry of its row, if it has so many.

    Invariant  root[v] <= v, and the trees of ``root`` join only what is connected.
    Races      trees are joined by compare and swap at a root; a thread that loses tries again from where it got to.
    Work       O(vertices).
    """
    for v in prange(root.size):
        if begin[v] + nth < end[v]:
            link(v, neighbours[begin[v] + nth], root)


@njit(cache=True, parallel=True)
def link_rest_step(begin, end, neighbours, root, first, largest):
    """Join each vertex outside the tree ``largest`` with the entries of its row from the ``first`` one on.

    Invariant  as link_some_step. Called for rows both ways, it leaves out only arcs inside ``largest``.
    Races      as link_some_step.
    Work       the rows of vertices outside ``largest``.
    """
    for v in prange(root.size):
        if root[v] != largest:
            for e in range(begin[v] + first, end[v]):
                link(v, neighbours[e], root)


@njit(cache=True, parallel=True)
def compress_roots_step(root):
    """Invariant  after: root[v] is a root.   Races  roots stay, others only get nearer.   Work  O(vertices)."""
    for v in prange(root.size):
        while root[root[v]] != root[v]:
            root[v] = root[root[v]]


@njit(cache=True)
def group_members_step(root, ends, members):
    """List the vertices of each component: those of root r are members[ends[r - 1]:ends[r]] (from 0 for r = 0).

    Invariant  ``ends`` arrives as zeros; of what is no root, the list is empty.
    Races      none, serial.   Work  O(vertices).
    """
    for v in root:
        ends[v] += 1
    total = 0
    for r in range(ends.size):
        size = ends[r]
        ends[r] = total
        total += size
    for v in range(root.size):
        members[ends[root[v]]] = v
        ends[root[v]] += 1


@njit(cache=True)
def smallest_names_step(root, names, label, smallest):
    """Give each component the smallest of its members' names, and each member its component's.

    Invariant  ``smallest`` arrives as the largest possible name.   Races  none, serial.   Work  O(vertices).
    """
    for v in range(root.size):
        smallest[root[v]] = min(smallest[root[v]], np.uint32(names[v]))
    for v in range(root.size):
        label[v] = smallest[root[v]]


@njit(cache=True)
def notice_labels_step(vertices, root, label, smallest, queued, waiting, count):
    """The labels of these vertices were lowered from outside: note it for their components; return how many wait.

    Invariant  smallest[r] is the smallest label known in the component of r; queued[r] iff r is in ``waiting``.
    Races      none, serial.   Work  O(vertices).
    """
    for v in vertices:
        r = root[v]
        if label[v] < smallest[r]:
            smallest[r] = label[v]
            count = append_unmarked(waiting, count, r, queued)
    return count


@njit(cache=True)
def spread_labels_step(waiting, ends, members, smallest, queued, label):
    """Give all members of the waiting components their smallest label; return how many members there are.

    Invariant  after: label[v] = smallest[root[v]] for all of them, and none of them waits.
    Races      none, serial.   Work  O(members).
    """
    looked = 0
    for r in waiting:
        queued[r] = 0
        begin = 0 if r == 0 else ends[r - 1]
        for i in range(begin, ends[r]):
            label[members[i]] = smallest[r]
        looked += ends[r] - begin
    return looked
