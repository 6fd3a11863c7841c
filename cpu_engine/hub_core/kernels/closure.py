"""The core's closure by the CPU: what an honest worker answers, found fast, for devices that are only simulated."""

from __future__ import annotations

from numba import njit, prange

FAR = 2**31  # above every value


@njit(cache=True)
def close_core_step(begin, end, targets, value):
    """Lower ``value`` to the closure under unit-weight core edges; how many levels had to be expanded.

    Invariant  value[v] = -1 or the length of a path; after: no edge u -> v of the core has value[v] > value[u] + 1.
               Levels are expanded in ascending order, so an expanded vertex is final. Expanding stops when no vertex
               is left that could still fall: those above the next level, and those without a value.
    Races      none, serial.
    Work       O(core edges + k per level), usually far less: hubs come first and leave no vertex open.
    """
    k = value.size
    levels = 0
    level = -1
    while True:
        current = FAR
        for v in range(k):
            if level < value[v] < current:
                current = value[v]
        if current == FAR:
            return levels
        level = current
        open_vertices = 0
        for v in range(k):
            if value[v] < 0 or value[v] > level + 1:
                open_vertices += 1
        if open_vertices == 0:
            return levels
        levels += 1
        for u in range(k):
            if value[u] != level:
                continue
            for e in range(begin[u], end[u]):
                v = targets[e]
                if value[v] < 0 or value[v] > level + 1:
                    value[v] = level + 1
                    open_vertices -= 1
            if open_vertices == 0:
                return levels


@njit(cache=True, parallel=True)
def close_core_rows_step(begin, end, targets, values, levels):
    """close_core_step for every row of a batch; levels[i] as it returns them.

    Invariant  as there.   Races  iteration i writes row i only.   Work  the sum of theirs.
    """
    for i in prange(values.shape[0]):
        levels[i] = close_core_step(begin, end, targets, values[i])
