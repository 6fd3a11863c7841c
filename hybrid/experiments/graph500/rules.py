"""Graph500's rules for a search tree and for shortest paths, judged from the input edge list and the result alone.

Vertices are the input's. Invariant: nothing here knows the graph that was built or the engine that searched it; what
breaks a rule raises NotCertified with the search key and the reason.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.kernels.tree_rules import check_edges_step, descend_step
from cpu_engine.graph.edges import EdgeList
from cpu_engine.sssp.kernels.path_rules import InputEdges, check_lengths_step
from hybrid.errors import NotCertified
from hybrid.terminal import plural

_ROUNDING = 1e-9  # of the longest distance: what adding weights in another order may change


def refusal(key: int | str, reason: str) -> NotCertified:
    """Why a run has no figures."""
    return NotCertified(
        f"search key {key}: {reason}; no figures are given for an invalid run",
        fix="run it again: a failure that comes back with the same scale and seed is a defect of Tandem, which these "
        "two reproduce; one that does not points at this machine's memory",
    )


def check_tree(edges: EdgeList, parent: np.ndarray, key: int) -> tuple[np.ndarray, int]:
    """The five rules of kernel 2; returns each vertex's depth, and how many edges the component has."""
    parent, depth = tree_depths(parent, key)
    confirmed, inside, wrong, example = _blank_findings(parent.size, key)
    narrow = depth.astype(np.int8) if depth.max() < np.iinfo(np.int8).max else depth  # a quarter of the cache
    check_edges_step(edges.src, edges.dst, parent, narrow, confirmed, inside, wrong, example)
    _refuse_edges(edges, key, "level", depth, wrong, example, "span more than one level")
    _refuse_made_up(key, parent, confirmed, "tree edges are not in the input")
    return depth, int(inside.sum())


def check_paths(edges: EdgeList, parent: np.ndarray, distance: np.ndarray, key: int) -> tuple[np.ndarray, int]:
    """The rules of kernel 3; returns each vertex's depth in the tree, and how many edges the component has.

    The parents form a tree under the key; the vertices in it, and no others, have a distance, the key's being 0; each
    tree edge is in the list and as long as the distances of its ends differ; every edge in the list has both ends in
    the tree, no farther apart than it is long, or neither.
    """
    assert edges.weight is not None
    parent, depth = tree_depths(parent, key)
    if distance[key] != 0:
        raise refusal(key, f"the distance of the search key is {distance[key]}, not 0")
    possible = np.where(parent == -1, np.isposinf(distance), np.isfinite(distance) & (distance >= 0))
    if not possible.all():
        v = int(np.argmin(possible))
        raise refusal(key, f"the distance of vertex {v} is {distance[v]}, which its place in the tree does not allow")
    confirmed, inside, wrong, example = _blank_findings(parent.size, key)
    slack = _ROUNDING * max(1.0, float(distance[parent != -1].max()))
    given = InputEdges(edges.src, edges.dst, edges.weight)
    check_lengths_step(given, parent, distance, slack, confirmed, inside, wrong, example)
    _refuse_edges(edges, key, "distance", distance, wrong, example, "are shorter than their ends are apart")
    _refuse_made_up(key, parent, confirmed, "tree edges are not in the input with the length that the distances say")
    return depth, int(inside.sum())


def tree_depths(parent: np.ndarray, key: int) -> tuple[np.ndarray, np.ndarray]:
    """The parents as int32, and each vertex's depth (-1: not in the tree), if the parents are a tree under the key."""
    n = parent.size
    if not -1 <= int(parent.min()) <= int(parent.max()) < n:
        raise refusal(key, "a parent is not a vertex")
    if parent[key] != key:
        raise refusal(key, f"the parent of the search key is {parent[key]}, not itself")
    parent = parent.astype(np.int32)
    depth = np.full(n, -1, np.int32)
    depth[key] = 0
    found = np.ones(numba.get_num_threads(), np.int64)
    last = 0
    while found.any():
        descend_step(parent, depth, last, found)
        last += 1
    lost = np.flatnonzero((parent != -1) & (depth == -1))
    if lost.size:
        raise refusal(
            key,
            f"{plural(lost.size, 'vertex does', 'vertices do')} not hang from the key, for example {lost[0]}: a cycle",
        )
    return parent, depth


def _blank_findings(n: int, key: int) -> tuple[np.ndarray, ...]:
    """Which vertices' tree edges were met, edges inside per thread, broken rules per thread, one edge of each."""
    threads = numba.get_num_threads()
    confirmed = np.zeros(n, np.uint8)
    confirmed[key] = 1
    wrong, example = np.zeros((threads, 2), np.int64), np.full((threads, 2), -1, np.int64)
    return confirmed, np.zeros(threads, np.int64), wrong, example


def _refuse_edges(
    edges: EdgeList, key: int, what: str, value: np.ndarray, wrong: np.ndarray, example: np.ndarray, too_far: str
) -> None:
    claims = ("lead out of the tree, which therefore does not span the component", too_far)
    for count, at, claim in zip(wrong.sum(axis=0).tolist(), example.max(axis=0).tolist(), claims, strict=True):
        if count:
            u, v = int(edges.src[at]), int(edges.dst[at])
            ends = f"{u} ({what} {value[u]}) - {v} ({what} {value[v]})"
            raise refusal(key, f"{count} input edges {claim}, for example {ends}")


def _refuse_made_up(key: int, parent: np.ndarray, confirmed: np.ndarray, claim: str) -> None:
    made_up = np.flatnonzero((parent != -1) & (confirmed == 0))
    if made_up.size:
        v = int(made_up[0])
        raise refusal(key, f"{made_up.size} {claim}, for example {parent[v]} - {v}")
