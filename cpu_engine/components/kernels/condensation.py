"""The order of strongly connected components: whoever is reached comes before who reaches it."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def order_components_step(out_offsets, out_targets, in_offsets, in_sources, label, member, begin, waits_for, order):
    """Number the components into ``order`` such that every arc between two of them leads to the earlier one.

    ``label`` is each vertex's component 0..c-1; component k is ``member[begin[k] : begin[k + 1]]``; ``waits_for`` is
    zero. Returns how many were ordered: all, unless an arc closes a circle between components.

    Invariant  waits_for[k] is the number of arcs from k to components not yet in ``order``.   Races  none, serial.
    Work       every arc twice.
    """
    count = begin.size - 1
    for u in range(label.size):
        for e in range(out_offsets[u], out_offsets[u + 1]):
            if label[out_targets[e]] != label[u]:
                waits_for[label[u]] += 1
    done = 0
    for k in range(count):
        if waits_for[k] == 0:
            order[done] = k
            done += 1
    at = 0
    while at < done:
        k = order[at]
        at += 1
        for i in range(begin[k], begin[k + 1]):
            for e in range(in_offsets[member[i]], in_offsets[member[i] + 1]):
                other = label[in_sources[e]]
                if other != k:
                    waits_for[other] -= 1
                    if waits_for[other] == 0:
                        order[done] = other
                        done += 1
    return done
