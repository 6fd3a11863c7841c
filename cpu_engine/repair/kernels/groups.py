"""Groups of vertices the textbook way: union-find, Tarjan, counted labels, moves between communities. Serial."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def find_root_step(above, v):
    """The root of v's tree; the path to it is halved on the way."""
    while above[v] != v:
        above[v] = above[above[v]]
        v = above[v]
    return v


@njit(cache=True)
def join_ends_step(offsets, targets, above):
    """Union-find over all arcs; on entry ``above[v] = v``, on exit it is the smallest vertex of v's component.

    Invariant  above[v] <= v, and following it stays within the component.
    Races      none, serial.
    Work       O((n + m) log n).
    """
    for u in range(above.size):
        for e in range(offsets[u], offsets[u + 1]):
            a, b = find_root_step(above, u), find_root_step(above, targets[e])
            if a < b:
                above[b] = a
            else:
                above[a] = b
    for v in range(above.size):
        above[v] = find_root_step(above, v)


@njit(cache=True)
def close_cycles_step(offsets, targets, met, low, cursor, path, open_ones, label):
    """Tarjan without recursion; the smallest vertex of each strongly connected component as ``label``.

    Invariant  ``met`` is the order of discovery from 1, 0 = not yet; label is -1 until the component is closed.
    Races      none, serial.
    Work       O(n + m).
    """
    clock = 0
    waiting = 0
    for start in range(met.size):
        if met[start]:
            continue
        depth = 0
        path[0] = start
        while depth >= 0:
            u = path[depth]
            if met[u] == 0:
                clock += 1
                met[u] = low[u] = clock
                cursor[u] = offsets[u]
                open_ones[waiting] = u
                waiting += 1
            if cursor[u] < offsets[u + 1]:
                v = targets[cursor[u]]
                cursor[u] += 1
                if met[v] == 0:
                    depth += 1
                    path[depth] = v
                elif label[v] < 0:
                    low[u] = min(low[u], met[v])
                continue
            if low[u] == met[u]:
                begin, smallest = waiting, u
                while True:
                    begin -= 1
                    smallest = min(smallest, open_ones[begin])
                    if open_ones[begin] == u:
                        break
                for at in range(begin, waiting):
                    label[open_ones[at]] = smallest
                waiting = begin
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[u])


@njit(cache=True)
def count_labels_step(out_offsets, out_targets, in_offsets, in_sources, both_ways, label, count, fresh):
    """One round of label propagation: the most frequent label among the neighbours, of equals the smallest.

    Invariant  ``count`` is 0 everywhere between vertices; a vertex without neighbours keeps its label.
    Races      none, serial.
    Work       O(n + m).
    """
    for v in range(label.size):
        best, most = label[v], 0
        for side in range(2 if both_ways else 1):
            offsets, ends = (out_offsets, out_targets) if side == 0 else (in_offsets, in_sources)
            for e in range(offsets[v], offsets[v + 1]):
                one = label[ends[e]]
                count[one] += 1
                if count[one] > most or (count[one] == most and one < best):
                    best, most = one, count[one]
        for side in range(2 if both_ways else 1):
            offsets, ends = (out_offsets, out_targets) if side == 0 else (in_offsets, in_sources)
            for e in range(offsets[v], offsets[v + 1]):
                count[label[ends[e]]] = 0
        fresh[v] = best


@njit(cache=True)
def move_vertices_step(offsets, ends, weight, strength, resolution, least, group, inside, near):
    """Each vertex once, by id, into the neighbouring community that raises the modularity most; how many moved.

    Invariant  ``inside[c]`` is the strength of community c; ``near`` is 0 everywhere between vertices.
    Races      none, serial.
    Work       O(n + m). ``weight`` and ``strength`` are shares of all; gains up to ``least`` are none.
    """
    moved = 0
    for v in range(group.size):
        own = group[v]
        inside[own] -= strength[v]
        for e in range(offsets[v], offsets[v + 1]):
            near[group[ends[e]]] += weight[e]
        best = own
        most = near[own] - resolution * strength[v] * inside[own] + least
        for e in range(offsets[v], offsets[v + 1]):
            other = group[ends[e]]
            gain = near[other] - resolution * strength[v] * inside[other]
            if gain > most:
                best, most = other, gain
        for e in range(offsets[v], offsets[v + 1]):
            near[group[ends[e]]] = 0.0
        inside[best] += strength[v]
        group[v] = best
        moved += best != own
    return moved
