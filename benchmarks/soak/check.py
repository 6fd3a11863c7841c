"""Answers of the service beside the reference: what is wrong with one, or nothing. For ``bench soak``."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.soak.reference import Reference, modularity, push_rank

_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_RELATIVE_SHARED = 1e-5  # a worker adds ranks up in single precision; LDBC allows 1e-4
_GAP_TOLERANCE = 1e-4


def check_query(reference: Reference, kind: str, asked: dict[str, int], answer: dict[str, Any]) -> str:
    """What is wrong with the answer to a point query; empty: nothing."""
    level = reference.hops(asked["source"])
    if kind == "levels":
        right = np.bincount(level[level >= 0]).tolist()
        return "" if answer["sizes"] == right and answer["reached"] == sum(right) else f"sizes {answer['sizes'][:9]}"
    if kind == "neighbours":
        return _check_neighbours(reference, level, asked, answer)
    distance = int(level[reference.position(asked["target"])])
    right_distance = None if distance < 0 else distance
    if answer["distance"] != right_distance:
        return f"distance {answer['distance']} instead of {right_distance}"
    if kind == "distance":
        return ""
    path = answer["path"]
    if right_distance is None:
        return "" if path is None else "a path where there is none"
    at = np.searchsorted(reference.ids, path)
    ends = len(path) == distance + 1 and path[0] == asked["source"] and path[-1] == asked["target"]
    joined = bool(np.all(reference.cost(at[:-1], at[1:]) >= 0))
    return "" if ends and joined else f"this is no shortest path: {path[:9]}"


def _check_neighbours(reference: Reference, level: np.ndarray, asked: dict[str, int], answer: dict[str, Any]) -> str:
    inside = np.flatnonzero((level >= 0) & (level <= asked["hops"]))
    order = inside[np.lexsort((reference.ids[inside], level[inside]))]
    page = order[asked["offset"] : asked["offset"] + asked["limit"]]
    right = (reference.ids[page].tolist(), level[page].tolist(), inside.size)
    return "" if (answer["vertex"], answer["distance"], answer["total"]) == right else "other neighbours"


def check_run(
    reference: Reference, algorithm: str, options: dict[str, Any], source: int | None, rows: slice,
    arrays: dict[str, np.ndarray], facts: dict[str, Any],
) -> str:  # fmt: skip
    """What is wrong with some rows of one run's arrays; empty: nothing. Whole results are checked further."""
    whole = rows == slice(None)
    if not np.array_equal(arrays["vertex"], reference.ids[rows]):
        return "other vertices"
    if algorithm in ("bfs", "sssp"):
        assert source is not None
        return _check_tree(reference, algorithm, source, rows, arrays)
    if algorithm == "louvain":
        return _check_louvain(reference, options, arrays["community"], facts) if whole else ""
    if options.get("pagerank.definition") == "gap":
        return _check_settled(reference, options, arrays["rank"]) if whole else ""
    relative = _RELATIVE_SHARED if algorithm == "pagerank" and "npu.mode" in options else _RELATIVE
    for name, right in reference.expected(algorithm, options).items():
        given = np.asarray(arrays[name])
        same = _is_close(given, right[rows], relative) if right.dtype.kind == "f" else given == right[rows]
        if given.shape != right[rows].shape or not np.all(same):
            return f"another {name}"
    return ""


def _is_close(given: np.ndarray, right: np.ndarray, relative: float) -> bool:
    return given.shape == right.shape and np.allclose(given, right, rtol=relative, atol=_ABSOLUTE)


def _check_tree(reference: Reference, algorithm: str, source: int, rows: slice, arrays: dict[str, np.ndarray]) -> str:
    """Distances are the reference's; parents may be any that are as far as they should be."""
    by_weight = algorithm == "sssp"
    right = reference.costs(source) if by_weight else reference.hops(source)
    if not np.array_equal(arrays["distance" if by_weight else "level"], right[rows]):
        return "another distance"
    own, parent = np.arange(reference.n)[rows], np.asarray(arrays["parent"], np.int64)
    given = parent >= 0
    if not np.array_equal(given, right[rows] >= 0):
        return "only what is reached has a parent"
    root = own[given] == reference.position(source)
    if np.any(parent[given][root] != source):
        return "the source's parent is itself"
    below, above = own[given][~root], np.searchsorted(reference.ids, parent[given][~root])
    if np.any(above == reference.n) or np.any(reference.ids[above] != parent[given][~root]):
        return "a parent is no vertex"
    cost = reference.cost(above, below)
    if np.any(cost < 0):
        return "a parent without an edge"
    step = cost if by_weight else 1
    return "" if np.array_equal(right[above] + step, right[below]) else "a parent that is not on a shortest path"


def _check_louvain(reference: Reference, options: dict[str, Any], group: np.ndarray, facts: dict[str, Any]) -> str:
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    if not np.array_equal(group, reference.ids[first[inverse]]):
        return "a community is not called after its smallest vertex"
    found = modularity(reference, group, options.get("louvain.resolution", 1.0))
    return "" if abs(found - facts["modularity"]) < 1e-9 else f"modularity {facts['modularity']}, which is {found}"


def _check_settled(reference: Reference, options: dict[str, Any], rank: np.ndarray) -> str:
    again = push_rank(reference, rank, options.get("pagerank.damping", 0.85), spread=False)
    change = float(np.abs(again - rank).sum())
    return "" if change <= _GAP_TOLERANCE * (1 + 1e-6) else f"ranks change by {change:.3g}"
