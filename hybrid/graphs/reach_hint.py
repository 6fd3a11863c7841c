"""A hint for searches that hardly left their source: perhaps the graph's edges have no direction.

A directed graph may well have such vertices, so this is advice and never an error. The look at both directions ends
after ``LOOK`` vertices, so that it costs next to nothing on any graph.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cpu_engine.graph.graph import Graph
from hybrid.terminal import count, plural

FEW = 100  # vertices: a search that reached more went somewhere
FAR_MORE = 4  # times as many without directions
LOOK = 1000
_TRIED = 8  # searches that are looked at


def direction_hint(graph: Graph, searches: Iterable[tuple[int, int]]) -> str | None:
    """What to try if a search (user id of its source, vertices reached) would reach far more without directions."""
    if not graph.directed:
        return None
    short = [(source, reached) for source, reached in searches if reached <= FEW]
    for source, reached in short[:_TRIED]:
        root = graph.internal_id(source)
        if root < 0:  # an isolated vertex reaches itself, either way
            continue
        found, whole = undirected_reach(graph, root, max(LOOK, FAR_MORE * reached))
        if found >= FAR_MORE * reached:
            more = count(found) if whole else f"at least {count(found)}"
            others = f" ({len(short)} sources reached {FEW} or fewer)" if len(short) > 1 else ""
            return (
                f"from {source} only {plural(reached, 'vertex')} can be reached along the edges' directions, {more} "
                f"without them{others}: if the edges have no direction, use --set graph.directed=false"
            )
    return None


def undirected_reach(graph: Graph, root: int, limit: int) -> tuple[int, bool]:
    """Vertices that edges in either direction connect to ``root``, up to about ``limit``, and whether these are all."""
    seen = np.array([root], np.int64)
    frontier = seen
    while frontier.size and seen.size < limit:
        near = np.concatenate([_neighbours(graph, frontier, limit), seen])
        frontier = np.setdiff1d(near, seen)
        seen = np.union1d(seen, frontier)
    return int(min(seen.size, limit)) if frontier.size else int(seen.size), not frontier.size


def _neighbours(graph: Graph, vertices: np.ndarray, limit: int) -> np.ndarray:
    """Neighbours of the vertices in both directions; of a long row the first ``limit`` suffice."""
    parts = []
    for offsets, targets in ((graph.out_offsets, graph.out_targets), (graph.in_offsets, graph.in_sources)):
        parts += [targets[offsets[v] : min(offsets[v + 1], offsets[v] + limit)] for v in vertices[:limit].tolist()]
    near: np.ndarray = np.concatenate(parts).astype(np.int64)
    return near
