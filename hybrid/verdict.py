"""Whether the NPU pays: CPU-only against hybrid, measured in the same job, interleaved, best of several."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cpu_engine.algorithms.traversal import Traversal
from hybrid.sources import Source
from hybrid.terminal import seconds
from hybrid.trace import Trace
from hybrid.traverse import Partner, traverse_alone, traverse_together

EVEN = 0.05  # within this share of each other, two times count as equal


@dataclass(frozen=True)
class Verdict:
    """Sums over the sources of each one's best time, and how far apart the repeats were."""

    cpu_only_seconds: float
    hybrid_seconds: float
    ratio: float  # above 1: hybrid is faster
    cpu_only_worst_seconds: float  # the slowest repeat over all sources
    hybrid_worst_seconds: float
    repeats: int
    text: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure_verdict(
    engine: Traversal, sources: list[Source], mode: str, partner: Partner, repeats: int, max_rounds: int
) -> Verdict | None:
    """Traverse every source both ways; None when the worker was lost on the way."""
    alone = np.zeros((repeats, len(sources)))
    together = np.zeros((repeats, len(sources)))
    for column, source in enumerate(sources):
        for row in range(repeats):
            began = time.perf_counter()
            traverse_alone(engine, source.internal, Trace())
            between = time.perf_counter()
            traverse_together(engine, source.internal, mode, partner, Trace(), max_rounds)
            ended = time.perf_counter()
            if not partner.usable:
                return None
            alone[row, column], together[row, column] = between - began, ended - between
    return judge(alone, together, mode)


def judge(alone: np.ndarray, together: np.ndarray, mode: str) -> Verdict:
    """Put times [repeat, source] into one honest sentence: no opinion where the repeats overlap."""
    best_alone, best_together = float(alone.min(axis=0).sum()), float(together.min(axis=0).sum())
    worst_alone, worst_together = float(alone.sum(axis=1).max()), float(together.sum(axis=1).max())
    ratio = best_alone / best_together if best_together else 1.0
    if len(alone) > 1 and ratio > 1 + EVEN and worst_together < best_alone:
        opinion = "the NPU pays here"
    elif ratio < 1 - EVEN and worst_alone < best_together:
        opinion = "the NPU does not pay here"
    elif abs(ratio - 1) <= EVEN:
        opinion = "the NPU makes no difference here"
    elif len(alone) == 1:
        opinion = "not clear, measured only once"
    else:
        opinion = "no clear difference, the repeats overlap"
    text = f"CPU-only {seconds(best_alone)}, hybrid ({mode}) {seconds(best_together)}: {opinion} ({ratio:.2f}x)"
    return Verdict(best_alone, best_together, ratio, worst_alone, worst_together, alone.shape[0], text)
