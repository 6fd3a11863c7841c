"""The proof that labels are the weakly or strongly connected components, made from the labels and the graph alone.

Weakly: no arc leads from one class to another, and each class is reached as a whole from its label. Strongly: each
vertex of a class reaches the label and is reached from it within the class, and no cycle leads through several classes.
Labels must be their classes' smallest ids.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.components.kernels.check import (
    check_acyclic_step,
    check_labels_step,
    check_strong_step,
    check_weak_step,
)
from cpu_engine.findings import Findings
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small


class ComponentsCheck(Findings):
    """The claims about labels of components."""

    claims = (
        ("arc between components", "arcs between components"),
        ("vertex that is not connected to its label", "vertices that are not connected to their label"),
        (
            "vertex whose label is not the smallest of the component",
            "vertices whose label is not the smallest of the component",
        ),
        ("component on a cycle with others", "components on a cycle with others"),
    )
    sound = "every component is connected, and no two belong together"


@alone_if_small
def check_components(graph: Graph, label: np.ndarray) -> ComponentsCheck:
    """Check labels of weakly connected components."""
    return _check(graph, label, strong=False)


@alone_if_small
def check_strong_components(graph: Graph, label: np.ndarray) -> ComponentsCheck:
    """Check labels of strongly connected components; of an undirected graph these are its components."""
    return _check(graph, label, strong=graph.directed)


def _check(graph: Graph, label: np.ndarray, strong: bool) -> ComponentsCheck:
    findings, example = ComponentsCheck.start()
    check_labels_step(label, findings, example)
    if not findings.any():  # with wrong labels, floods would begin nowhere or leave the arrays
        mark, queue = np.zeros(graph.n, np.uint8), np.empty(graph.n, np.int64)
        flood = check_strong_step if strong else check_weak_step
        flood(
            graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources,
            label, mark, queue, findings, example,
        )  # fmt: skip
        if strong:
            member = np.argsort(label, kind="stable")
            begin = np.searchsorted(label[member], np.arange(graph.n + 1))
            arriving = np.zeros(graph.n, np.int64)
            check_acyclic_step(
                graph.out_offsets, graph.out_targets, label, begin, member, arriving, queue, findings, example
            )
    return ComponentsCheck.of(findings, example)
