"""The proof that a BFS result is right, made from the result and the graph alone.

A result is certified when only the root has level 0, every other reached vertex has a parent one level nearer over a
real edge, and no edge leads more than one level further. Then every value is the length of a real path and none can be
shortened, whoever computed it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.bfs.kernels.witness import certify_step
from cpu_engine.counted import plural
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small

CLAIMS = (  # of one finding, of several
    ("reached vertex without a parent one step nearer", "reached vertices without a parent one step nearer"),
    ("edge that leads more than one level further", "edges that lead more than one level further"),
    ("vertex that wrongly is, or is not, the root", "vertices that wrongly are, or are not, the root"),
    (
        "unreached vertex with a parent or an impossible level",
        "unreached vertices with a parent or an impossible level",
    ),
)


@dataclass(frozen=True)
class Certificate:
    """The findings; ``holds`` when there are none."""

    findings: tuple[int, ...]
    examples: tuple[int, ...]  # one internal vertex per kind of finding, -1 where there is none

    @property
    def holds(self) -> bool:
        return not any(self.findings)

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence on what is wrong; with the graph, one vertex of each kind is named by the user's id."""
        wrong = [
            plural(count, *claim)
            + ("" if graph is None else f" (vertex {int(graph.user_ids[graph.user_position[example]])} for one)")
            for count, claim, example in zip(self.findings, CLAIMS, self.examples, strict=True)
            if count
        ]
        return "; ".join(wrong) if wrong else "every level has a witness and no edge can improve one"


@alone_if_small
def certify(graph: Graph, level: np.ndarray, parent: np.ndarray, root: int) -> Certificate:
    """Check a (level, parent) pair in internal ids against the graph."""
    threads = numba.get_num_threads()
    findings = np.zeros((threads, len(CLAIMS)), np.int64)
    example = np.full((threads, len(CLAIMS)), -1, np.int64)
    certify_step(graph.in_offsets, graph.in_sources, level, parent, root, findings, example)
    return Certificate(tuple(findings.sum(axis=0).tolist()), tuple(example.max(axis=0).tolist()))
