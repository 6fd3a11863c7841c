"""The proof that a BFS result is right, made from the result and the graph alone, and the repair of one that is not.

A result is certified when only the root has level 0, every other reached vertex has a parent one level nearer over a
real edge, and no edge leads more than one level further. Then every value is the length of a real path and none can be
shortened, whoever computed it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.algorithms.bfs_async import AsyncBfs
from cpu_engine.algorithms.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from cpu_engine.kernels.witness import certify_step, revoke_unwitnessed_step

CLAIMS = (
    "reached vertices without a parent one step nearer",
    "edges that lead more than one level further",
    "vertices that wrongly are, or are not, the root",
    "unreached vertices with a parent or an impossible level",
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
            f"{count} {claim}"
            + ("" if graph is None else f" (vertex {int(graph.user_ids[graph.user_position[example]])} for one)")
            for count, claim, example in zip(self.findings, CLAIMS, self.examples, strict=True)
            if count
        ]
        return "; ".join(wrong) if wrong else "every level has a witness and no edge can improve one"


def certify(graph: Graph, level: np.ndarray, parent: np.ndarray, root: int) -> Certificate:
    """Check a (level, parent) pair in internal ids against the graph."""
    threads = numba.get_num_threads()
    findings = np.zeros((threads, len(CLAIMS)), np.int64)
    example = np.full((threads, len(CLAIMS)), -1, np.int64)
    certify_step(graph.in_offsets, graph.in_sources, level, parent, root, findings, example)
    return Certificate(tuple(findings.sum(axis=0).tolist()), tuple(example.max(axis=0).tolist()))


@dataclass(frozen=True)
class Repair:
    """A result made exact: what was thrown away, and what the CPU set right by itself."""

    level: np.ndarray
    parent: np.ndarray
    revoked: int
    changed: int


def repair(graph: Graph, level: np.ndarray, root: int) -> Repair:
    """Throw away what no path supports and let the CPU recompute from what is left."""
    kept = level.copy()
    kept[root] = 0
    by_level = np.argsort(kept, kind="stable")
    revoked = revoke_unwitnessed_step(by_level, graph.in_offsets, graph.in_sources, kept, root)
    engine = AsyncBfs(CoreSplit(graph))
    engine.resume(kept, root)
    while engine.can_step():
        engine.step()
    right, parent = engine.finish()
    return Repair(right, parent, int(revoked), int(np.count_nonzero(right != level)))
