"""Results back in the user's order: one pass over the user's vertices, isolated ones included."""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True, parallel=True)
def restore_levels_step(internal_of_position, level, user_level):
    """user_level[p] = level of the vertex at position p, -1 where it has no edges.

    Invariant  internal_of_position[p] is an internal id or -1.   Races  none: element by element.
    Work       one gather per vertex; writes are sequential.
    """
    for p in prange(user_level.size):
        v = internal_of_position[p]
        user_level[p] = level[v] if v >= 0 else -1


@njit(cache=True, parallel=True)
def restore_parents_step(internal_of_position, user_id_of, parent, user_parent):
    """user_parent[p] = the user's id of the parent of the vertex at position p, -1 where it has none.

    Invariant  parent[v] is an internal id or -1.   Races  none: element by element.
    Work       three gathers per vertex, the last mostly at hubs and so in cache; writes are sequential. Every look
               happens, at vertex 0 where there is none to look at: without branches the loop is vectorised.
    """
    for p in prange(user_parent.size):
        v = internal_of_position[p]
        u = parent[max(v, 0)] if v >= 0 else -1
        user_id = user_id_of[max(u, 0)]
        user_parent[p] = user_id if u >= 0 else -1


@njit(cache=True, parallel=True)
def restore_values_step(internal_of_position, value, none, user_value):
    """user_value[p] = value of the vertex at position p, ``none`` where it has no edges.

    Invariant, races, work: see restore_levels_step.
    """
    for p in prange(user_value.size):
        v = internal_of_position[p]
        user_value[p] = value[v] if v >= 0 else none
