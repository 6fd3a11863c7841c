"""The verdict says what the times say, how sure that is, and nothing where they do not bear it."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.job.verdict import compare, judge, time_in_turns


@pytest.mark.parametrize(
    ("alone", "together", "told"),
    [
        ([[1.0, 2.0], [1.1, 2.0]], [[5.0, 5.0], [6.0, 5.0]], "does not pay"),
        ([[9.0, 9.0], [9.5, 9.0]], [[5.0, 5.0], [6.0, 5.0]], "the NPU pays"),
        ([[1.0], [1.0], [1.0]], [[1.02], [1.01], [1.02]], "makes no difference"),
        ([[1.0], [9.0]], [[2.0], [2.1]], "no clear difference"),
        ([[2.0], [2.1]], [[1.0], [9.0]], "no clear difference"),
        ([[9.0], [9.0]], [[5.0], [5.0]], "no clear difference"),  # two pairs are soon alike
        ([[9.0]], [[5.0]], "only once"),
    ],
)
def test_opinions(alone: list, together: list, told: str) -> None:
    verdict = judge(np.array(alone), np.array(together), "share")
    assert told in verdict.text
    assert verdict.repeats == len(alone)


def test_one_disturbed_repeat_does_not_hide_a_factor_of_twenty() -> None:
    alone, together = np.full((5, 1), 2.1e-3), np.full((5, 1), 45.9e-3)
    alone[1] = 60e-3  # somebody else had the CPU
    verdict = judge(alone, together, "share")
    assert "the NPU does not pay here (0.05x, 80% interval 0.05x to" in verdict.text
    assert (verdict.pairs_agreeing, verdict.pairs) == (4, 5)
    assert "slower in 4 of 5 pairs" in verdict.text


def test_sums_of_the_medians() -> None:
    verdict = judge(
        np.array([[1.0, 5.0], [2.0, 3.0], [9.0, 4.0]]), np.array([[8.0, 8.0], [8.0, 8.0], [8.0, 8.0]]), "race"
    )
    assert verdict.cpu_only_seconds == 2.0 + 4.0
    assert verdict.hybrid_seconds == 16.0
    assert verdict.ratio == 0.375
    assert verdict.cpu_only_worst_seconds == 13.0
    assert verdict.ratio_low <= verdict.ratio <= verdict.ratio_high


@pytest.mark.parametrize("repeats", [3, 5, 9])
@pytest.mark.parametrize("sources", [1, 8])
def test_equal_ways_are_seldom_called_different(repeats: int, sources: int) -> None:
    """Heavy-tailed noise around the same time; and with a factor of two between them the answer is always right."""
    rng = np.random.default_rng(5)
    wrong = found = 0
    for _ in range(60):
        one, other = np.exp(rng.standard_t(3, (2, repeats, sources)) * 0.1)
        same, double = compare(one, other), compare(one, 2 * other)
        wrong += same.faster or same.slower
        found += double.slower
        assert not double.faster
        assert same.low <= same.gain <= same.high
    assert wrong <= 6
    assert found >= 54


def test_turns_alternate_and_stop_with_the_worker() -> None:
    log: list[tuple[int, int]] = []

    def way(which: int, column: int) -> None:
        log.append((which, column))

    ways = (lambda column: way(0, column), lambda column: way(1, column))
    times = time_in_turns(ways, 2, 2, lambda: True)
    assert times is not None
    assert times.shape == (2, 2, 2)
    assert log == [(0, 0), (1, 0), (1, 0), (0, 0), (0, 1), (1, 1), (1, 1), (0, 1)]
    assert time_in_turns(ways, 2, 2, lambda: len(log) < 10) is None
    assert len(log) == 10
