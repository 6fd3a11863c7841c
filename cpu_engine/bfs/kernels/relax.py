"""Asynchronous relaxation: a worklist of active vertices, min-updates, re-activation, no barrier between levels.

``tree.level`` is seen as uint32, the distance, so that "not reached" (-1) is the largest value and min works on it.
Encoding invariant: a vertex is in exactly one worklist or ring iff ``active`` is 1 for it. Parents are written on the
way and may be overtaken by a better value's: witness.find_parents_step settles them in the end.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_exchange, atomic_min
from cpu_engine.intrinsics.bisect import first_above


@njit(cache=True)
def relax_share_step(t, rows, tree, active, work, count, rings, left, budget, tally):
    """Thread t's part of a quantum: take work[t::threads] and then the own ring, first in first out.

    Invariant, races, work: see relax_quantum_step.
    """
    row_begin, row_end, targets = rows.begin, rows.end, rows.targets
    distance, parent = tree.level, tree.parent
    threads, capacity = rings.shape
    ring = rings[t]
    at, head, size, edges, taken = t, 0, 0, 0, 0
    while (at < count or size > 0) and edges < budget:
        if at < count:
            u = work[at]
            at += threads
        else:
            u = ring[head]
            head = head + 1 if head + 1 < capacity else 0
            size -= 1
        atomic_exchange(active, u, np.uint8(0))
        reach = np.uint32(distance[u] + np.uint32(1))
        taken += 1
        edges += row_end[u] - row_begin[u]
        for e in range(row_begin[u], row_end[u]):
            v = targets[e]
            if reach < distance[v] and reach < atomic_min(distance, v, reach):
                parent[v] = u
                if atomic_exchange(active, v, np.uint8(1)) == 0:
                    tail = head + size
                    ring[tail if tail < capacity else tail - capacity] = v
                    size += 1
    left[t, 0], left[t, 1], left[t, 2] = at, head, size
    tally[t, 0], tally[t, 1] = edges, taken


@njit(cache=True, parallel=True)
def relax_quantum_step(rows, tree, active, work, count, rings, left, budget, tally):
    """Relax out-edges of active vertices until the worklist is empty or each thread looked at ``budget`` edges.

    Invariant  a distance is the length of a real path or "not reached", and only ever falls; when every worklist
               is empty, no edge handed to this kernel can improve anything.
    Races      distance falls by atomic min; ``active`` is cleared before the distance is read, so an improvement that
               comes later re-activates the vertex. Thread t owns rings[t], left[t], tally[t].
    Work       at least the edges of the active vertices, again for each time a vertex improves; each thread walks
               first in first out, so roughly by levels.

    ``left[t]`` = (next index into work, ring head, ring size); ``tally[t]`` = (edges looked at, vertices taken).
    """
    for t in prange(rings.shape[0]):
        relax_share_step(np.int64(t), rows, tree, active, work, count, rings, left, budget, tally)


@njit(cache=True)
def relax_alone_step(rows, tree, active, work, count, ring, budget):
    """relax_quantum_step on one thread, without atomics: for worklists too thin to share.

    Invariant, work: see relax_quantum_step.   Races  none, serial.

    Returns (next index into work, ring head, ring size, edges looked at, vertices taken).
    """
    row_begin, row_end, targets = rows.begin, rows.end, rows.targets
    distance, parent = tree.level, tree.parent
    capacity = ring.size
    at, head, size, edges, taken = 0, 0, 0, 0, 0
    while (at < count or size > 0) and edges < budget:
        if at < count:
            u = work[at]
            at += 1
        else:
            u = ring[head]
            head = head + 1 if head + 1 < capacity else 0
            size -= 1
        active[u] = 0
        reach = np.uint32(distance[u] + np.uint32(1))
        taken += 1
        edges += row_end[u] - row_begin[u]
        for e in range(row_begin[u], row_end[u]):
            v = targets[e]
            if reach < distance[v]:
                distance[v] = reach
                parent[v] = u
                if active[v] == 0:
                    active[v] = 1
                    tail = head + size
                    ring[tail if tail < capacity else tail - capacity] = v
                    size += 1
    return at, head, size, edges, taken


@njit(cache=True)
def relax_even_share_step(t, threads, rows, tree, reach, work, starts, mine):
    """Relax thread t's equal share of the listed vertices' edges; return how many it listed in ``mine``.

    Invariant, races, work: see relax_even_step.
    """
    row_begin, targets, distance, parent = rows.begin, rows.targets, tree.level, tree.parent
    count = starts.size - 1
    total = starts[count]
    edge, last = total * t // threads, total * (t + 1) // threads
    i = first_above(starts, edge) - 1
    size = 0
    while edge < last:
        u = work[i]
        stop = min(last, starts[i + 1])
        first = row_begin[u] + edge - starts[i]
        row = targets[first : first + stop - edge]
        for j in range(row.size):
            v = row[j]
            if reach < distance[v]:
                distance[v] = reach
                parent[v] = u
                mine[size] = v
                size += 1
        edge = stop
        i += 1
    return size


@njit(cache=True, parallel=True)
def relax_even_step(rows, tree, reach, work, starts, rings, sizes):
    """Relax the edges of listed vertices that are all equally far, ``reach - 1``, and of none that they activate.

    Invariant  distance only falls, to ``reach``; ``starts`` lays the lists end to end (push.measure_frontier_step).
    Races      threads that improve v write the same value, and either's parent is right, so no atomics; v may then be
               listed twice, once per thread. Thread t owns rings[t] and sizes[t].
    Work       the listed vertices' edges, in equal shares, a long list cut where a share ends.
    """
    threads = rings.shape[0]
    for t in prange(threads):
        sizes[t] = relax_even_share_step(np.int64(t), threads, rows, tree, reach, work, starts, rings[t])


@njit(cache=True)
def collect_leftover_step(work, count, rings, left, spare):
    """Gather what a quantum left undone (rest of ``work``, rings) into ``spare``; return how many.

    Invariant  the multiset of waiting vertices is unchanged; each appears once because ``active`` guards it.
    Races      none, serial.
    Work       O(what is left).
    """
    threads = rings.shape[0]
    capacity = rings.shape[1]
    total = 0
    for t in range(threads):
        for at in range(left[t, 0], count, threads):
            spare[total] = work[at]
            total += 1
    for t in range(threads):
        for i in range(left[t, 2]):
            at = left[t, 1] + i
            spare[total] = rings[t, at if at < capacity else at - capacity]
            total += 1
    return total


@njit(cache=True)
def adopt_smaller_step(vertices, values, distance, active, work, count):
    """Merge foreign values: the smaller one stays, and its vertex becomes active; return the new worklist length.

    Invariant  distance only falls; a vertex already waiting is not added twice.
    Races      none: called between quanta.
    Work       O(len(vertices)).
    """
    for i in range(vertices.size):
        v = vertices[i]
        if values[i] < distance[v]:
            distance[v] = values[i]
            if active[v] == 0:
                active[v] = 1
                work[count] = v
                count += 1
    return count
