"""The proof that a BFS result is right, made from the result and the graph alone.

A result is certified when only the root has level 0, every other reached vertex has a parent one level nearer over a
real edge, and no edge leads more than one level further. Then every value is the length of a real path and none can be
shortened, whatever code computed it.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.kernels.witness import certify_step
from cpu_engine.findings import Findings
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small


class Certificate(Findings):
    """The claims about a search."""

    claims = (
        ("reached vertex without a parent one step nearer", "reached vertices without a parent one step nearer"),
        ("edge that leads more than one level further", "edges that lead more than one level further"),
        ("vertex that wrongly is, or is not, the root", "vertices that wrongly are, or are not, the root"),
        (
            "unreached vertex with a parent or an impossible level",
            "unreached vertices with a parent or an impossible level",
        ),
    )
    sound = "every level has a witness and no edge can improve one"


@alone_if_small
def certify(graph: Graph, level: np.ndarray, parent: np.ndarray, root: int) -> Certificate:
    """Check a (level, parent) pair in internal ids against the graph."""
    findings, example = Certificate.start(numba.get_num_threads())
    certify_step(graph.in_offsets, graph.in_sources, level, parent, root, findings, example)
    return Certificate.of(findings, example)
