"""Weighted or directed clustering of a few vertices, computed again from their neighbourhoods, without the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small

CLOSE = 1e-9
MOST_ARCS = 20_000  # around a vertex that is looked at: this is Python


@dataclass(frozen=True)
class ClusteringCheck:
    """How many of the vertices looked at have another coefficient."""

    wrong: int
    example: int  # internal id, -1 if there is none

    @property
    def holds(self) -> bool:
        return self.wrong == 0

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence."""
        named = f", vertex {int(graph.user_ids[graph.user_position[self.example]])} for one" if graph else ""
        return f"{self.wrong} coefficients are others{named}" if self.wrong else "those looked at are right"


@alone_if_small
def check_clustering_weighted(
    graph: Graph, coefficient: np.ndarray, *, count: int = 16, seed: int = 1
) -> ClusteringCheck:
    """Check a sample of the vertices around whom there are not too many arcs."""
    if not graph.n:
        return ClusteringCheck(0, -1)
    drawn = np.random.default_rng(seed).integers(0, graph.n, count)
    degree = graph.degree()
    chosen = [v for v in np.unique(drawn).tolist() if _arcs_around(graph, v, degree) <= MOST_ARCS]
    most = 1.0 if graph.weight is None else float(graph.weight.max()) or 1.0
    wrong = [v for v in chosen if abs(_again(graph, v, most) - coefficient[v]) > CLOSE]
    return ClusteringCheck(len(wrong), wrong[0] if wrong else -1)


def _arcs_around(graph: Graph, v: int, degree: np.ndarray) -> int:
    return int(degree[_row(graph, v)].sum() + degree[_in_row(graph, v)].sum())


def _again(graph: Graph, v: int, most: float) -> float:
    near = _neighbours(graph, v, most)
    total = 0.0
    for u, value in near.items():
        further = _neighbours(graph, u, most)
        total += value * sum(near[w] * further[w] for w in near.keys() & further.keys())
    out, back = set(_row(graph, v).tolist()) - {v}, set(_in_row(graph, v).tolist()) - {v}
    if not graph.directed:
        pairs = len(out) * (len(out) - 1)
    else:
        degree = len(out) + len(back)
        pairs = 2 * (degree * (degree - 1) - 2 * len(out & back))
    return total / pairs if total else 0.0


def _neighbours(graph: Graph, v: int, most: float) -> dict[int, float]:
    """Each neighbour but v itself, with the cube roots of the weights of the arcs from and to it."""
    found: dict[int, float] = {}
    begin = int(graph.out_offsets[v])
    for at, u in enumerate(_row(graph, v).tolist()):
        found[u] = np.cbrt((1 if graph.weight is None else graph.weight[begin + at]) / most)
    if graph.directed:
        for u in _in_row(graph, v).tolist():
            place = int(graph.out_offsets[u]) + int(np.searchsorted(_row(graph, u), v))
            found[u] = found.get(u, 0.0) + np.cbrt((1 if graph.weight is None else graph.weight[place]) / most)
    found.pop(v, None)
    return found


def _row(graph: Graph, v: int) -> np.ndarray:
    return graph.out_targets[graph.out_offsets[v] : graph.out_offsets[v + 1]]


def _in_row(graph: Graph, v: int) -> np.ndarray:
    return graph.in_sources[graph.in_offsets[v] : graph.in_offsets[v + 1]]
