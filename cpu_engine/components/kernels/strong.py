"""Strongly connected components: what one pivot reaches both ways, and all the rest by depth-first search.

``label`` is -1 where the component is not known yet, else its smallest vertex.
"""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True, parallel=True)
def reached_both_ways_step(forward, backward, label):
    """Label the vertices that a pivot reaches and that reach it, with the smallest of them; return how many.

    Invariant  they are one component.   Races  none: a minimum, a sum, then element by element.   Work  O(n).
    """
    smallest, count = label.size, 0
    for v in prange(label.size):
        inside = forward[v] >= 0 and backward[v] >= 0
        smallest = min(smallest, v if inside else label.size)
        count += inside
    for v in prange(label.size):
        label[v] = smallest if forward[v] >= 0 and backward[v] >= 0 else -1
    return count


@njit(cache=True)
def search_rest_step(offsets, targets, label, order, low, cursor, stack, path):
    """Label every vertex that has no label, as if those that have one were not there; return how many components.

    Invariant  Tarjan 1972, with the recursion on ``path``: order[v] counts visits from 1, low[v] is the earliest visit
               known to be reachable; visited vertices without label are on ``stack``.
    Races      none, serial.
    Work       O(unlabelled vertices + their arcs); ``order`` arrives as zeros, all arrays have n places.
    """
    visits, count = 0, 0
    for start in range(label.size):
        if label[start] >= 0:
            continue
        top, depth = 1, 1
        stack[0] = path[0] = start
        visits += 1
        order[start] = low[start] = visits
        cursor[start] = offsets[start]
        while depth > 0:
            u = path[depth - 1]
            if cursor[u] < offsets[u + 1]:
                v = targets[cursor[u]]
                cursor[u] += 1
                if label[v] >= 0:
                    continue
                if order[v] > 0:
                    low[u] = min(low[u], order[v])
                    continue
                visits += 1
                order[v] = low[v] = visits
                cursor[v] = offsets[v]
                stack[top] = path[depth] = v
                top += 1
                depth += 1
                continue
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[u])
            if low[u] == order[u]:
                bottom, smallest = top - 1, u
                while stack[bottom] != u:
                    smallest = min(smallest, stack[bottom])
                    bottom -= 1
                for i in range(bottom, top):
                    label[stack[i]] = smallest
                top = bottom
                count += 1
    return count
