"""The proof of shortest paths on ranks: each part checks its own arcs and masters; no rank reads another's graph.

Masters send distance and parent to all their mirrors, once. Every arc is in exactly one part, so together the parts
have looked at every arc, and a reached vertex needs one part that has a tight arc from its parent: the claims of
``check_sssp``, and the same counts. That parents lead to the root follows from the distances wherever a parent is truly
nearer. Only chains of parents that are as far as their children (weights of 0, or too small for the distance's last
digit) could be circles; they are followed, in as many rounds as they change parts. So a result holds here exactly when
it holds there; of parents that do not lead to the root fewer are counted, those on such chains.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.copies import gather_at_masters, send_to_mirrors, share_findings, tell_masters, tell_mirrors
from cpu_engine.sssp.check import PathCertificate
from cpu_engine.sssp.kernels.check import ROOTLESS, STRAY
from cpu_engine.sssp.kernels.check_on_ranks import (
    NEARER,
    WITNESSED,
    Claimed,
    check_arcs_step,
    follow_level_parents_step,
    judge_masters_step,
)


def check_sssp_on_ranks(part: Part, root: int, distance: np.ndarray, parent: np.ndarray) -> Driver[PathCertificate]:
    """Check the masters' distances and parents (internal ids) from all ranks together; the same on each."""
    assert part.out_weight is not None, "a part for shortest paths has weights"
    masters, names = part.masters, part.internal_of[: part.masters]
    real = distance.dtype.kind == "f"
    distances: np.ndarray = np.zeros(part.size, np.float64 if real else np.int64)
    parents = np.full(part.size, -1, np.int64)
    distances[:masters], parents[:masters] = distance, parent
    yield from send_to_mirrors(part, "all", (distances, parents))
    reached = np.isfinite(distances) if real else distances >= 0
    possible = (np.isposinf(distances) | (distances >= 0)) if real else distances >= -1
    largest = float(np.finfo(np.float64).max) if real else int(np.iinfo(np.int64).max)
    weight = part.out_weight.astype(np.float64, copy=False) if real else part.out_weight
    claimed = Claimed(distances, reached, parents)
    witness, level_parent = np.zeros(part.size, np.uint8), np.full(part.size, -1, np.int32)
    findings, example = PathCertificate.start(numba.get_num_threads())
    rows = (part.out_offsets, part.out_targets, weight)
    check_arcs_step(rows, part.internal_of, claimed, largest, witness, level_parent, findings, example)
    yield from gather_at_masters(part, "in", witness, np.bitwise_or)
    judge_masters_step(names, claimed, witness, root, findings, example)
    impossible = np.flatnonzero(~possible[:masters])
    findings[0, STRAY] += impossible.size
    if impossible.size:
        example[0, STRAY] = names[impossible[-1]]
    counts, examples = yield from share_findings(findings, example)
    if not counts.any():
        counts[ROOTLESS], examples[ROOTLESS] = yield from _find_rootless(part, root, witness, level_parent)
    return PathCertificate.of(counts, examples)


def _find_rootless(part: Part, root: int, witness: np.ndarray, level_parent: np.ndarray) -> Driver[tuple[int, int]]:
    """How many masters lead into a circle of parents that are all as far as their children, and one of them."""
    masters, names = part.masters, part.internal_of[: part.masters]
    doubtful = (witness[:masters] & (WITNESSED | NEARER)) == WITNESSED
    rooted = np.zeros(part.size, np.uint8)
    rooted[:masters] = ~doubtful | (names == root)
    left = yield AllReduce(np.array([np.count_nonzero(doubtful & (names != root))], np.int64))
    fresh = rooted.copy()
    path = np.empty(part.size, np.int32)
    while left[0]:
        rooted[(yield from tell_mirrors(part, "all", fresh != 0))] = 1
        fresh = np.zeros(part.size, np.uint8)
        follow_level_parents_step(level_parent, rooted, np.zeros(part.size, np.uint8), path, fresh)
        for told, _ in (yield from tell_masters(part, "in", fresh.astype(np.int32))):
            fresh[told] |= rooted[told] == 0
            rooted[told] = 1
        moved = yield AllReduce(np.array([np.count_nonzero(fresh[:masters])], np.int64))
        if not moved[0]:
            break
    rootless = np.flatnonzero(rooted[:masters] == 0)
    found = yield AllReduce(np.array([rootless.size], np.int64))
    count = int(found[0])
    one = yield AllReduce(np.array([names[rootless[-1]] if rootless.size else -1], np.int64), "max")
    return count, int(one[0])
