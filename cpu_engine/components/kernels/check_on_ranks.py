"""The proof of weakly connected components on a part: arcs between classes, and a flood within them. Serial."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def count_crossing_step(offsets, targets, label):
    """(how many arcs lead from one class to another, the local id where one of them begins or -1).

    Invariant  label is that of each vertex's master for all copies.   Races  none, serial.   Work  every arc once.
    """
    count, example = 0, -1
    for u in range(label.size):
        for e in range(offsets[u], offsets[u + 1]):
            if label[targets[e]] != label[u]:
                count += 1
                example = u
    return count, example


@njit(cache=True)
def flood_step(out_offsets, out_targets, in_offsets, in_sources, mark, queue, tail):
    """Mark the vertices that arcs here connect to the ``tail`` vertices in the queue; return how many are in it then.

    Invariant  those in the queue are marked; no arc leads from one class to another.
    Races      none, serial.   Work  the arcs of those in the queue.
    """
    head = 0
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(out_offsets[u], out_offsets[u + 1]):
            v = out_targets[e]
            if mark[v] == 0:
                mark[v] = 1
                queue[tail] = v
                tail += 1
        for e in range(in_offsets[u], in_offsets[u + 1]):
            v = in_sources[e]
            if mark[v] == 0:
                mark[v] = 1
                queue[tail] = v
                tail += 1
    return tail
