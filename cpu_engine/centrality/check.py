"""Contradictions in betweenness and closeness, found without the code that made them.

Betweenness: give every vertex a random weight. The sum of weight times score must be what the inner vertices of all
shortest paths weigh, which is found by going outwards from each root only, with plain queues. A wrong score can hide
only behind another one or below the tolerance. It costs a plain search per root, so that for all roots of a large graph
it takes longer than the scores themselves. Closeness: a sample of vertices is searched again, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.centrality.kernels.betweenness_check import weigh_paths_step
from cpu_engine.centrality.kernels.closeness import search_alone_step
from cpu_engine.counted import plural
from cpu_engine.findings import for_one
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import threads_for

TOLERANCE = 1e-9  # relative; sums of many floats in another order
SAMPLE = 16
_BELOW = "score below 0 or not a number", "scores below 0 or not numbers"


@dataclass(frozen=True)
class CentralityCheck:
    """What was found wrong, in words, with an internal vertex as example (-1: none in particular)."""

    findings: tuple[tuple[str, int], ...]
    what: str  # was looked at

    @property
    def holds(self) -> bool:
        return not self.findings

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence; with the graph, examples are named by the user's id."""
        if self.holds:
            return self.what
        return "; ".join(text + for_one(graph, v) for text, v in self.findings)


def check_betweenness(
    graph: Graph, score: np.ndarray, *, roots: np.ndarray | None = None, scale: float = 1.0, seed: int = 0
) -> CentralityCheck:
    """Check scores made from the roots (internal ids; None: all), which were multiplied by ``scale``."""
    score = np.asarray(score)
    if score.shape != (graph.n,):
        return CentralityCheck(((f"{score.shape} scores for {graph.n} vertices", -1),), "")
    below = np.flatnonzero(~(score >= 0))
    if below.size:
        return CentralityCheck(((plural(below.size, *_BELOW), int(below[0])),), "")
    chosen = np.arange(graph.n) if roots is None else np.asarray(roots, np.int64).ravel()
    weight = np.random.default_rng(seed).uniform(0.5, 1.5, graph.n)
    right = scale * _weigh(graph, chosen, weight)
    found = float(score @ weight)
    if abs(found - right) > TOLERANCE * max(abs(right), abs(found)):
        return CentralityCheck(((f"randomly weighted, the scores sum to {found:.12g}, not {right:.12g}", -1),), "")
    some = plural(chosen.size, "root")
    return CentralityCheck((), f"randomly weighted, the scores sum to what all paths from {some} weigh")


def _weigh(graph: Graph, roots: np.ndarray, weight: np.ndarray) -> float:
    if not roots.size:
        return 0.0
    threads = min(numba.get_num_threads(), roots.size)
    places, numbers = np.empty((threads, 2, graph.n), np.int64), np.empty((threads, 2, graph.n), np.float64)
    found = np.zeros(roots.size, np.float64)
    with threads_for((graph.n + graph.m) * roots.size):
        weigh_paths_step(graph.out_offsets, graph.out_targets, roots, weight, places, numbers, found)
    return float(found.sum())


def check_closeness(
    graph: Graph,
    roots: np.ndarray,
    score: np.ndarray,
    *,
    harmonic: bool = False,
    improved: bool = True,
    sample: int | None = SAMPLE,
) -> CentralityCheck:
    """Check the scores of the listed vertices, as many as ``sample`` of them (None: all) by a search of their own."""
    roots, score = np.asarray(roots, np.int64).ravel(), np.asarray(score)
    if score.shape != roots.shape:
        return CentralityCheck(((f"{score.shape} scores for {roots.size} vertices", -1),), "")
    below = np.flatnonzero(~(score >= 0))
    if below.size:
        return CentralityCheck(((plural(below.size, *_BELOW), int(roots[below[0]])),), "")
    places = np.arange(roots.size)
    if sample is not None and sample < roots.size:
        places = np.sort(np.random.default_rng(roots.size).choice(roots.size, sample, replace=False))
    level, queue = np.empty(graph.n, np.int64), np.empty(graph.n, np.int64)
    wrong = []
    for i in places.tolist():
        search_alone_step(graph.in_offsets, graph.in_sources, roots[i], level, queue)
        distance = level[level > 0]
        if harmonic:
            right = float((1 / distance).sum())
        else:
            right = distance.size / max(1, int(distance.sum()))
            right *= distance.size / max(1, graph.user_ids.size - 1) if improved else 1.0
        if abs(right - float(score[i])) > TOLERANCE * right:
            wrong.append(int(roots[i]))
    differ = plural(len(wrong), "score differs", "scores differ")
    findings = ((f"{differ} when searched again", wrong[0]),) if wrong else ()
    same = plural(places.size, "vertex searched again has", "vertices searched again have")
    return CentralityCheck(findings, f"{same} the same score")
