"""The life of a resident worker: when a process is to be started, when that is not tried any more. No I/O, no clock.

    off -> starting -> ready -> restarting -> starting ...      failed: it dies before it is ready, or lies, too often

Invariant: between a death and the next start there is a pause, which doubles up to LONGEST_PAUSE_S and only starts anew
after the worker has been ready for HEALTHY_S: whatever kills workers, processes are started at a bounded rate.
"""

from __future__ import annotations

import math

OFF, STARTING, READY, RESTARTING, FAILED = "off", "starting", "ready", "restarting", "failed"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
HEALTHY_S = 10.0
MOST_FAILED_STARTS = 5
MOST_LIES = 3


class WorkerLife:
    """See the module; times are ``time.monotonic``."""

    def __init__(self, why: str) -> None:
        self.state, self.why = OFF, why
        self.starts = self.deaths = self.lies = 0
        self.last_death = ""
        self._pause_s = FIRST_PAUSE_S
        self._next_start = -math.inf
        self._ready_since: float | None = None
        self._failed_starts = 0

    @property
    def restarts(self) -> int:
        return max(0, self.starts - 1)

    def want(self, why: str) -> None:
        if self.state == OFF:
            self.state, self.why = STARTING, why

    def pause_s(self, now: float) -> float:
        """How long until a process may be started; infinite if none shall be."""
        return max(0.0, self._next_start - now) if self.state in (STARTING, RESTARTING) else math.inf

    def start(self) -> None:
        self.state, self.starts = STARTING, self.starts + 1

    def serve(self, now: float, why: str) -> None:
        if self._ready_since is None:
            self._ready_since = now
        self.state, self.why, self._failed_starts = READY, why, 0

    def load(self, why: str) -> None:
        """It is given another core, and has to answer on that first."""
        self.state, self.why = STARTING, why

    def lose(self, now: float, cause: str, *, lied: bool = False) -> None:
        """It is gone, or not wanted any more, for this reason."""
        self.deaths, self.last_death = self.deaths + 1, cause
        self.lies += lied
        if self._ready_since is None:
            self._failed_starts += 1
        elif now - self._ready_since >= HEALTHY_S:
            self._pause_s = FIRST_PAUSE_S
        self._ready_since = None
        self._next_start = now + self._pause_s
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        self.state, self.why = RESTARTING, cause
        if self._failed_starts >= MOST_FAILED_STARTS:
            self.state, self.why = FAILED, f"{self._failed_starts} starts failed, the last one: {cause}"
        elif self.lies >= MOST_LIES:
            self.state, self.why = FAILED, f"{self.lies} false answers, the last one: {cause}"

    def rest(self, why: str) -> None:
        if self.state != FAILED:
            self.state, self.why, self._ready_since = OFF, why, None
