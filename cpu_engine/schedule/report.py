"""What each thread of a loop did and when, so that its balance can be seen; and the same as events of a trace."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

TASKS, WORK, CHUNKS, STEALS, IDLE_NS = 0, 1, 2, 3, 4
COLUMNS = 8  # a cache line per thread


class Trace(Protocol):
    """Where events go; ``hybrid.results.trace.Trace`` is one. Times are seconds since it began."""

    def now(self) -> float: ...

    def add(self, actor: str, kind: str, t0: float, t1: float | None = None, **facts: Any) -> Any: ...


@dataclass(frozen=True)
class LoopReport:
    """Per thread, int64: tasks run, the work that the operator said they were, chunks taken, and chunks stolen.

    An operator that returns an integer says so how much work a task was (edges looked at, say); else each counts 1.
    ``spans``: when each thread began and ended, by time.perf_counter; ``idle``: seconds of it in which a thread of
    for_each waited for tasks. In a simulation a thread's time is its share of the work.
    """

    loop: str
    operator: str
    tasks: np.ndarray
    work: np.ndarray
    chunks: np.ndarray
    steals: np.ndarray
    seconds: float
    simulated: bool
    spans: np.ndarray
    idle: np.ndarray

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

    def trace(self, trace: Trace) -> None:
        """Add the loop to a trace: an event for each thread, and one for the time it then waited for the others."""
        facts = [
            {"operator": self.operator, "tasks": int(tasks), "work": int(work), "steals": int(steals)}
            for tasks, work, steals in zip(self.tasks, self.work, self.steals, strict=True)
        ]
        add_threads(trace, self.loop, self.spans, self.idle, facts, simulated=self.simulated)


def add_threads(
    trace: Trace, kind: str, spans: np.ndarray, idle: np.ndarray, facts: list[dict[str, Any]], **common: Any
) -> None:
    """Events of the threads of one launch: what each did, ``facts`` one each, and how long it waited.

    When an idle thread waited is not known, only how long: that is put at its end.
    """
    since = trace.now() - time.perf_counter()
    end = float(spans[:, 1].max())
    for thread, ((first, last), waited) in enumerate(zip(spans.tolist(), idle.tolist(), strict=True)):
        done = max(first, last - waited)
        actor = f"thread {thread}"
        trace.add(actor, kind, first + since, done + since, **facts[thread], **common)
        if end > done:
            trace.add(actor, "wait", done + since, end + since)


def report_of(loop: str, operator: str, tally: np.ndarray, began: float, spans: np.ndarray | None) -> LoopReport:
    """From a tally, one row per thread; ``spans`` is None if the threads were simulated, since ``began``."""
    seconds = time.perf_counter() - began
    tasks, work, chunks, steals = (tally[:, column].copy() for column in (TASKS, WORK, CHUNKS, STEALS))
    simulated = spans is None
    if spans is None:
        share = work / max(int(work.max()), 1)
        spans = np.column_stack([np.full(work.size, began), began + share * seconds])
    return LoopReport(
        loop, operator, tasks, work, chunks, steals, seconds, simulated, spans, tally[:, IDLE_NS] / 1e9
    )  # fmt: skip
