"""The proof of core numbers on ranks: each part counts among its own arcs; no rank reads another's graph.

Masters send their number to all mirrors, once; every arc is in exactly one part. None is too high: the parts' counts of
neighbours with at least a vertex's own number, added up at its master, are at least the number. None is too low: a
vertex must go when all of lower number are gone and those of its own number go in turn, each once it has no more
neighbours left than its number. Vertices of different numbers do not wait for each other in this, as those of lower
number count as gone from the start: if some of them were not, that finding alone refutes the result. So all numbers are
peeled at once, and the claims of ``check_k_core`` hold here exactly when they hold there.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.partition.part import Part
from cpu_engine.kcore.check import CoreNumbersCheck
from cpu_engine.kcore.kernels.check import TOO_HIGH, TOO_LOW
from cpu_engine.kcore.kernels.check_on_ranks import Peeling, count_witnesses_step, peel_step
from cpu_engine.ranks.copies import gather_at_masters, send_to_mirrors, share_findings, tell_masters, tell_mirrors


def check_k_core_on_ranks(part: Part, core: np.ndarray) -> Driver[CoreNumbersCheck]:
    """Check the masters' core numbers from all ranks together; the same on each. In-rows must be all neighbours."""
    masters, names = part.masters, part.internal_of[: part.masters]
    cores = np.zeros(part.size, np.int64)
    cores[:masters] = core
    findings, example = CoreNumbersCheck.start()
    _note(findings, example, TOO_LOW, names, cores[:masters] < 0)
    counts, examples = yield from share_findings(findings, example)
    if counts.any():
        return CoreNumbersCheck.of(counts, examples)
    yield from send_to_mirrors(part, "all", (cores,))
    left = np.zeros(part.size, np.int64)
    count_witnesses_step(part.in_offsets, part.in_sources, cores, left)
    yield from gather_at_masters(part, "in", left, np.add)
    _note(findings, example, TOO_HIGH, names, left[:masters] < cores[:masters])
    gone = yield from _peel(part, cores, left)
    _note(findings, example, TOO_LOW, names, gone[:masters] == 0)
    counts, examples = yield from share_findings(findings, example)
    return CoreNumbersCheck.of(counts, examples)


def _peel(part: Part, cores: np.ndarray, left: np.ndarray) -> Driver[np.ndarray]:
    """Which masters go, in as many rounds as one's going is heard of on other parts."""
    masters = part.masters
    peeling = Peeling(cores, left, np.zeros(part.size, np.uint8), np.zeros(part.size, np.int32))
    queue = np.empty(part.size, np.int32)
    due, mirrors = np.flatnonzero(left[:masters] <= cores[:masters]), queue[:0]
    while True:
        peeling.gone[due] = 1
        begun = np.concatenate((due.astype(np.int32), mirrors))
        queue[: begun.size] = begun
        tail = peel_step(part.out_offsets, part.out_targets, masters, peeling, queue, begun.size)
        fresh = np.zeros(part.size, np.bool_)
        fresh[queue[:tail]] = True
        mirrors = yield from tell_mirrors(part, "out", fresh)
        for told, lost in (yield from tell_masters(part, "in", peeling.owed)):
            left[told] -= lost
        peeling.owed[:] = 0
        due = np.flatnonzero((peeling.gone[:masters] == 0) & (left[:masters] <= cores[:masters]))
        more = yield AllReduce(np.array([due.size + mirrors.size], np.int64), "max")
        if not more[0]:
            return peeling.gone


def _note(findings: np.ndarray, example: np.ndarray, kind: int, names: np.ndarray, wrong: np.ndarray) -> None:
    """Count what is wrong among the masters."""
    found = np.flatnonzero(wrong)
    findings[kind] += found.size
    if found.size:
        example[kind] = names[found[-1]]
