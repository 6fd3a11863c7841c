"""The last word on a traversal: its proof, or - for what has none - the CPU's own recomputation and a second proof."""

from __future__ import annotations

import logging

import numpy as np

from cpu_engine.algorithms.certificate import certify, repair
from cpu_engine.graph.graph import Graph
from hybrid.errors import NotCertified
from hybrid.trace import Trace
from hybrid.traverse import Traversed

_log = logging.getLogger(__name__)


def prove_or_repair(graph: Graph, found: Traversed, root: int, core_size: int, trace: Trace) -> int:
    """Make ``found`` certified in place; return how many values had to change (0: it was right as it came).

    Core values that turn out to be no path's length count as rejected: they came from the worker.
    """
    with trace.span("coordinator", "certify"):
        certificate = certify(graph, found.level, found.parent, root)
    if certificate.holds:
        return 0
    _log.warning("not certified, recomputing: %s", certificate.explain(graph))
    with trace.span("coordinator", "repair", findings=certificate.explain(graph)) as learned:
        mended = repair(graph, found.level, root)
        again = certify(graph, mended.level, mended.parent, root)
        learned.update(revoked=mended.revoked, changed=mended.changed)
    if not again.holds:
        raise NotCertified(
            f"{again.explain(graph)}, even after the CPU recomputed everything that lacked a proof",
            fix="this is a defect of Tandem: please report it with the configuration and the graph",
        )
    core = slice(0, core_size)
    false = (found.level[core] >= 0) & (found.level[core] != mended.level[core])
    found.npu.values_rejected += int(np.count_nonzero(false))
    found.level, found.parent = mended.level, mended.parent
    return mended.changed
