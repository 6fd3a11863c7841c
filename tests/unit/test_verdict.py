"""The verdict says what the times say, and nothing where they overlap."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.verdict import judge


@pytest.mark.parametrize(
    ("alone", "together", "told"),
    [
        ([[1.0, 2.0], [1.1, 2.0]], [[5.0, 5.0], [6.0, 5.0]], "does not pay"),
        ([[9.0, 9.0], [9.5, 9.0]], [[5.0, 5.0], [6.0, 5.0]], "the NPU pays"),
        ([[1.0], [1.0]], [[1.02], [1.3]], "no difference"),
        ([[1.0], [9.0]], [[2.0], [2.1]], "repeats overlap"),
        ([[2.0], [2.1]], [[1.0], [9.0]], "repeats overlap"),
        ([[9.0]], [[5.0]], "only once"),
    ],
)
def test_opinions(alone: list, together: list, told: str) -> None:
    verdict = judge(np.array(alone), np.array(together), "share")
    assert told in verdict.text
    assert verdict.repeats == len(alone)


def test_sums_of_the_best() -> None:
    verdict = judge(np.array([[1.0, 5.0], [2.0, 3.0]]), np.array([[8.0, 8.0], [8.0, 8.0]]), "race")
    assert verdict.cpu_only_seconds == 4.0
    assert verdict.hybrid_seconds == 16.0
    assert verdict.ratio == 0.25
    assert verdict.cpu_only_worst_seconds == 6.0
