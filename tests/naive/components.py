"""Connected components by plain search: for each vertex, the smallest vertex of its component."""

from __future__ import annotations

Pairs = list[tuple[int, int]]


def _reach(start: int, neighbours: dict[int, set[int]]) -> set[int]:
    reached, todo = {start}, [start]
    while todo:
        for v in neighbours[todo.pop()] - reached:
            reached.add(v)
            todo.append(v)
    return reached


def weak(vertices: list[int], edges: Pairs) -> dict[int, int]:
    neighbours: dict[int, set[int]] = {v: set() for v in vertices}
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return {v: min(_reach(v, neighbours)) for v in vertices}


def strong(vertices: list[int], edges: Pairs) -> dict[int, int]:
    """Who reaches v and is reached from it."""
    after: dict[int, set[int]] = {v: set() for v in vertices}
    before: dict[int, set[int]] = {v: set() for v in vertices}
    for u, v in edges:
        after[u].add(v)
        before[v].add(u)
    return {v: min(_reach(v, after) & _reach(v, before)) for v in vertices}
