"""Communities of high modularity by Louvain's method (Blondel and others 2008), with a queue of vertices that may move.

Vertices move one by one to the community around them that adds most to the modularity, until no vertex gains. Then each
community is divided anew into parts (as Traag and others 2019 do), the parts become vertices, still in their
communities, and so on until nothing can be merged: merging parts, and not communities, leaves early mistakes open to
correction. The whole is repeated from the labels found while it gains.

Weights are the graph's, or 1. A directed graph is taken as undirected, u -> v and v -> u adding up. A self-loop counts
with both its ends. Invariant: the same graph, resolution and seed give the same labels, whatever the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.communities.kernels.louvain import (
    Weights,
    merge_communities_step,
    move_vertices_step,
    number_communities_step,
    refine_step,
)
from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small

WORTH_A_ROUND = 5e-4  # modularity that a round must gain for another to follow


@dataclass(frozen=True)
class LouvainResult:
    """``label`` = smallest internal id of the community; an isolated vertex, not in here, is one by itself."""

    label: np.ndarray  # int32[n]
    count: int  # communities among these vertices
    modularity: float
    levels: int  # times that parts were made vertices
    moves: int


@alone_if_small
def louvain(graph: Graph, *, resolution: float = 1.0, seed: int = 0) -> LouvainResult:
    """Communities and their modularity; a larger ``resolution`` makes smaller ones."""
    if not resolution >= 0:
        raise ValueError(f"resolution is {resolution}, not a number from 0 up")
    weights = _weights_of(graph)
    label = np.arange(graph.n, dtype=np.int32)
    if weights.whole <= 0:
        return LouvainResult(label, graph.n, 0.0, 0, 0)
    random = np.random.default_rng(seed)
    levels, moves, best = 0, 0, -np.inf
    while True:
        moved, merged = _round(weights, resolution, random, label)
        moves, levels = moves + moved, levels + merged
        reached = _modularity(weights, resolution, label)
        if reached < best + WORTH_A_ROUND:
            break
        best = reached
    first = np.unique(label, return_index=True)[1].astype(np.int32)  # labels are 0..count - 1 here
    return LouvainResult(first[label], first.size, reached, levels, moves)


def _round(weights: Weights, resolution: float, random: np.random.Generator, label: np.ndarray) -> tuple[int, int]:
    """Move, divide and merge from the given labels on until nothing can be merged; returns the moves and the merges."""
    community, where = label.copy(), np.arange(label.size, dtype=np.int32)
    moves, merges = 0, 0
    while True:
        moves += _move(weights, resolution, random, community)
        part = _divide(weights, resolution, random, community)
        _number(community)
        count = _number(part)
        if count == part.size:
            label[:] = community[where]
            return moves, merges
        weights = _merge(weights, part, count)
        merges += 1
        where = part[where]
        merged = np.empty(count, np.int32)
        merged[part] = community
        community = merged


def _number(community: np.ndarray) -> int:
    return int(number_communities_step(community, np.full(community.size, -1, np.int32)))


def _divide(weights: Weights, resolution: float, random: np.random.Generator, community: np.ndarray) -> np.ndarray:
    n = community.size
    order, part = random.permutation(n).astype(np.int32), np.arange(n, dtype=np.int32)
    refine_step(
        order, weights, float(resolution), community, part, weights.strength.copy(), np.ones(n, np.uint8),
        np.zeros(n, np.float64), np.empty(n, np.int32),
    )  # fmt: skip
    return part


def _move(weights: Weights, resolution: float, random: np.random.Generator, community: np.ndarray) -> int:
    n = community.size
    queue = random.permutation(n).astype(np.int32)
    inside = np.bincount(community, weights=weights.strength, minlength=n)
    waiting, near, touched = np.ones(n, np.uint8), np.zeros(n, np.float64), np.empty(n, np.int32)
    return int(move_vertices_step(weights, float(resolution), queue, waiting, community, inside, near, touched))


def _merge(weights: Weights, community: np.ndarray, count: int) -> Weights:
    members = np.argsort(community, kind="stable").astype(np.int32)
    begin = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(community, minlength=count), out=begin[1:])
    offsets, loops = np.zeros(count + 1, np.int64), np.zeros(count, np.float64)
    ids, weight = np.empty(weights.ids.size, np.int32), np.empty(weights.ids.size, np.float64)
    merge_communities_step(
        weights, community, begin, members, np.zeros(count, np.float64), np.empty(count, np.int32),
        offsets, ids, weight, loops,
    )  # fmt: skip
    strength = np.bincount(community, weights=weights.strength, minlength=count)
    size = offsets[-1]
    return Weights(offsets, ids[:size].copy(), weight[:size].copy(), loops, strength, float(strength.sum()))


def _weights_of(graph: Graph) -> Weights:
    """The graph's rows, a directed one's with the in-edges behind the out-edges."""
    arc_weight = np.ones(graph.m, np.float64) if graph.weight is None else graph.weight.astype(np.float64)
    unfit = np.flatnonzero(~((arc_weight >= 0) & np.isfinite(arc_weight)))
    if unfit.size:
        value, fix = float(arc_weight[unfit[0]]), "read the graph without weights"
        raise InputError("modularity needs finite weights from 0 up", value=value, fix=fix)
    if arc_weight.size and arc_weight.max() > np.finfo(np.float64).max / (4 * arc_weight.size):
        arc_weight = arc_weight / arc_weight.max()  # their sum would be infinite, and only shares of it count
    rows = np.repeat(np.arange(graph.n, dtype=np.int32), np.diff(graph.out_offsets))
    offsets, ids, weight = graph.out_offsets, graph.out_targets, arc_weight
    if graph.directed:
        rows, ids = np.concatenate([rows, ids]), np.concatenate([ids, rows])
        weight = np.concatenate([weight, weight])
        order = np.argsort(rows, kind="stable")
        rows, ids, weight = rows[order], ids[order], weight[order]
        offsets = graph.out_offsets + graph.in_offsets
    diagonal = np.where(ids == rows, weight, 0.0)
    loops = np.bincount(rows, weights=diagonal, minlength=graph.n) * (1 if graph.directed else 2)
    strength = np.bincount(rows, weights=weight - diagonal, minlength=graph.n) + loops
    return Weights(offsets, ids, weight, loops, strength, float(strength.sum()))


def _modularity(weights: Weights, resolution: float, label: np.ndarray) -> float:
    rows = np.repeat(label, np.diff(weights.offsets))
    own = np.repeat(np.arange(label.size, dtype=np.int32), np.diff(weights.offsets))
    inner = (rows == label[weights.ids]) & (own != weights.ids)
    share = np.bincount(label, weights=weights.strength) / weights.whole
    return float((weights.weight[inner].sum() + weights.loops.sum()) / weights.whole - resolution * (share @ share))
