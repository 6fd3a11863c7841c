"""From times to figures: best, mean, noise and ratios. Pure arithmetic.

Two figures per contestant: *best* is the mean over the roots of each root's fastest run, which a busy machine disturbs
least; *mean* is the mean over the roots of the mean over all runs. Their quotient is the noise of the measurement. How
sure a ratio is says the interval of hybrid/job/verdict.py, as in every verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.contest.rounds import Record
from hybrid.job.verdict import compare


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


def interval(record: Record, baseline: Record) -> tuple[float, float] | None:
    """Where that quotient is by the medians of runs in turns, with 80 % certainty; None unless both are ranked."""
    if not record.ranked or not baseline.ranked:
        return None
    common = [index for index in record.seconds if index in baseline.seconds]
    runs = min((len(one.seconds[index]) for one in (record, baseline) for index in common), default=0)
    if not runs:
        return None
    mine, theirs = (np.array([one.seconds[index][:runs] for index in common]).T for one in (record, baseline))
    return compare(mine, theirs).spread


def ranking(records: Sequence[Record]) -> list[Record]:
    """The ranked ones, fastest first, then the others in their order."""
    ranked = sorted((one for one in records if one.ranked), key=lambda one: _best(one))
    return ranked + [one for one in records if not one.ranked]


def _best(record: Record) -> float:
    found = figures(record)
    return found.best if found else float("inf")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
