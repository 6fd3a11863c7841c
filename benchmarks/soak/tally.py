"""What is counted during ``bench soak``: answers, refusals, jobs and their fate, samples over time. No I/O.

Invariant: every accepted job has exactly one fate at the end; whatever is neither right, ours to end nor its own
deadline's is lost.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DONE, CANCELLED, LATE, FAILED, LOST = "done", "cancelled", "late", "failed", "lost"
OVER = ("done", "failed", "cancelled")
_MOST_DETAILS = 20
_MIB = float(1 << 20)


@dataclass(frozen=True)
class Spec:
    """A job as it is submitted."""

    graph: str
    algorithm: str
    options: dict[str, Any] = field(default_factory=dict)
    source: Any = None

    def body(self) -> dict[str, Any]:
        own: dict[str, Any] = {"graph": self.graph, "algorithm": self.algorithm, "options": self.options}
        return own if self.source is None else {**own, "source": self.source}


@dataclass(eq=False)
class Accepted:
    """A job that the service has accepted."""

    id: str
    spec: Spec
    deadline: bool = False
    cancelled: bool = False  # we asked for it
    fate: str = ""


def fate_of(job: Accepted, answer: dict[str, Any] | None) -> str:
    """What became of a job, by what the service says of it at last; None: it knows no such job."""
    if answer is None:
        return LOST
    state = answer["state"]
    if state == "done":
        return DONE
    if state == "cancelled":
        return CANCELLED if job.cancelled else LOST
    if state == "failed":
        late = job.deadline and (answer["problem"] or {}).get("status") == 504
        return LATE if late else FAILED
    return LOST


class Tally:
    """Counted by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.jobs: dict[str, Accepted] = {}
        self.details: list[str] = []  # the first few things that were wrong

    def count(self, what: str, amount: int = 1) -> None:
        with self._lock:
            self.counts[what] += amount

    def blame(self, what: str, detail: str) -> None:
        """Count something that must not be, and keep what it was."""
        with self._lock:
            self.counts[what] += 1
            if len(self.details) < _MOST_DETAILS:
                self.details.append(f"{what}: {detail[:400]}")

    def judge(self, where: str, complaint: str) -> None:
        """An answer was checked."""
        if complaint:
            self.blame("wrong", f"{where}: {complaint}")
        else:
            self.count("right")

    def accept(self, job: Accepted) -> None:
        with self._lock:
            self.jobs[job.id] = job

    def settle(self, job: Accepted, fate: str, detail: str = "") -> None:
        job.fate = fate
        self.count(f"jobs {fate}")
        if fate in (FAILED, LOST):
            self.blame("jobs without a result", f"{job.id} {job.spec}: {fate} {detail}")

    def open_jobs(self) -> list[Accepted]:
        with self._lock:
            return [job for job in self.jobs.values() if not job.fate]

    def by_algorithm(self) -> dict[str, dict[str, int]]:
        with self._lock:
            found: dict[str, Counter[str]] = {}
            for job in self.jobs.values():
                found.setdefault(job.spec.algorithm, Counter())[job.fate or LOST] += 1
        return {name: dict(fates) for name, fates in sorted(found.items())}


@dataclass(frozen=True)
class Sample:
    """Memory and open files at one moment, by role."""

    second: float
    bytes: dict[str, int]
    files: dict[str, int]


@dataclass(frozen=True)
class Trend:
    """A figure over time: medians of the first and last minute, and the slope of the line between all points."""

    first: float
    last: float
    per_minute: float
    later_per_minute: float  # of the second half

    @property
    def growth(self) -> float:
        return self.last / self.first - 1 if self.first else 0.0


def trend(seconds: Sequence[float], values: Sequence[float], window_s: float = 60.0) -> Trend:
    """Of a figure that was sampled; the window is at most a third of the time."""
    at, value = np.asarray(seconds, float), np.asarray(values, float)
    if at.size < 2 or at[-1] <= at[0]:
        only = float(value[0]) if value.size else 0.0
        return Trend(only, only, 0.0, 0.0)
    window = min(window_s, (at[-1] - at[0]) / 3)
    first, last = np.median(value[at <= at[0] + window]), np.median(value[at >= at[-1] - window])
    late = at >= (at[0] + at[-1]) / 2
    slopes = [float(np.polyfit(at[some] / 60, value[some], 1)[0]) if some.sum() > 2 else 0.0 for some in (at > 0, late)]
    return Trend(float(first), float(last), slopes[0], slopes[1])


def memory_trends(samples: Sequence[Sample], roles: Sequence[str]) -> dict[str, Trend]:
    """MiB by role, and of all together."""
    seconds = [sample.second for sample in samples]
    found = {
        role: trend(seconds, [sample.bytes.get(role, 0) / _MIB for sample in samples]) for role in roles
    }  # fmt: skip
    found["all"] = trend(seconds, [sum(sample.bytes.values()) / _MIB for sample in samples])
    return found
