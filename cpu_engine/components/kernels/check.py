"""The proofs that labels are components: plain floods with a queue, serial, sharing nothing with the algorithms."""

from __future__ import annotations

from numba import njit

from cpu_engine.intrinsics.lists import append

CROSSED, UNCONNECTED, MISNAMED, CYCLIC = range(4)  # findings


@njit(cache=True)
def check_labels_step(label, findings, example):
    """Each label must be the smallest vertex of its class, and one of it.   Races  none, serial.   Work  O(n)."""
    for v in range(label.size):
        name = label[v]
        if name < 0 or name > v or label[name] != name:
            findings[MISNAMED] += 1
            example[MISNAMED] = v


@njit(cache=True)
def flood_class(root, offsets, targets, label, mark, sign, queue):
    """Mark the vertices that ``root`` reaches along arcs that stay within its class; return how many."""
    mark[root] |= sign
    queue[0] = root
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for v in targets[offsets[u] : offsets[u + 1]]:
            if label[v] == label[u] and mark[v] & sign == 0:
                mark[v] |= sign
                tail = append(queue, tail, v)
    return tail


@njit(cache=True)
def check_weak_step(offsets, targets, in_offsets, in_sources, label, mark, queue, findings, example):
    """Look for an arc between two classes, and for a vertex that its label does not reach, whatever way arcs point.

    Invariant  labels are their classes' smallest vertices. No finding => the classes are the components.
    Races      none, serial.
    Work       every arc twice (undirected) or four times; ``mark`` arrives as zeros, ``queue`` has n places.
    """
    for root in range(label.size):
        if label[root] != root:
            continue
        mark[root], queue[0] = 1, root
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for v in targets[offsets[u] : offsets[u + 1]]:
                if label[v] != root:
                    findings[CROSSED] += 1
                    example[CROSSED] = u
                elif mark[v] == 0:
                    mark[v] = 1
                    tail = append(queue, tail, v)
            for v in in_sources[in_offsets[u] : in_offsets[u + 1]]:
                if label[v] == root and mark[v] == 0:
                    mark[v] = 1
                    tail = append(queue, tail, v)
    for v in range(label.size):
        if mark[v] == 0:
            findings[UNCONNECTED] += 1
            example[UNCONNECTED] = v


@njit(cache=True)
def check_strong_step(offsets, targets, in_offsets, in_sources, label, mark, queue, findings, example):
    """Look for a vertex that does not reach its label and back within the class.

    Invariant  labels are their classes' smallest vertices. No finding => every class is strongly connected.
    Races      none, serial.   Work  every arc twice; ``mark`` arrives as zeros, ``queue`` has n places.
    """
    for root in range(label.size):
        if label[root] == root:
            flood_class(root, offsets, targets, label, mark, 1, queue)
            flood_class(root, in_offsets, in_sources, label, mark, 2, queue)
    for v in range(label.size):
        if mark[v] != 3:
            findings[UNCONNECTED] += 1
            example[UNCONNECTED] = v


@njit(cache=True)
def check_acyclic_step(offsets, targets, label, member_begin, member, arriving, queue, findings, example):
    """Look for a cycle through several classes, by taking away classes into which no arc leads (Kahn).

    Invariant  members of class c are member[member_begin[c]] and on, ``c`` being the label; ``arriving`` arrives as
               zeros. No finding => no two classes reach each other.
    Races      none, serial.   Work  every arc twice.
    """
    n = label.size
    for u in range(n):
        for e in range(offsets[u], offsets[u + 1]):
            if label[targets[e]] != label[u]:
                arriving[label[targets[e]]] += 1
    tail, classes = 0, 0
    for v in range(n):
        if label[v] == v:
            classes += 1
            if arriving[v] == 0:
                tail = append(queue, tail, v)
    head = 0
    while head < tail:
        name = queue[head]
        head += 1
        for i in range(member_begin[name], member_begin[name + 1]):
            u = member[i]
            for e in range(offsets[u], offsets[u + 1]):
                other = label[targets[e]]
                if other != name:
                    arriving[other] -= 1
                    if arriving[other] == 0:
                        tail = append(queue, tail, other)
    if tail < classes:
        findings[CYCLIC] += classes - tail
        for v in range(n):
            if arriving[v] > 0:
                example[CYCLIC] = v
