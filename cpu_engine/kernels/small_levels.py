"""Many small levels in one launch: one thread runs level after level until one is worth waking the others for.

On a graph of high diameter a level takes less time than its launch (Hwu, Kirk, El Hajj, ch. 15.7); here thousands of
levels share one. All levels lie end to end in ``queue``, in the order found.
Encoding invariant: ``level[v]`` is -1 iff v is unvisited.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def run_small_levels_step(
    row_begin, row_end, targets, queue, begin, end, tail, level, parent, depth, max_vertices, max_edges, ends, looked
):
    """Expand queue[begin:end], at ``depth``, and the levels after it while they are small; return how many were.

    Invariant  queue[end:tail] are members of the next level already known. Afterwards level ``depth + 1 + i`` ends at
               ends[i] and took looked[i] edges; the last one counted may be empty, and then the traversal is over.
               A level with more than ``max_vertices`` or ``max_edges`` is left unexpanded.
    Races      none, serial.
    Work       the edges of the levels run, and of each level twice the ends of its rows.
    """
    levels = 0
    while begin < end and end - begin <= max_vertices and levels < ends.size:
        edges = 0
        for i in range(begin, end):
            edges += row_end[queue[i]] - row_begin[queue[i]]
        if edges > max_edges:
            break
        depth += 1
        for i in range(begin, end):
            u = queue[i]
            for e in range(row_begin[u], row_end[u]):
                v = targets[e]
                if level[v] == -1:
                    level[v] = depth
                    parent[v] = u
                    queue[tail] = v
                    tail += 1
        ends[levels], looked[levels] = tail, edges
        begin, end = end, tail
        levels += 1
    return levels
