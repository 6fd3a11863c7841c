"""Whether the NPU pays: CPU-only against hybrid, measured in the same job, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from hybrid.job.comparison import Comparison, compare
from hybrid.results.run_record import Verdict
from hybrid.terminal import seconds


def turns(repeats: int, columns: int) -> Iterator[tuple[int, int, int]]:
    """(way, repeat, column) of everything that is to be timed: both ways in turns, and neither always first."""
    for column in range(columns):
        for row in range(repeats):
            for way in (0, 1) if row % 2 == 0 else (1, 0):
                yield way, row, column


def time_in_turns(
    ways: tuple[Callable[[int], object], Callable[[int], object]],
    repeats: int,
    columns: int,
    usable: Callable[[], bool],
) -> np.ndarray | None:
    """Seconds [way, repeat, column] of both ways; None once it is not usable."""
    times = np.zeros((2, repeats, columns))
    for way, row, column in turns(repeats, columns):
        began = time.perf_counter()
        ways[way](column)
        times[way, row, column] = time.perf_counter() - began
        if not usable():
            return None
    return times


def judge(alone: np.ndarray, together: np.ndarray, mode: str) -> Verdict:
    """Put times [repeat, source] into one honest sentence: no opinion where the times do not bear one."""
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
