"""Contradictions in triangle counts and clustering coefficients, found without the code that made them.

There is no short proof of a triangle count. What is checked: the total is a third of the sum, no vertex has more than
its degree allows, and a sample of vertices - the largest hubs and others drawn at random - is counted again the slow
way, vertex by vertex over all its neighbours' rows. ``sample=None`` counts every vertex again, which is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.findings import for_one
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small
from cpu_engine.triangles.kernels.check import recount_step

HUBS_RECOUNTED = 4
SAMPLE = 64


@dataclass(frozen=True)
class CountCheck:
    """What was found wrong, in words, with an internal vertex as example (-1: none in particular)."""

    findings: tuple[tuple[str, int], ...]
    recounted: int

    @property
    def holds(self) -> bool:
        return not self.findings

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence; with the graph, examples are named by the user's id."""
        if self.holds:
            same = plural(self.recounted, "vertex counted again has", "vertices counted again have")
            return f"the sums agree, and {same} the same counts"
        return "; ".join(what + for_one(graph, v) for what, v in self.findings)


@alone_if_small
def check_triangles(graph: Graph, count: int, per_vertex: np.ndarray, *, sample: int | None = SAMPLE) -> CountCheck:
    """Check a total and the counts per internal vertex."""
    per_vertex = np.asarray(per_vertex)
    if per_vertex.shape != (graph.n,):
        return CountCheck(((f"{per_vertex.shape} counts for {graph.n} vertices", -1),), 0)
    findings = []
    if int(per_vertex.sum()) != 3 * count:
        findings.append(
            (f"the corners are {int(per_vertex.sum())}, not three for each of {plural(count, 'triangle')}", -1)
        )
    chosen = choose_sample(graph, sample)
    degree, _, pairs = recount(graph, chosen)
    _note(findings, ("negative count", "negative counts"), np.arange(graph.n), per_vertex < 0)
    above = ("count above what the degree allows", "counts above what the degree allows")
    _note(findings, above, chosen, per_vertex[chosen] > degree * (degree - 1) // 2)
    other = ("count that differs when counted again", "counts that differ when counted again")
    _note(findings, other, chosen, 2 * per_vertex[chosen] != pairs)
    return CountCheck(tuple(findings), chosen.size)


@alone_if_small
def check_clustering(graph: Graph, coefficient: np.ndarray, *, sample: int | None = SAMPLE) -> CountCheck:
    """Check local clustering coefficients (LDBC's definition) of the internal vertices."""
    coefficient = np.asarray(coefficient)
    if coefficient.shape != (graph.n,):
        return CountCheck(((f"{coefficient.shape} coefficients for {graph.n} vertices", -1),), 0)
    findings: list[tuple[str, int]] = []
    chosen = choose_sample(graph, sample)
    degree, arcs, _ = recount(graph, chosen)
    right = np.where(degree > 1, arcs / np.maximum(degree * (degree - 1), 1), 0.0)
    outside = ("coefficient outside 0..1", "coefficients outside 0..1")
    _note(findings, outside, np.arange(graph.n), ~((coefficient >= 0) & (coefficient <= 1)))
    differs = ~np.isclose(coefficient[chosen], right, rtol=1e-12, atol=0)
    other = ("coefficient that differs when counted again", "coefficients that differ when counted again")
    _note(findings, other, chosen, differs)
    return CountCheck(tuple(findings), chosen.size)


def choose_sample(graph: Graph, sample: int | None) -> np.ndarray:
    """Internal vertices to look at again: all (None), or the first hubs and others at random, always the same ones."""
    if sample is None or sample >= graph.n:
        return np.arange(graph.n)
    drawn = np.random.default_rng(graph.n).choice(graph.n, sample, replace=False)
    return np.unique(np.concatenate([np.arange(min(HUBS_RECOUNTED, sample)), drawn]))


def recount(graph: Graph, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degree, arcs among the neighbours, and joined ordered pairs of them (twice the triangles), of each vertex."""
    degree, arcs, pairs = (np.zeros(vertices.size, np.int64) for _ in range(3))
    stamp, met = np.full(graph.n, -1, np.int64), np.full(graph.n, -1, np.int64)
    recount_step(
        vertices, graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources, stamp, met, degree, arcs,
        pairs,
    )  # fmt: skip
    return degree, arcs, pairs


def _note(findings: list[tuple[str, int]], what: tuple[str, str], vertices: np.ndarray, wrong: np.ndarray) -> None:
    if wrong.any():
        findings.append((plural(wrong.sum(), *what), int(vertices[np.flatnonzero(wrong)[0]])))
