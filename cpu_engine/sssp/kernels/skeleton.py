"""A graph without its dead ends and chains: making that skeleton, and deriving all distances from its own.

On road maps most vertices lie on a chain between two junctions or in a dead end. A vertex that is left out of the
skeleton has two *anchors* in it, one at either end of its chain (a dead end hangs from a vertex of a chain, or from a
junction, which is both its anchors), and its distance is the smaller of two sums. Chains become edges as long as the
chain. Weights are integers above 0 and every edge is stored both ways. The *place* of a vertex left out is a row of six
numbers: its anchors, the ways to them, and its neighbours on these ways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.borrowed import borrow
from cpu_engine.sssp.kernels.values import weight_of

ANCHOR, WAY, TOWARDS = 0, 2, 4  # columns of a place; of the other anchor one more
NOWHERE = -1
LEFT_OUT, PEELED = -1, -2  # in ``junction``: on a chain, in a dead end; else the number in the skeleton
LONGEST = 2**31 - 1  # a way of this length or longer is written as this


class Edges(NamedTuple):
    """The graph's rows, with a weight for each edge."""

    offsets: np.ndarray
    targets: np.ndarray
    weight: np.ndarray


class Ways(NamedTuple):
    """Rows of the skeleton: begin[k]:begin[k + 1] are the ways from junction k, shortest first."""

    begin: np.ndarray
    ends: np.ndarray  # the junction at the other end
    lengths: np.ndarray
    hops: np.ndarray  # the first vertex on the way


@njit(cache=True)
def peel_dead_ends_step(offsets, targets, junction, left, order):
    """Take away the vertices that have one neighbour left, again and again; return how many were taken, in ``order``.

    junction[v] is PEELED for them, else LEFT_OUT; left[v] is how many edges v has left, itself and the peeled aside.

    Invariant  the last vertex of a tree stays.   Races  none, serial.   Work  every edge a few times.
    """
    n, tail = offsets.size - 1, 0
    for v in range(n):
        count = 0
        for e in range(offsets[v], offsets[v + 1]):
            count += targets[e] != v
        left[v] = count
        junction[v] = LEFT_OUT
        if count == 1:
            order[tail] = v
            tail += 1
    head, taken = 0, 0
    while head < tail:
        v = order[head]
        head += 1
        if left[v] != 1:
            continue  # all others of its tree are gone
        junction[v] = PEELED
        order[taken] = v
        taken += 1
        for e in range(offsets[v], offsets[v + 1]):
            u = targets[e]
            if u != v and junction[u] != PEELED:
                left[u] -= 1
                if left[u] == 1:
                    order[tail] = u
                    tail += 1
    return taken


@njit(cache=True)
def leave_by(v, came_from, length, edges, junction):
    """The edge by which a chain that came to ``v`` from a neighbour, over an edge of this length, goes on."""
    offsets, targets, weight = edges
    way, came = -1, False
    for e in range(offsets[v], offsets[v + 1]):
        u = targets[e]
        if u == v or junction[u] == PEELED:
            continue
        if not came and u == came_from and weight[e] == length:  # of two equal ones either
            came = True
        else:
            way = e
    return way


@njit(cache=True)
def follow_chain(a, e, edges, junction, left, place, piece):
    """Walk from junction ``a`` along edge ``e`` to the next one; return (that one, length, the vertex before).

    Those on the way note ``a`` as their first anchor, and the first of them as their piece's name.
    """
    targets, weight = edges.targets, edges.weight
    first = targets[e]
    came_from, v, length, step = a, first, weight[e], weight[e]
    while junction[v] == LEFT_OUT and left[v] == 2:
        place[v, ANCHOR] = junction[a]
        place[v, WAY] = min(length, LONGEST)
        place[v, TOWARDS] = came_from
        piece[v] = first
        way = leave_by(v, came_from, step, edges, junction)
        came_from, v, step = v, targets[way], weight[way]
        length += step
    return v, length, came_from


@njit(cache=True)
def return_by_chain(a, b, length, last, junction, place):
    """Walk back from junction ``b``, before which ``last`` was, to ``a``: those on the way note ``b``."""
    came_from, v = b, last
    while v != a:
        place[v, ANCHOR + 1] = junction[b]
        place[v, WAY + 1] = min(length - place[v, WAY], LONGEST)
        place[v, TOWARDS + 1] = came_from
        came_from, v = v, place[v, TOWARDS]


@njit(cache=True)
def sort_row(first, last, ends, lengths, hops):
    """Sort edges by length, then end; hops come along. Shell's sort, which for a few edges is insertion."""
    gap = 1
    while 9 * gap < last - first:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            end, length, hop = ends[i], lengths[i], hops[i]
            j = i
            while j - gap >= first and (
                lengths[j - gap] > length or (lengths[j - gap] == length and ends[j - gap] > end)
            ):
                ends[j], lengths[j], hops[j] = ends[j - gap], lengths[j - gap], hops[j - gap]
                j -= gap
            ends[j], lengths[j], hops[j] = end, length, hop
        gap //= 3


@njit(cache=True)
def draw_skeleton_step(edges, junction, left, members, place, piece, ways):
    """Number the junctions as a breadth-first search finds them, and write their rows; return how many there are.

    members[k] is junction k. Ways that lead back to where they began are left out: no shortest path takes one.

    Invariant  of every ring without a junction one vertex is made one. Neighbours get numbers close to one another.
               place[:] is NOWHERE before; afterwards every vertex on a chain has its place.
    Races      none, serial.   Work  every edge a few times.
    """
    edges, junction, left, place, piece = borrow(edges), borrow(junction), borrow(left), borrow(place), borrow(piece)
    offsets, targets = edges.offsets, edges.targets
    begin, ends, lengths, hops = borrow(ways)
    count, written, head = 0, 0, 0
    begin[0] = 0
    for turn in range(2):  # junctions, then rings
        for start in range(offsets.size - 1):
            if junction[start] != LEFT_OUT or (left[start] == 2 and (turn == 0 or place[start, ANCHOR] != NOWHERE)):
                continue
            junction[start] = count
            members[count] = start
            count += 1
            while head < count:
                a = members[head]
                first = written
                for e in range(offsets[a], offsets[a + 1]):
                    hop = targets[e]
                    if hop == a or junction[hop] == PEELED:
                        continue
                    if junction[hop] == LEFT_OUT and place[hop, ANCHOR] != NOWHERE:  # walked from the other end
                        side = 1 if place[hop, TOWARDS + 1] == a and place[hop, ANCHOR + 1] == head else 0
                        end = place[hop, ANCHOR + 1 - side]
                        length = np.int64(place[hop, WAY]) + np.int64(place[hop, WAY + 1])
                    else:
                        b, length, last = follow_chain(a, e, edges, junction, left, place, piece)
                        if junction[b] == LEFT_OUT:
                            junction[b] = count
                            members[count] = b
                            count += 1
                        end = junction[b]
                        return_by_chain(a, b, length, last, junction, place)
                    if end != head:
                        ends[written], lengths[written], hops[written] = end, length, hop
                        written += 1
                sort_row(first, written, ends, lengths, hops)
                head += 1
                begin[head] = written
    return count


@njit(cache=True)
def hang_dead_ends_step(edges, junction, order, place, piece):
    """Give places to the vertices in dead ends, the last peeled first; return (the longest way, the largest piece).

    Invariant  ``order`` lists the peeled; of a vertex's neighbours just one was peeled later, or not at all. A piece is
               what hangs together without the junctions; it is a tree.
    Races      none, serial.   Work  the edges of the peeled.
    """
    offsets, targets, weight = edges
    for v in order[::-1]:
        for e in range(offsets[v], offsets[v + 1]):
            u = targets[e]
            if u == v or (junction[u] == PEELED and place[u, ANCHOR] == NOWHERE):
                continue
            hangs_from_one = junction[u] >= 0
            for side in range(2):
                place[v, ANCHOR + side] = junction[u] if hangs_from_one else place[u, ANCHOR + side]
                way = 0 if hangs_from_one else np.int64(place[u, WAY + side])
                place[v, WAY + side] = min(weight[e] + way, LONGEST)
                place[v, TOWARDS + side] = u
            piece[v] = v if hangs_from_one else piece[u]
            break
    size = np.zeros(junction.size, np.int32)
    longest, largest = 0, 0
    for v in range(junction.size):
        if junction[v] < 0:
            longest = max(longest, place[v, WAY], place[v, WAY + 1])
            size[piece[v]] += 1
            largest = max(largest, size[piece[v]])
    return longest, largest


@njit(cache=True)
def walk_piece_step(root, edges, junction, seen, reach, origin):
    """Go from ``root`` to all of its piece and the junctions around it, or nowhere if it is one; return how many.

    Invariant  ways inside a piece are unique, as it is a tree; a junction is seen as often as edges lead there.
               seen, reach and origin have room for the piece and two more.
    Races      none, serial.   Work  the piece's edges.
    """
    offsets, targets, weight = edges
    seen[0], reach[0], origin[0] = root, 0, root
    head, tail = 0, 1
    while head < tail:
        v, came_from, near = seen[head], origin[head], reach[head]
        head += 1
        if junction[v] >= 0:
            continue
        for e in range(offsets[v], offsets[v + 1]):
            u = targets[e]
            if u != v and u != came_from:
                seen[tail], reach[tail], origin[tail] = u, near + weight[e], v
                tail += 1
    return tail


@njit(cache=True)
def settle_junctions(first, last, members, rows, hops, dist, unreached, distance, parent):
    """Distances and parents of junctions; a parent is the first vertex on a tight way back."""
    offsets, words, weights, bits = rows
    mask, one = (np.uint64(1) << np.uint64(bits)) - np.uint64(1), np.uint64(1)
    e = np.uint64(offsets[first])
    for number in range(first, last):
        k = np.uint64(number)
        own, v, towards = dist[k], np.uint64(members[k]), np.int32(-1)
        distance[v] = -1 if own == unreached else own
        stop = np.uint64(offsets[k + one])
        while e < stop:
            word = words[e]
            near = dist[np.uint64(word) & mask]
            tight = (near < own) & (near + weight_of(word, weights, e, bits) == own)
            towards = hops[e] if tight else towards
            e += one
        parent[v] = towards


@njit(cache=True)
def settle_others(first, last, others, place, dist, unreached, distance, parent):
    """Distances and parents of the vertices left out, by way of the better anchor."""
    for i in range(np.uint64(first), np.uint64(last)):
        v = np.uint64(others[i])
        one, other = np.int64(dist[np.uint64(place[i, ANCHOR])]), np.int64(dist[np.uint64(place[i, ANCHOR + 1])])
        if one == unreached:  # then so is the other
            distance[v], parent[v] = -1, -1
        else:
            one += place[i, WAY]
            other += place[i, WAY + 1]
            distance[v] = min(one, other)
            parent[v] = place[i, TOWARDS + 1] if other < one else place[i, TOWARDS]


@njit(cache=True, parallel=True)
def settle_all_step(rows, hops, members, others, place, dist, unreached, lanes, distance, parent):
    """Distances and parents of all vertices from the junctions' distances; where there are none, -1.

    Invariant  dist is final, and right for every vertex outside the root's piece; the root, and junctions whose
               distance is the way inside its piece, get -1 or another right parent.
    Races      a vertex is one lane's.
    Work       the skeleton's edges, and two looks at distances for each vertex left out.
    """
    k, i = members.size, others.size
    for lane in prange(lanes):
        settle_junctions(
            k * lane // lanes, k * (lane + 1) // lanes, members, rows, hops, dist, unreached, distance, parent
        )
        settle_others(i * lane // lanes, i * (lane + 1) // lanes, others, place, dist, unreached, distance, parent)


@njit(cache=True)
def settle_piece_step(seen, reach, origin, distance, parent):
    """Correct the vertices that the root reaches inside its piece no later than by way of the junctions.

    Invariant  weights are above 0: a tight edge of the piece leads to a vertex farther away.   Races  none, serial.
    Work       the piece.
    """
    for i in range(seen.size):
        v = seen[i]
        if distance[v] < 0 or reach[i] <= distance[v]:
            distance[v], parent[v] = reach[i], origin[i]
