"""From times to figures: best, mean, noise and ratios. Pure arithmetic.

Two figures per contestant: *best* is the mean over the roots of each root's fastest run, which a busy machine disturbs
least; *mean* is the mean over the roots of the mean over all runs. Their quotient is the noise of the measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.rounds import Record


@dataclass(frozen=True)
class Figures:
    """A ranked contestant's times in seconds."""

    best: float
    mean: float
    fastest: float
    slowest: float
    runs: int

    @property
    def noise(self) -> float:
        """How much slower the average run was than the best ones; 1 on a silent machine."""
        return self.mean / self.best if self.best else 1.0


def figures(record: Record) -> Figures | None:
    """The figures of a contestant that is ranked, else None."""
    if not record.ranked:
        return None
    per_root = list(record.seconds.values())
    everything = [one for runs in per_root for one in runs]
    return Figures(
        best=_mean([min(runs) for runs in per_root]),
        mean=_mean([_mean(runs) for runs in per_root]),
        fastest=min(everything),
        slowest=max(everything),
        runs=len(everything),
    )


def times_slower(record: Record, baseline: Record) -> float | None:
    """How many times as long as ``baseline`` this contestant took, best against best; None unless both are ranked."""
    mine, theirs = figures(record), figures(baseline)
    if mine is None or theirs is None or not theirs.best:
        return None
    return mine.best / theirs.best


def ranking(records: Sequence[Record]) -> list[Record]:
    """The ranked ones, fastest first, then the others in their order."""
    ranked = sorted((one for one in records if one.ranked), key=lambda one: _best(one))
    return ranked + [one for one in records if not one.ranked]


def _best(record: Record) -> float:
    found = figures(record)
    return found.best if found else float("inf")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
