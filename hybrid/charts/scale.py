"""Positions on axes: time to per cent of the width, counts to pixels on a logarithmic height, and where the ticks go.

Invariant: a time inside the window maps into [0, 100]; times outside are clamped to its ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LOG_FLOOR = 0.4  # a frontier of one vertex must still be a visible bar


@dataclass(frozen=True)
class TimeScale:
    """A window of time spread over 100 % of the width. ``start`` and ``end`` in seconds, ``end > start``."""

    start: float
    end: float

    @property
    def span(self) -> float:
        return self.end - self.start

    def at(self, t: float) -> float:
        return min(100.0, max(0.0, 100 * (t - self.start) / self.span))

    def shows(self, t0: float, t1: float) -> bool:
        return t1 >= self.start and t0 <= self.end

    def ticks(self, wanted: int = 8) -> list[float]:
        """Round moments relative to the start of the window, in seconds."""
        step = nice_step(self.span / wanted)
        return [i * step for i in range(math.floor(self.span / step * (1 + 1e-9)) + 1)]


def window(start: float, end: float) -> TimeScale:
    """A time scale that is never empty: a moment becomes a microsecond, or what floats still resolve there."""
    return TimeScale(start, max(end, start + max(1e-6, 16 * math.ulp(start))))


def nice_step(rough: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1.0, 2.0, 5.0):
        if rough <= factor * power * (1 + 1e-9):
            return factor * power
    return 10 * power


@dataclass(frozen=True)
class LogScale:
    """Counts from 1 to ``top`` on ``height`` pixels, logarithmic."""

    top: float
    height: float

    def of(self, value: float) -> float:
        if value <= 0:
            return 0.0
        span = math.log10(max(self.top, 10.0) / LOG_FLOOR)
        return max(1.0, self.height * math.log10(max(value, 2 * LOG_FLOOR) / LOG_FLOOR) / span)

    def ticks(self, wanted: int = 5) -> list[int]:
        decades = math.floor(math.log10(max(self.top, 10.0)))
        every = max(1, math.ceil(decades / wanted))
        return [10**d for d in range(0, decades + 1, every)]
