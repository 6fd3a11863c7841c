"""Core numbers as they are defined: for each k, delete whoever has fewer than k neighbours until nobody does."""

from __future__ import annotations


def core_numbers(vertices: list[int], edges: list[tuple[int, int]]) -> dict[int, int]:
    neighbours: dict[int, set[int]] = {v: set() for v in vertices}
    for u, v in edges:
        if u != v:
            neighbours[u].add(v)
            neighbours[v].add(u)
    core, left, k = dict.fromkeys(vertices, 0), set(vertices), 1
    while left:
        while leaving := {v for v in left if len(neighbours[v] & left) < k}:
            left -= leaving
        core.update(dict.fromkeys(left, k))
        k += 1
    return core
