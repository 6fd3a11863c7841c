"""When a process of the service that ended is started again: a resident worker, a pool of ranks. No I/O, no clock.

    worker  off -> starting -> ready -> restarting -> starting ...
            failed: it dies before it is ready, or lies, too often; it is not started again
    pool    starting -> up -> restarting -> up ... -> ending
            failed: several starts in a row came to nothing; it is tried again, ever more rarely

Invariant: between an end and the next start there is a pause, which grows up to a longest one and only starts anew
after a steady life: whatever ends processes, they are started at a bounded rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

OFF, STARTING, READY, RESTARTING, FAILED = "off", "starting", "ready", "restarting", "failed"
UP, ENDING = "up", "ending"  # of a pool
WORKER_FIRST_PAUSE_S, WORKER_LONGEST_PAUSE_S, WORKER_STEADY_S = 0.5, 60.0, 10.0
POOL_FIRST_PAUSE_S, POOL_LONGEST_PAUSE_S, POOL_STEADY_S = 0.1, 30.0, 30.0
MOST_FAILED_STARTS = 5
MOST_LIES = 3
HOPELESS = 4  # failed starts in a row after which jobs for the pool are refused


@dataclass
class Pauses:
    """The pauses between ends and starts. Times, here and below, are ``time.monotonic``."""

    first_s: float
    longest_s: float
    steady_s: float
    factor: int
    failed_starts: int = 0  # in a row
    up_since: float | None = None

    def __post_init__(self) -> None:
        self._next_s = self.first_s

    def come_up(self, now: float) -> None:
        self.failed_starts = 0
        if self.up_since is None:
            self.up_since = now

    def go_down(self, now: float) -> float:
        """It is gone, or its start came to nothing; how long to wait before the next one."""
        if self.up_since is None:
            self.failed_starts += 1
        elif now - self.up_since >= self.steady_s:
            self._next_s = self.first_s
        self.up_since = None
        pause_s, self._next_s = self._next_s, min(self.longest_s, self.factor * self._next_s)
        return pause_s


class WorkerLife:
    """How one resident worker fares."""

    def __init__(self, why: str) -> None:
        self.state, self.why = OFF, why
        self.starts = self.deaths = self.lies = 0
        self.last_death = ""
        self._pauses = Pauses(WORKER_FIRST_PAUSE_S, WORKER_LONGEST_PAUSE_S, WORKER_STEADY_S, 2)
        self._next_start = -math.inf

    @property
    def restarts(self) -> int:
        return max(0, self.starts - 1)

    @property
    def reloading(self) -> bool:
        """It was ready, and is given another core."""
        return self.state == STARTING and self._pauses.up_since is not None

    def want(self, why: str) -> None:
        if self.state == OFF:
            self.state, self.why = STARTING, why

    def pause_s(self, now: float) -> float:
        """How long until a process may be started; infinite if none shall be."""
        return max(0.0, self._next_start - now) if self.state in (STARTING, RESTARTING) else math.inf

    def start(self) -> None:
        self.state, self.starts = STARTING, self.starts + 1

    def serve(self, now: float, why: str) -> None:
        self._pauses.come_up(now)
        self.state, self.why = READY, why

    def load(self, why: str) -> None:
        """It is given another core, and has to answer on that first."""
        self.state, self.why = STARTING, why

    def lose(self, now: float, cause: str, *, lied: bool = False) -> None:
        """It is gone, or not wanted any more, for this reason."""
        self.deaths, self.last_death = self.deaths + 1, cause
        self.lies += lied
        self._next_start = now + self._pauses.go_down(now)
        self.state, self.why = RESTARTING, cause
        if self._pauses.failed_starts >= MOST_FAILED_STARTS:
            self.state, self.why = FAILED, f"{self._pauses.failed_starts} starts failed, the last one: {cause}"
        elif self.lies >= MOST_LIES:
            self.state, self.why = FAILED, f"{self.lies} false answers, the last one: {cause}"

    def rest(self, why: str) -> None:
        if self.state != FAILED:
            self.state, self.why, self._pauses.up_since = OFF, why, None


@dataclass
class PoolState:
    """How the pool of ranks fares. Written by its keeper, read by all; ``alive`` counts the present pool's ranks."""

    wanted: int
    state: str = STARTING
    alive: int = 0
    restarts: int = 0
    reason: str = ""  # why the last one ended, or could not be started; stays until the next time
    number: int = 0  # of the present pool, counted from 1
    pauses: Pauses = field(default_factory=lambda: Pauses(POOL_FIRST_PAUSE_S, POOL_LONGEST_PAUSE_S, POOL_STEADY_S, 3))

    def starts(self) -> None:
        self.number += 1
        self.alive = 0

    def is_up(self, now: float) -> None:
        self.state, self.alive = UP, self.wanted
        self.pauses.come_up(now)

    def falls(self, reason: str) -> None:
        """A rank is gone; the others are being ended."""
        self.reason = reason
        if self.state == UP:
            self.state, self.alive = RESTARTING, max(0, self.alive - 1)

    def lost(self, reason: str, now: float) -> float:
        """The pool is gone, or did not come; how long to wait before the next one is started."""
        self.reason, self.alive = reason, 0
        if self.state == ENDING:
            return 0.0
        pause_s = self.pauses.go_down(now)
        if not self.pauses.failed_starts:
            self.state = RESTARTING
        elif self.pauses.failed_starts >= HOPELESS:
            self.state = FAILED
        self.restarts += 1
        return pause_s

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("wanted", "alive", "restarts", "state", "reason")}
