"""How the pool fares: which ranks are there, how often it ended and why, when to start it again. No I/O.

    starting -> up -> ending            a pool that is wanted and lost goes: up -> restarting -> up
    starting, restarting -> failed      several starts in a row came to nothing; it is tried again, ever more rarely

Invariant: ``alive`` counts ranks of the present pool only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STARTING, UP, RESTARTING, FAILED, ENDING = "starting", "up", "restarting", "failed", "ending"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0
STEADY_S = 30.0  # a pool that lasted so long was no failed start: the next pause is short again
HOPELESS = 4  # failed starts in a row after which jobs for it are refused


@dataclass
class PoolState:
    """Written by the keeper thread, read by all."""

    wanted: int
    state: str = STARTING
    alive: int = 0
    restarts: int = 0
    reason: str = ""  # why the last one ended, or could not be started; stays until the next time
    number: int = 0  # of the present pool, counted from 1
    fruitless: int = 0  # starts in a row without a pool
    _pause_s: float = FIRST_PAUSE_S
    _up: bool = False  # the present pool has been there
    _since: float = 0.0

    def starts(self) -> None:
        self.number += 1
        self.alive = 0

    def is_up(self, now: float) -> None:
        self.state, self.alive, self.fruitless, self._up, self._since = UP, self.wanted, 0, True, now

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
        was_up, self._up = self._up, False
        if was_up:
            self.state = RESTARTING
            if now - self._since >= STEADY_S:
                self._pause_s = FIRST_PAUSE_S
        else:
            self.fruitless += 1
            if self.fruitless >= HOPELESS:
                self.state = FAILED
        self.restarts += 1
        pause, self._pause_s = self._pause_s, min(LONGEST_PAUSE_S, 3 * self._pause_s)
        return pause

    def ends(self) -> None:
        self.state = ENDING

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("wanted", "alive", "restarts", "state", "reason")}
