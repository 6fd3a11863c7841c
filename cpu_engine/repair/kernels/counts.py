"""Core numbers and triangles the textbook way, over rows of distinct neighbours. Serial."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def peel_lowest_step(offsets, ends, left, begin, order, place):
    """Batagelj and Zaversnik: take away the vertex of lowest degree, again and again; ``left`` becomes core numbers.

    Invariant  ``order`` lists the vertices by rising ``left``, ``place`` is its inverse, ``begin[d]`` where degree d
               begins; a vertex that was taken away keeps its number.
    Races      none, serial.
    Work       O(n + m).
    """
    for at in range(order.size):
        v = order[at]
        for e in range(offsets[v], offsets[v + 1]):
            u = ends[e]
            if left[u] > left[v]:
                first = begin[left[u]]
                w = order[first]
                order[first], order[place[u]] = u, w
                place[w], place[u] = place[u], first
                begin[left[u]] += 1
                left[u] -= 1


@njit(cache=True)
def visit_triangles_step(offsets, ends, arcs, value, mark, corners, opposite, products):
    """Every triangle once, from its corner of highest id: count it, its opposite arcs and its edges' product at each.

    Invariant  mark[w] is 1 + the edge from v to w for the lower neighbours w of the current v, else 0. Rows ascend.
    Races      none, serial.
    Work       the lower neighbours' rows of all vertices: O(m sqrt(m)) where ids fall with the degree.
    """
    for v in range(corners.size):
        for e in range(offsets[v], offsets[v + 1]):
            if ends[e] >= v:
                break
            mark[ends[e]] = e + 1
        for e in range(offsets[v], offsets[v + 1]):
            u = ends[e]
            if u >= v:
                break
            for f in range(offsets[u], offsets[u + 1]):
                w = ends[f]
                if w >= u:
                    break
                g = mark[w] - 1
                if g < 0:
                    continue
                corners[v] += 1
                corners[u] += 1
                corners[w] += 1
                opposite[v] += arcs[f]
                opposite[u] += arcs[g]
                opposite[w] += arcs[e]
                product = value[e] * value[f] * value[g]
                products[v] += product
                products[u] += product
                products[w] += product
        for e in range(offsets[v], offsets[v + 1]):
            if ends[e] >= v:
                break
            mark[ends[e]] = 0
