"""Whether the NPU pays: two ways to do the same, timed in turns; which is faster, by how much, and how sure that is.

The one judgement behind the verdict of `run`, the points of `tune` and `breakeven`, and the ratios of `bench`. A time
is the sum over the sources of each one's median repeat, which a few disturbed repeats do not move. How sure the
quotient is has two measures that must agree. One is a bootstrap interval: every source's repeats are drawn again, in
pairs. The other is Wilcoxon's signed-rank test over all pairs of neighbours in time: how likely equal ways would come
out so one-sided. Few pairs can only ever show a large difference, so that is what they may show.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid.results.run_record import Verdict
from hybrid.terminal import seconds

EVEN = 0.05  # within this share of each other, two times count as equal
SURE = 0.95  # by the rank test; five pairs that agree reach 0.97
SURE_OF_MUCH, MUCH = 0.85, 1.5  # of a factor of so much or more; three pairs that agree reach 0.875
INTERVAL = 0.8  # of three to five repeats, a wider one would be the whole range, with every disturbed repeat
_DRAWS = 1000
_EXACT_PAIRS = 60
Times = np.ndarray | Sequence[float] | Sequence[Sequence[float]]


@dataclass(frozen=True)
class Comparison:
    """What the times say. ``gain`` above 1: the second way is faster."""

    first_s: float
    second_s: float
    gain: float
    low: float  # of the interval
    high: float
    repeats: int
    pairs: int
    agreeing: int  # pairs that say the same as ``gain``
    sure: float  # by the rank test, that equal ways would not come out so

    @property
    def clear(self) -> bool:
        """Whether the two differ for certain; a single measurement never shows that."""
        needed = SURE_OF_MUCH if max(self.gain, 1 / self.gain) >= MUCH else SURE
        return self.repeats > 1 and not self.low <= 1 <= self.high and self.sure >= needed

    @property
    def faster(self) -> bool:
        """The second way is faster for certain, and by more than counts as equal."""
        return self.clear and self.gain > 1 + EVEN

    @property
    def slower(self) -> bool:
        return self.clear and self.gain < 1 - EVEN

    @property
    def even(self) -> bool:
        """Whether the interval is too narrow for a difference that matters."""
        return self.repeats > 1 and self.low > 1 - 2 * EVEN and self.high < 1 + 2 * EVEN

    @property
    def spread(self) -> tuple[float, float]:
        return self.low, self.high

    def describe(self) -> str:
        """The quotient, its interval, and how many pairs agree."""
        way = "faster" if self.gain > 1 else "slower"
        interval = f"{INTERVAL:.0%} interval {self.low:.2f}x to {self.high:.2f}x"
        return f"{self.gain:.2f}x, {interval}, {way} in {self.agreeing} of {self.pairs} pairs"


def compare(first: Times, second: Times) -> Comparison:
    """Compare times [repeat, source] (or [repeat]); times at the same place were measured one after the other."""
    one, other = (np.asarray(times, np.float64).reshape(len(times), -1) for times in (first, second))
    repeats, sources = one.shape
    first_s, second_s = float(np.median(one, axis=0).sum()), float(np.median(other, axis=0).sum())
    gain = first_s / second_s if second_s > 0 else 1.0
    drawn = np.zeros((2, _DRAWS))
    rng = np.random.default_rng(1)  # the same times give the same interval
    for source in range(sources):
        rows = rng.integers(0, repeats, (_DRAWS, repeats))
        drawn[0] += np.median(one[rows, source], axis=1)
        drawn[1] += np.median(other[rows, source], axis=1)
    ends = np.quantile(drawn[0] / np.maximum(drawn[1], 1e-12), [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    factors = (np.log(np.maximum(one, 1e-12)) - np.log(np.maximum(other, 1e-12))).ravel()
    agreed = factors if gain > 1 else -factors
    return Comparison(
        first_s, second_s, gain, min(gain, float(ends[0])), max(gain, float(ends[1])), repeats, one.size,
        int(np.count_nonzero(agreed > 0)), 1 - _chance(agreed),
    )  # fmt: skip


def _chance(factors: np.ndarray) -> float:
    """How likely numbers that are as often negative as positive would be as positive as these (Wilcoxon)."""
    factors = factors[factors != 0]
    size = np.abs(factors)
    n = size.size
    # Twice the mean rank of equal sizes, so that all are whole.
    ranks = np.searchsorted(np.sort(size), size) + np.searchsorted(np.sort(size), size, side="right") + 1
    against = int(ranks[factors < 0].sum())
    if n > _EXACT_PAIRS:
        spread = math.sqrt(float((ranks**2).sum()) / 4)
        return 0.5 * math.erfc((ranks.sum() / 2 - against) / (spread * math.sqrt(2)))
    ways = np.zeros(int(ranks.sum()) + 1)  # ways[w]: shares of all signs with w against
    ways[0] = 1.0
    for rank in ranks.tolist():
        shifted = np.zeros_like(ways)
        shifted[rank:] = ways[:-rank]
        ways = (ways + shifted) / 2
    return float(ways[: against + 1].sum())


# ------------------------------------------------------------------------------------------- the verdict


def turns(repeats: int, columns: int) -> Iterator[tuple[int, int, int]]:
    """(way, repeat, column) of all that is to be timed: the two ways in turns, and neither always first."""
    for column in range(columns):
        for row in range(repeats):
            for way in (0, 1) if row % 2 == 0 else (1, 0):
                yield way, row, column


def time_in_turns(
    ways: Sequence[Callable[[int], object]], repeats: int, columns: int, usable: Callable[[], bool]
) -> np.ndarray | None:
    """Seconds [way, repeat, column] of both ways; None as soon as ``usable`` says no."""
    times = np.zeros((2, repeats, columns))
    for way, row, column in turns(repeats, columns):
        began = time.perf_counter()
        ways[way](column)
        times[way, row, column] = time.perf_counter() - began
        if not usable():
            return None
    return times


def judge(alone: np.ndarray, together: np.ndarray, mode: str) -> Verdict:
    """Put times [repeat, source] into one sentence, which has no opinion where the times show no clear one."""
    found = compare(alone, together)
    text = (
        f"CPU-only {seconds(found.first_s)}, hybrid ({mode}) {seconds(found.second_s)}: {_opinion(found)} "
        f"({found.describe()})"
    )
    return Verdict(
        found.first_s, found.second_s, found.gain, found.low, found.high, found.pairs, found.agreeing,
        float(alone.sum(axis=1).max()), float(together.sum(axis=1).max()), found.repeats, text,
    )  # fmt: skip


def _opinion(found: Comparison) -> str:
    if found.faster:
        return "the NPU pays here"
    if found.slower:
        return "the NPU does not pay here"
    if found.even:
        return "the NPU makes no difference here"
    return "not clear, measured only once" if found.repeats == 1 else "no clear difference"
