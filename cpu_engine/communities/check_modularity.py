"""Communities and their modularity looked at from the definition, without the code that made them.

Checked: labels are consistent (every community has the smallest of its vertices as label, the count is right) and the
modularity is what the edges say. That no better communities exist is not checked: no method can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small

TOLERANCE = 1e-9


@dataclass(frozen=True)
class ModularityCheck:
    """What was found wrong, in words, and the modularity as recomputed."""

    findings: tuple[str, ...]
    modularity: float

    @property
    def holds(self) -> bool:
        return not self.findings

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence."""
        return "; ".join(self.findings) or f"labels are consistent, and the modularity is {self.modularity:.6f}"


@alone_if_small
def check_modularity(
    graph: Graph, label: np.ndarray, count: int, modularity: float, *, resolution: float = 1.0
) -> ModularityCheck:
    """Check labels (smallest internal id of each community), their count and the modularity that is claimed."""
    label, findings = np.asarray(label), []
    if label.shape != (graph.n,):
        return ModularityCheck((f"{label.shape} labels for {graph.n} vertices",), float("nan"))
    if graph.n and not 0 <= int(label.min()) <= int(label.max()) < graph.n:
        return ModularityCheck((f"labels outside 0..{graph.n - 1}",), float("nan"))
    everyone = np.arange(graph.n)
    strays = np.flatnonzero((label > everyone) | (label[label] != label))
    if strays.size:
        named = int(graph.user_ids[graph.user_position[strays[0]]])
        several = plural(strays.size, "label is", "labels are")
        findings.append(f"{several} not the smallest vertex of a community (vertex {named} for one)")
    if np.unique(label).size != count:
        findings.append(f"the labels name {plural(np.unique(label).size, 'community', 'communities')}, not {count:,}")
    right = recompute_modularity(graph, label, resolution)
    if not abs(right - modularity) <= TOLERANCE:
        findings.append(f"the modularity is {right:.12g}, not {modularity:.12g}")
    return ModularityCheck(tuple(findings), right)


def recompute_modularity(graph: Graph, label: np.ndarray, resolution: float = 1.0) -> float:
    """The sum over communities of (edges inside / edges) - resolution * (ends inside / ends) ** 2, weighted.

    Edges of an undirected graph are stored twice, loops once; of a directed one every arc is an edge. 0 without edges.
    """
    source = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    target = graph.out_targets
    weight = np.ones(graph.m) if graph.weight is None else graph.weight.astype(np.float64)
    if weight.max(initial=0.0) > 1e290:  # sums of such numbers may be infinite; modularity has no unit
        weight = weight / weight.max()
    if not graph.directed:
        weight = np.where(source == target, weight, weight / 2)
    edges = weight.sum()
    if not edges > 0:
        return 0.0
    inside = weight[label[source] == label[target]].sum()
    ends = np.bincount(label[source], weight, graph.n) + np.bincount(label[target], weight, graph.n)
    return float(inside / edges - resolution * ((ends / (2 * edges)) ** 2).sum())
