"""What each thread of a loop did, so that its balance can be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TASKS, WORK, CHUNKS, STEALS = 0, 1, 2, 3
COLUMNS = 8  # a cache line per thread


@dataclass(frozen=True)
class LoopReport:
    """Per thread, int64: tasks run, the work that the operator said they were, chunks taken, and chunks stolen.

    An operator that returns an integer says so how much work a task was (edges looked at, say); else each counts 1.
    """

    loop: str
    operator: str
    tasks: np.ndarray
    work: np.ndarray
    chunks: np.ndarray
    steals: np.ndarray
    seconds: float
    simulated: bool = False

    @property
    def threads(self) -> int:
        return int(self.tasks.size)

    @property
    def busiest_over_mean(self) -> float:
        """The busiest thread's work over the mean; 1 is perfect."""
        total = int(self.work.sum())
        return float(self.work.max() * self.threads / total) if total else 1.0

    def attributes(self) -> dict[str, object]:
        """For the trace: plain numbers and lists."""
        return {
            "operator": self.operator,
            "tasks": self.tasks.tolist(),
            "work": self.work.tolist(),
            "steals": self.steals.tolist(),
            "busiest_over_mean": round(self.busiest_over_mean, 4),
        }


def report_of(loop: str, operator: str, tally: np.ndarray, seconds: float, simulated: bool) -> LoopReport:
    """From a tally, one row per thread."""
    tasks, work, chunks, steals = (tally[:, column].copy() for column in (TASKS, WORK, CHUNKS, STEALS))
    return LoopReport(loop, operator, tasks, work, chunks, steals, seconds, simulated)
