"""Many levels in one launch: one thread runs the tiny ones, a team that stays awake the wider ones.

On a graph of high diameter a level takes less time than its launch (Hwu, Kirk, El Hajj, ch. 15.7); here thousands of
levels share one. Of the i-th level run, ``tally[i]`` has per thread the vertices found and the edges looked at; one
thread alone is thread 0. ``tree.level`` is seen as uint32, so that "not reached" (-1) is the largest value; a vertex
that has a distance but could have a shorter one is found like one that has none.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.lines import ask_for_line
from cpu_engine.intrinsics.lists import append
from cpu_engine.intrinsics.team import join_team, leave_team, meet_team

ROWS_AHEAD = 24  # vertices ahead at which a row's ends, and then its list, are asked for: a third off on a large grid
LISTS_AHEAD = 12


@njit(cache=True, inline="always")  # a call would count references to the arrays of both groups, level by level
def push_stretch(rows, vertices, first, last, tree, depth, mine, size):
    """Append the neighbours of vertices[first:last] that gain to ``mine``; return its size and edges looked at."""
    row_begin, row_end, targets = rows.begin, rows.end, rows.targets
    distance, parent = tree.level, tree.parent
    looked, reach = 0, np.uint32(depth + 1)
    for i in range(first, last):
        if i + ROWS_AHEAD < last:  # neighbours in a frontier are far apart in memory, and the chain of reads is long
            ask_for_line(row_begin, vertices[i + ROWS_AHEAD])
            ask_for_line(targets, row_begin[vertices[i + LISTS_AHEAD]])
        u = vertices[i]
        looked += row_end[u] - row_begin[u]
        for e in range(row_begin[u], row_end[u]):
            v = targets[e]
            if reach < distance[v]:
                distance[v] = reach
                parent[v] = u
                size = append(mine, size, v)
    return size, looked


@njit(cache=True)
def run_tiny_levels_step(rows, queue, tree, depth, max_vertices, max_edges, tally):
    """Expand level after level, alone, up to one with more than ``max_vertices`` or ``max_edges``; return how many.

    Invariant  the levels lie end to end in the queue; the last one found may be empty, and then the traversal is over.
    Races      none, serial.
    Work       the edges of the levels run, and the ends of their rows once more.
    """
    row_begin, row_end, vertices = rows.begin, rows.end, queue.vertices
    begin, end, tail = queue.begin, queue.end, queue.tail
    levels = 0
    while begin < end and end - begin <= max_vertices and levels < tally.shape[0]:
        edges = 0
        for i in range(begin, end):
            edges += row_end[vertices[i]] - row_begin[vertices[i]]
        if edges > max_edges:
            break
        before = tail
        tail, looked = push_stretch(rows, vertices, begin, end, tree, depth + levels, vertices, tail)
        tally[levels, 0, 0], tally[levels, 0, 1] = tail - before, looked
        begin, end = end, tail
        levels += 1
    return levels


@njit(cache=True)
def run_levels_share_step(me, size, gate, rows, queue, tree, depth, min_vertices, lists, tally):
    """Member ``me``'s part of run_team_levels_step; return how many levels there were.

    Invariant, races, work: see run_team_levels_step.
    """
    vertices, begin, tail = queue.vertices, queue.begin, queue.tail
    count = queue.end - begin
    first, last = begin + count * me // size, begin + count * (me + 1) // size
    held, looked = push_stretch(rows, vertices, first, last, tree, depth, lists[me], 0)
    tally[0, me, 0], tally[0, me, 1] = held, looked
    meet_team(gate, size, 1)
    levels = 1
    marks = np.zeros(size, np.int64)  # where each member's part of the frontier begins in its list
    count = tally[0, :size, 0].sum()
    while count >= min_vertices and levels < tally.shape[0] and not leave_team(gate, levels):
        before, looked, at = held, 0, 0
        for owner in range(size):
            part = tally[levels - 1, owner, 0]
            first = min(max(count * me // size - at, 0), part)
            last = min(max(count * (me + 1) // size - at, 0), part)
            first, last = first + marks[owner], last + marks[owner]
            held, more = push_stretch(rows, lists[owner], first, last, tree, depth + levels, lists[me], held)
            looked += more
            at += part
            marks[owner] += part
        tally[levels, me, 0], tally[levels, me, 1] = held - before, looked
        meet_team(gate, size, levels + 1)
        count = tally[levels, :size, 0].sum()
        levels += 1
    for owner in range(me):
        tail += tally[levels - 1, owner, 0]
    part = tally[levels - 1, me, 0]
    vertices[tail : tail + part] = lists[me, held - part : held]
    return levels


@njit(cache=True, parallel=True)
def run_team_levels_step(team, wanted, patience, rows, queue, tree, depth, min_vertices, lists, tally):
    """Expand level after level, together, up to one with fewer than ``min_vertices``, at least one; return how many.

    Ends earlier if a member had to wait long for another (``team[1, 1]``).

    Invariant  ``team`` and ``tally`` are 0 before. A level is what the members have added to their lists since the last
               barrier, in order of members; the last one found is copied behind the queue's tail.
    Races      two members may both find that v gains: both write the same level and either's parent is right, so no
               atomics; v may then be listed twice, once per member. No member looks at a level before all have finished
               the one before. Member t alone writes lists[t] and tally[:, t].
    Work       the levels' edges, shared out by vertex in equal stretches, so that a member mostly goes on from its
               own finds; one barrier per level, no launch.
    """
    levels = 0
    for _ in prange(lists.shape[0]):
        me, size = join_team(team[0], wanted, patience)
        run = 0
        if me >= 0:
            run = run_levels_share_step(me, size, team[1], rows, queue, tree, depth, min_vertices, lists, tally)
        levels = max(levels, run)
    return levels
