"""Shortest paths by way of a skeleton: the graph without its dead ends, and with an edge for every chain.

Made for graphs most of whose vertices have one or two neighbours, as on road maps; distances and parents are those of
the graph itself. Only where sums do not depend on the order of summing (integers), every edge has its reverse, and no
edge is without length (a tight edge then leads to a vertex farther away, so that any choice of parents is a tree).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.sssp.delta import MIN_DEGREE, Buckets
from cpu_engine.sssp.kernels.skeleton import (
    LONGEST,
    NOWHERE,
    Edges,
    Ways,
    draw_skeleton_step,
    hang_dead_ends_step,
    peel_dead_ends_step,
    settle_all_step,
    settle_piece_step,
    walk_piece_step,
)
from cpu_engine.sssp.rows import WeightedRows

MIN_SHARE = 1 / 4  # of the vertices have at most two neighbours, or a skeleton does not pay
LARGEST_SHARE = 1 / 16  # of the vertices in a piece: the root's is walked by one thread
SMALL_PIECE = 1024  # is walked quickly whatever its share
LONGEST_SUM = 2**62
_KEPT = "_skeleton"


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Junctions and the ways between them, as rows like a graph's, lightest first; and where all other vertices are."""

    n: int  # junctions
    m: int
    out_offsets: np.ndarray
    out_targets: np.ndarray
    weight: np.ndarray  # int64, lengths of ways
    hops: np.ndarray  # int32, aligned: the first vertex on the way
    members: np.ndarray  # int32[n]: the graph's vertex that is this junction
    junction: np.ndarray  # int32 per vertex of the graph: which junction it is, negative: none
    others: np.ndarray  # int32: vertices that are no junctions, ascending,
    place: np.ndarray  # int32[others, 6]: and their places, see kernels/skeleton.py
    largest: int  # vertices in a piece
    edges: Edges  # the graph's, of weight 1 each where it has none
    directed: bool = False

    @cached_property
    def rows(self) -> WeightedRows:
        """As a search wants them; the order within a row stays, so ``hops`` are aligned."""
        return WeightedRows(cast(Graph, self))  # which has all that rows are made of


def prepare_skeleton(rows: WeightedRows) -> Skeleton | None:
    """The graph's skeleton, if it gains by one; made at the first call, and kept as long as the rows are."""
    if _KEPT not in rows.__dict__:
        rows.__dict__[_KEPT] = find_skeleton(rows)
    skeleton: Skeleton | None = rows.__dict__[_KEPT]
    return skeleton


def find_skeleton(rows: WeightedRows, *, min_share: float = MIN_SHARE) -> Skeleton | None:
    """The graph's skeleton; None where it has none, or would not gain by it."""
    graph = rows.graph
    if rows.is_float or graph.directed or graph.n == 0 or graph.m >= MIN_DEGREE * graph.n:
        return None
    if np.count_nonzero(np.diff(graph.out_offsets) <= 2) < min_share * graph.n:
        return None
    if rows.longest_path() >= LONGEST_SUM or (graph.weight is not None and graph.weight.min() <= 0):
        return None
    skeleton, longest = _draw(rows)
    small = skeleton.largest <= max(SMALL_PIECE, LARGEST_SHARE * graph.n)
    return skeleton if small and longest < LONGEST else None


def _draw(rows: WeightedRows) -> tuple[Skeleton, int]:
    """The skeleton, and the longest way from a vertex to an anchor."""
    graph = rows.graph
    n, m = graph.n, graph.m
    weight = np.ones(m, np.int64) if graph.weight is None else graph.weight
    edges = Edges(graph.out_offsets, graph.out_targets, weight)
    junction, left, order, members, piece = (np.empty(n, np.int32) for _ in range(5))
    place = np.full((n, 6), NOWHERE, np.int32)
    ways = Ways(np.empty(n + 1, np.int64), np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m, np.int32))
    peeled = peel_dead_ends_step(edges.offsets, edges.targets, junction, left, order)
    count = draw_skeleton_step(edges, junction, left, members, place, piece, ways)
    longest, largest = hang_dead_ends_step(edges, junction, order[:peeled], place, piece)
    kept, others = int(ways.begin[count]), np.flatnonzero(junction < 0).astype(np.int32)
    skeleton = Skeleton(
        n=count,
        m=kept,
        out_offsets=ways.begin[: count + 1].copy(),
        out_targets=ways.ends[:kept].copy(),
        weight=ways.lengths[:kept].copy(),
        hops=ways.hops[:kept].copy(),
        members=members[:count].copy(),
        junction=junction,
        others=others,
        place=place[others],
        largest=int(largest),
        edges=edges,
    )
    return skeleton, int(longest)


class SkeletonSearch:
    """Runs on a skeleton, with the buffers that they need. ``width`` is a bucket's."""

    def __init__(self, skeleton: Skeleton, width: float) -> None:
        self._skeleton, self._rows, self.width = skeleton, skeleton.rows, width
        self._dtype: type = np.int32 if self._rows.max_weight < LONGEST else np.int64
        self._solver = self._make_solver()
        room = skeleton.largest + 2
        self._seen, self._origin = np.empty(room, np.int32), np.empty(room, np.int32)
        self._reach = np.empty(room, np.int64)

    def run(self, root: int, distance: np.ndarray, parent: np.ndarray) -> tuple[int, int]:
        """Distances (int64) and parents of all of the graph's vertices; return (rounds, edges looked at)."""
        skeleton = self._skeleton
        count = walk_piece_step(root, skeleton.edges, skeleton.junction, self._seen, self._reach, self._origin)
        seen, reach, origin = self._seen[:count], self._reach[:count], self._origin[:count]
        inside = skeleton.junction[seen]
        at = inside >= 0
        steps, edges = self._search(inside[at], reach[at])
        solver = self._solver
        settle_all_step(
            self._rows.out, skeleton.hops, skeleton.members, skeleton.others, skeleton.place,
            solver.dist, solver.unreached, solver.lanes, distance, parent,
        )  # fmt: skip
        settle_piece_step(seen, reach, origin, distance, parent)
        return steps, edges + count

    def _search(self, junctions: np.ndarray, distances: np.ndarray) -> tuple[int, int]:
        while True:
            steps, edges = 0, 0
            solver = self._solver
            solver.start_from(junctions.tolist(), distances.tolist())
            while solver.waiting:
                effort = solver.step()
                steps += effort.rounds
                edges += effort.edges
            if self._rows.too_far(solver.dist, solver.unreached) is None:
                return steps, edges
            self._dtype = np.int64
            self._solver = self._make_solver()

    def _make_solver(self) -> Buckets:
        return Buckets(self._rows, self._dtype, self.width, ())
