"""Whether the NPU pays: CPU-only against hybrid, measured in the same job, interleaved, best of several."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from cpu_engine.algorithms.traversal import Traversal
from hybrid.sources import Source
from hybrid.terminal import seconds
from hybrid.trace import Trace
from hybrid.traverse import Partner, traverse_alone, traverse_together

EVEN = 0.05  # within this share of each other, two times count as equal


@dataclass(frozen=True)
class Verdict:
    """Sums over the sources of each one's best time."""

    cpu_only_seconds: float
    hybrid_seconds: float
    ratio: float  # above 1: hybrid is faster
    repeats: int
    text: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure_verdict(
    engine: Traversal, sources: list[Source], mode: str, partner: Partner, repeats: int
) -> Verdict | None:
    """Traverse every source both ways; None when the worker was lost on the way."""
    alone, together = 0.0, 0.0
    for source in sources:
        best_alone = best_together = float("inf")
        for _ in range(repeats):
            began = time.perf_counter()
            traverse_alone(engine, source.internal)
            between = time.perf_counter()
            traverse_together(engine, source.internal, mode, partner, Trace())
            ended = time.perf_counter()
            best_alone = min(best_alone, between - began)
            best_together = min(best_together, ended - between)
            if not partner.usable:
                return None
        alone += best_alone
        together += best_together
    return judge(alone, together, repeats, mode)


def judge(alone: float, together: float, repeats: int, mode: str) -> Verdict:
    """Put the two times into one honest sentence."""
    ratio = alone / together if together else 1.0
    if ratio > 1 + EVEN:
        opinion = "the NPU pays here"
    elif ratio < 1 - EVEN:
        opinion = "the NPU does not pay here"
    else:
        opinion = "the NPU makes no difference here"
    text = f"CPU-only {seconds(alone)}, hybrid ({mode}) {seconds(together)}: {opinion} ({ratio:.2f}x)"
    return Verdict(alone, together, ratio, repeats, text)
