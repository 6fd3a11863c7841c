"""Who owns which vertex: edge-balanced, contiguous ranges of the user's numbering.

The user's order keeps what locality the input has; where ids are scrambled, as in Kronecker graphs, it spreads the
hubs evenly. Invariant: a layout follows from the graph, the policy and the number of parts alone, and is the same
on every rank; ``owner_of[v]`` is the part p with ``bounds[p] <= user_position[v] < bounds[p + 1]``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph, require_narrow_ids
from cpu_engine.graph.partition.policies import arc_terms, check_policy, choose_grid, high_degree_threshold

_MAX_SHORT_PARTS = 1 << 16


@dataclass(frozen=True, eq=False)
class Layout:
    """The parts of a graph: how many, how arcs are dealt to them, and the owner of each vertex."""

    n: int
    m: int
    parts: int
    policy: str
    grid: tuple[int, int]  # rows, columns; part p is at (p // columns, p % columns)
    threshold: int  # uvc: in-degrees above it are high
    bounds: np.ndarray  # int64[parts + 1], positions in the user's order; empty ranges are allowed
    owner_of: np.ndarray  # uint16[n] (uint32 beyond 65,536 parts), by internal id; empty: no rank has it whole
    weighted: bool = False  # parts carry their arcs' weights
    symmetric: bool = False  # of a directed graph: every arc both ways, so that in-arcs are all neighbours


def make_layout(graph: Graph, policy: str, parts: int, *, weighted: bool = False, symmetric: bool = False) -> Layout:
    """The layout of this graph; reads its offsets and id map, none of its arcs.

    ``symmetric`` changes nothing for an undirected graph, which has every edge both ways already.
    """
    check_policy(policy)
    if parts < 1:
        raise InputError("a graph is cut into at least one part", value=parts, fix="ask for 1 or more")
    require_narrow_ids(graph, "parts")
    if weighted and graph.weight is None:
        raise InputError("the graph has no weights", fix="read it from a file that has a weight on every edge")
    symmetric = symmetric and graph.directed
    if weighted and symmetric:
        raise InputError("parts with every arc both ways carry no weights", fix="ask for one of the two")
    m = 2 * graph.m if symmetric else graph.m
    bounds = balanced_bounds(graph, parts)
    owner_type = np.uint16 if parts <= _MAX_SHORT_PARTS else np.uint32
    owner_of_position = np.repeat(np.arange(parts, dtype=owner_type), np.diff(bounds))
    return Layout(
        n=graph.n,
        m=m,
        parts=parts,
        policy=policy,
        grid=choose_grid(parts),
        threshold=high_degree_threshold(graph.n, m),
        bounds=bounds,
        owner_of=owner_of_position[graph.user_position],
        weighted=weighted,
        symmetric=symmetric,
    )


def balanced_bounds(graph: Graph, parts: int) -> np.ndarray:
    """Where to cut the user's order so that every range has about the same edges and vertices together.

    A vertex weighs one plus its degree (in and out of a directed graph), an isolated one nothing. Each cut is at the
    vertex border nearest to the ideal one.
    """
    before = np.zeros(graph.user_ids.size + 1, np.int64)
    before[graph.user_position.astype(np.int64) + 1] = graph.degree() + 1
    np.cumsum(before, out=before)
    ideal = before[-1] * np.arange(parts + 1) // parts
    after = np.minimum(np.searchsorted(before, ideal), graph.user_ids.size)
    earlier = np.maximum(after - 1, 0)
    bounds: np.ndarray = np.where(ideal - before[earlier] < before[after] - ideal, earlier, after)
    bounds[0], bounds[-1] = 0, graph.user_ids.size
    return bounds.astype(np.int64)


def layout_terms(layout: Layout, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """The policy's two terms per vertex, as the kernels take them."""
    in_degree = graph.degree() if layout.symmetric else np.diff(graph.in_offsets)
    return arc_terms(layout.policy, layout.owner_of, in_degree, layout.grid[1], layout.threshold)
