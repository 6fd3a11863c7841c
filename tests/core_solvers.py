"""Scripted core solvers for the traversal: honest, late, dying, or lying, at moments that the test chooses.

They stand in for worker, files and time together, so that any delivery moment can be tried in one process; the real
worker is tested for real in tests/npu and tests/e2e.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hybrid.worker.core_solver import MOST_AT_ONCE, Answer, CoreSolver

Word = Callable[[np.ndarray], np.ndarray]


def closing_word(edges: list[tuple[int, int]]) -> Word:
    """What an honest worker answers: the values closed under the core's edges."""
    from tests.naive import close_core

    def close(values: np.ndarray) -> np.ndarray:
        known = {int(v): int(values[v]) for v in np.flatnonzero(values >= 0)}
        closed = np.full_like(values, -1)
        for vertex, value in close_core(edges, known).items():
            closed[vertex] = value
        return closed

    return close


class ScriptedCoreSolver:
    """Answers ``word(values)`` after as many looks as ``delays`` says.

    Dies after ``lifetime`` looks, or when more than ``last_submission`` rounds are submitted.
    """

    def __init__(
        self, word: Word, delays: Iterator[int], lifetime: int | None = None, last_submission: int | None = None
    ) -> None:
        self._word, self._delays, self._lifetime, self._submissions = word, delays, lifetime, last_submission
        self._looks = self._left = 0
        self._values: np.ndarray | None = None
        self.usable, self.starting, self.failure = True, False, ""
        self.abandoned = 0
        self.largest_batch = MOST_AT_ONCE

    @property
    def busy(self) -> bool:
        return self._values is not None

    def begin(self) -> None:
        self._values = None

    def submit(self, values: np.ndarray) -> None:
        assert self.usable, "no round after the end"
        assert not self.busy, "one round at a time"
        self._values, self._left = values.copy(), next(self._delays)
        if self._submissions is not None:
            self._submissions -= 1
            if self._submissions < 0:
                self.distrust("the round could not be written")

    def poll(self) -> Answer | None:
        self._looks += 1
        if self.usable and self._lifetime is not None and self._looks > self._lifetime:
            self.distrust("died")
        if self._values is None:
            return None
        self._left -= 1
        if self._left > 0:
            return None
        values, self._values = self._word(self._values), None
        return Answer("round-000001-00000000", values, int(np.count_nonzero(values >= 0)))

    def wait(self) -> None:
        """Time passes by looking."""

    def abandon(self) -> None:
        self._values = None
        self.abandoned += 1

    def rehearse(self, run: Callable[[CoreSolver], object]) -> None:
        """It needs none."""

    def distrust(self, reason: str) -> None:
        self.usable, self.failure, self._values = False, reason, None
