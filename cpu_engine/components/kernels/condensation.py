"""The order of strongly connected components: a component comes before those that reach it."""

from __future__ import annotations

from numba import njit

from cpu_engine.intrinsics.lists import append


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
    at, done = 0, 0
    for k in range(count):
        if waits_for[k] == 0:
            done = append(order, done, k)
    while at < done:
        k = order[at]
        at += 1
        for v in member[begin[k] : begin[k + 1]]:
            for u in in_sources[in_offsets[v] : in_offsets[v + 1]]:
                other = label[u]
                if other != k:
                    waits_for[other] -= 1
                    if waits_for[other] == 0:
                        done = append(order, done, other)
    return done
