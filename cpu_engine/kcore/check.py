"""The proof that numbers are core numbers, made from them and the graph alone.

None is too high: each vertex has as many neighbours with at least its own number as the number says. None is too low:
taken away by rising number, each vertex goes while it has no more neighbours left than its number. The graph's own rows
are read, both directions merged; nothing is shared with the algorithm.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.findings import Findings
from cpu_engine.graph.graph import Graph
from cpu_engine.kcore.kernels.check import BothRows, check_peeling_step, check_witnesses_step
from cpu_engine.threads import alone_if_small


class CoreNumbersCheck(Findings):
    """The claims about core numbers."""

    claims = (
        ("core number that is too high", "core numbers that are too high"),
        ("core number that is too low", "core numbers that are too low"),
    )
    sound = "every core number has its witnesses and its turn in the peeling"


@alone_if_small
def check_k_core(graph: Graph, core: np.ndarray) -> CoreNumbersCheck:
    """Check core numbers in internal ids; self-loops, directions and parallel edges do not count."""
    findings, example = CoreNumbersCheck.start()
    negative = np.flatnonzero(core < 0)
    if negative.size:
        return CoreNumbersCheck((0, int(negative.size)), (-1, int(negative[0])))
    row, left = np.empty(int(graph.degree().max(initial=0)), np.int64), np.empty(graph.n, np.int64)
    rows = BothRows(graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources)
    check_witnesses_step(rows, core, row, left, findings, example)
    rising, gone, queue = np.argsort(core, kind="stable"), np.zeros(graph.n, np.uint8), np.empty(graph.n, np.int64)
    check_peeling_step(rows, core, rising, left, gone, queue, row, findings, example)
    return CoreNumbersCheck.of(findings, example)
