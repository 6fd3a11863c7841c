"""Whether ranks are PageRanks, found out on ranks: each part pushes along its own arcs; no rank reads another's graph.

The iterations of ``check_pagerank``, by the same rule and with the same bounds: masters send what they pass on to the
mirrors with out-arcs, what a part's arcs bring goes to the masters. Sums are made in another order than on one rank, so
a residual at the very edge of what is allowed, to its last digits, may be judged differently; nothing else can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.partition.part import Part
from cpu_engine.pagerank.check import RELATIVE, ROUNDING, RankCheck
from cpu_engine.pagerank.kernels.check import push_shares_step
from cpu_engine.ranks.copies import by_rank, gather_at_masters, send_to_mirrors


@dataclass(frozen=True)
class Asked:
    """What the ranks are said to be; as ``check_pagerank`` has it."""

    definition: str = "ldbc"
    damping: float = 0.85
    iterations: int = 10
    tolerance: float = 1e-4
    change: float | None = None  # of a run that ended at its limit: how far its last iteration moved the ranks


def check_pagerank_on_ranks(part: Part, rank: np.ndarray, isolated_rank: float, asked: Asked) -> Driver[RankCheck]:
    """Check the masters' ranks from all ranks together; the same on each."""
    vertices, names = int(part.layout.bounds[-1]), part.internal_of[: part.masters]
    everyone = np.append(rank.astype(np.float64), isolated_rank)  # the last one counts at every rank, wrong or right
    lowest = (1 - asked.damping) / max(vertices, 1) * (1 - ROUNDING)
    wrong = np.flatnonzero(~(np.isfinite(everyone) & (everyone >= lowest))) if vertices else np.empty(0, np.int64)
    if asked.iterations == 0 and asked.definition == "ldbc":
        wrong = wrong[everyone[wrong] != 1 / vertices]
    mine = wrong[wrong < names.size]
    alone = bool(wrong.size > mine.size) and part.part == 0
    counts = yield AllReduce(np.array([mine.size + alone], np.int64))
    impossible = int(counts[0])
    if impossible:
        one = yield AllReduce(np.array([names[mine[0]] if mine.size else -1], np.int64), "max")
        return RankCheck(impossible, 1.0, 0.0, 0.0, int(one[0]))
    degree = yield from _out_degrees(part)
    isolated = vertices - part.n
    if asked.definition == "gap":
        again = yield from _iterate(part, degree, everyone, asked.damping, spread=False)
        moved = np.abs(again - everyone) * np.append(np.ones(names.size), isolated if part.part == 0 else 0)
        sums = yield from by_rank(part, [float(moved.sum())])
        example = yield from _furthest(part, moved)
        allowed = max(asked.tolerance, asked.change or 0.0, ROUNDING)
        return RankCheck(0, 1.0, math.fsum(sums[:, 0]), allowed, example)
    again = np.full(names.size + 1, 1 / max(vertices, 1))
    for _ in range(asked.iterations):
        again = yield from _iterate(part, degree, again, asked.damping, spread=True)
    deviation = np.abs(everyone / again - 1) if vertices else np.zeros(1)
    sums = yield from by_rank(part, [float(rank.sum()), float(deviation.max())])
    mass = math.fsum(sums[:, 0]) + isolated * isolated_rank if vertices else 1.0
    example = yield from _furthest(part, deviation)
    return RankCheck(0, mass, float(sums[:, 1].max()), RELATIVE, example)


def _out_degrees(part: Part) -> Driver[np.ndarray]:
    """How many arcs leave each vertex on all parts together, for every copy that has out-arcs."""
    degree = np.diff(part.out_offsets).astype(np.int64)
    yield from gather_at_masters(part, "out", degree, np.add)
    yield from send_to_mirrors(part, "out", (degree,))
    return degree


def _iterate(
    part: Part, degree: np.ndarray, everyone: np.ndarray, damping: float, *, spread: bool
) -> Driver[np.ndarray]:
    """One iteration from the ranks of the masters and, last, of an isolated vertex."""
    masters, vertices = part.masters, max(int(part.layout.bounds[-1]), 1)
    rank, received = np.zeros(part.size), np.zeros(part.size)
    rank[:masters] = everyone[:-1]
    yield from send_to_mirrors(part, "out", (rank,))
    push_shares_step(part.out_offsets, part.out_targets, rank, degree, received)
    yield from gather_at_masters(part, "in", received, np.add)
    received = np.append(received[:masters], 0.0)
    if spread:
        stranded = float(rank[:masters][degree[:masters] == 0].sum())
        sums = yield from by_rank(part, [stranded])
        received += (math.fsum(sums[:, 0]) + (vertices - part.n) * everyone[-1]) / vertices
    again: np.ndarray = (1 - damping) / vertices + damping * received
    return again


def _furthest(part: Part, deviation: np.ndarray) -> Driver[int]:
    """The internal id of a master that is furthest off; -1 if isolated vertices are."""
    at = int(deviation.argmax())
    mine = int(part.internal_of[at]) if at < part.masters else -1
    table = yield from by_rank(part, [float(deviation[at]), float(mine)])
    return int(table[table[:, 0].argmax(), 1])
