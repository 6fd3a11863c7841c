"""The proof of weakly connected components on ranks: no rank reads another's graph.

Masters send their label to all mirrors, once. No arc of any part may lead from one class to another, and a flood from
the vertices that name a class, over the arcs of all parts, must reach every vertex. No label may be larger than its
vertex. A vertex that is reached is connected to one that bears its own name and their label; so a label is its class's
smallest vertex, and a class is connected: the claims of ``check_components``, which hold here exactly when they hold
there. (A label that names a vertex of another class is "misnamed" there, "not connected to its label" here.)
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.components.check import ComponentsCheck
from cpu_engine.components.kernels.check import CROSSED, MISNAMED, UNCONNECTED
from cpu_engine.components.kernels.check_on_ranks import count_crossing_step, flood_step
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.copies import send_to_mirrors, share_findings, tell_masters, tell_mirrors


def check_components_on_ranks(part: Part, label: np.ndarray) -> Driver[ComponentsCheck]:
    """Check the masters' labels (internal ids) from all ranks together; the same on each."""
    masters, names = part.masters, part.internal_of[: part.masters]
    labels = np.zeros(part.size, np.int64)
    labels[:masters] = label
    findings, example = ComponentsCheck.start()
    wrong = np.flatnonzero((labels[:masters] < 0) | (labels[:masters] > names))
    if wrong.size:
        findings[MISNAMED], example[MISNAMED] = wrong.size, names[wrong[-1]]
    yield from send_to_mirrors(part, "all", (labels,))
    findings[CROSSED], at = count_crossing_step(part.out_offsets, part.out_targets, labels)
    example[CROSSED] = -1 if at < 0 else part.internal_of[at]
    counts, examples = yield from share_findings(findings, example)
    if not counts.any():
        mark = yield from _flood(part, labels[:masters] == names)
        left = np.flatnonzero(mark[:masters] == 0)
        findings[UNCONNECTED] = left.size
        example[UNCONNECTED] = names[left[-1]] if left.size else -1
        counts, examples = yield from share_findings(findings, example)
    return ComponentsCheck.of(counts, examples)


def _flood(part: Part, roots: np.ndarray) -> Driver[np.ndarray]:
    """Which copies the masters that are ``roots`` reach, by arcs of any direction; a round for every change of part."""
    mark, queue = np.zeros(part.size, np.uint8), np.empty(part.size, np.int32)
    mark[: part.masters] = roots
    tail = int(np.count_nonzero(roots))
    queue[:tail] = np.flatnonzero(roots)
    while True:
        tail = flood_step(
            part.out_offsets, part.out_targets, part.in_offsets, part.in_sources, mark, queue, tail
        )  # fmt: skip
        fresh = np.zeros(part.size, np.bool_)
        fresh[queue[:tail]] = True
        tail = 0
        for told, _ in (yield from tell_masters(part, "all", fresh.astype(np.int32))):
            new = told[mark[told] == 0]
            mark[new], fresh[new] = 1, True
            queue[tail : tail + new.size] = new
            tail += new.size
        mirrors = yield from tell_mirrors(part, "all", fresh)
        new = mirrors[mark[mirrors] == 0]
        mark[new] = 1
        queue[tail : tail + new.size] = new
        tail += new.size
        more = yield AllReduce(np.array([tail], np.int64), "max")
        if not more[0]:
            return mark
