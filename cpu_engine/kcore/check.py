"""The proof that numbers are core numbers, made from them and the graph alone.

None is too high: each vertex has as many neighbours with at least its own number as the number says. None is too low:
taken away by rising number, each vertex goes while it has no more neighbours left than its number. The graph's own rows
are read, both directions merged; nothing is shared with the algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.graph.graph import Graph
from cpu_engine.kcore.kernels.check import check_peeling_step, check_witnesses_step
from cpu_engine.threads import alone_if_small

CLAIMS = (  # of one finding, of several
    ("core number that is too high", "core numbers that are too high"),
    ("core number that is too low", "core numbers that are too low"),
)


@dataclass(frozen=True)
class CoreNumbersCheck:
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
        return "; ".join(wrong) if wrong else "every core number has its witnesses and its turn in the peeling"


@alone_if_small
def check_k_core(graph: Graph, core: np.ndarray) -> CoreNumbersCheck:
    """Check core numbers in internal ids; self-loops, directions and parallel edges do not count."""
    findings, example = np.zeros(len(CLAIMS), np.int64), np.full(len(CLAIMS), -1, np.int64)
    negative = np.flatnonzero(core < 0)
    if negative.size:
        return CoreNumbersCheck((0, int(negative.size)), (-1, int(negative[0])))
    listed, left = np.empty(int(graph.degree().max(initial=0)), np.int64), np.empty(graph.n, np.int64)
    out_offsets, out_targets, in_offsets, in_sources = (
        graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources,
    )  # fmt: skip
    check_witnesses_step(out_offsets, out_targets, in_offsets, in_sources, core, listed, left, findings, example)
    rising, gone, queue = np.argsort(core, kind="stable"), np.zeros(graph.n, np.uint8), np.empty(graph.n, np.int64)
    check_peeling_step(
        out_offsets, out_targets, in_offsets, in_sources, core, rising, left, gone, queue, listed, findings, example
    )
    return CoreNumbersCheck(tuple(findings.tolist()), tuple(example.tolist()))
