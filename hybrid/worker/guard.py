"""A core solver with a bound on lost time: what mode auto puts between the algorithm and the device.

The worker first answers a rehearsal, in which it starts, loads the core and compiles; until then searches run without
it. An answer is awaited only a little longer than predicted: then the search takes the core back, and after a few
such answers no further round is sent. Invariant: what a job loses - deciding, measuring, waiting for answers that do
not come, taking the core back - stays within REGRET_SHARE of its CPU-only time and REGRET_S, whatever the worker does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybrid.worker.core_solver import Answer, CoreSolver

REGRET_SHARE, REGRET_S = 0.05, 2e-3  # what mode auto may lose against the CPU alone
MEASURING = 0.5  # the part of REGRET_SHARE for measuring a search before deciding; waiting in vain has the rest
DECIDE_S = 1.5e-3  # the part of REGRET_S for reading the calibration and counting the core's edges (1.3 ms measured)
REDO = 2.0  # taking the core back costs as much as two searches: the search begins again, with more to look at
STRIKES = 3
_SPARE = 1.2  # an answer is awaited at least 1.2 times as long as predicted, or no round is sent
_NAP_S = 100e-6


@dataclass(frozen=True)
class Patience:
    """How long a job waits for one answer, how often in vain, and what rounds may cost the CPU's own time in all."""

    wait_s: float = math.inf
    strikes: int = STRIKES
    own_s: float = math.inf


def measuring_runs(searches: int) -> int:
    """How many searches a job of ``searches`` may run beforehand, only to decide."""
    return int(MEASURING * REGRET_SHARE * searches)


def patience_for(round_s: float, search_s: float, searches: int) -> Patience | None:
    """For a job of ``searches``; None if one answer that does not come could cost more than the job may lose."""
    budget_s = (1 - MEASURING) * REGRET_SHARE * search_s * searches + REGRET_S - DECIDE_S
    for strikes in range(STRIKES, 0, -1):
        wait_s = budget_s / strikes - REDO * search_s
        if wait_s > 0 and wait_s >= _SPARE * round_s:
            return Patience(min(wait_s, 2 * round_s + REGRET_S), strikes)
    return None


def patience_for_sweeps(round_s: float, run_s: float, saved_s: float, sweeps: int) -> Patience | None:
    """For one run of ``sweeps``, each with a round; None if waiting for the answers could cost more than may be lost.

    Every sweep may wait as long as the CPU alone takes for one, and its part of what may be lost; after a late answer
    the CPU does the core's part of that sweep, and the run goes on alone.
    """
    spare_s = (REGRET_SHARE * run_s + REGRET_S - DECIDE_S - saved_s / sweeps) / sweeps
    wait_s = run_s / sweeps + spare_s
    return Patience(wait_s, strikes=1) if spare_s >= 0 and wait_s >= _SPARE * round_s else None


class Guard:
    """See the module; satisfies ``CoreSolver`` around another one, which its owner starts and stops."""

    def __init__(self, solver: CoreSolver, patience: Patience) -> None:
        self._solver, self._patience = solver, patience
        self._deadline = 0.0
        self._rehearsing = self._late = False
        self._strikes = 0
        self._own_s = 0.0
        self._complaint = ""
        self.failure = ""

    def send_first(self, values: np.ndarray) -> None:
        """Send a first round that no search needs, as large as those to come, and do not wait for it."""
        if self._solver.usable:
            self._solver.submit(values)
            self._rehearsing = True

    def rehearse(self, run: Callable[[CoreSolver], object]) -> object:
        return self._solver.rehearse(run)

    @property
    def ready(self) -> bool:
        """Whether a search may send rounds: the rehearsal is answered."""
        if self._rehearsing and (self._solver.poll() is not None or not self._solver.usable):
            self._rehearsing = False
        self._late = False
        return self.usable and not self._rehearsing

    @property
    def usable(self) -> bool:
        self.failure = self._solver.failure or self._complaint
        enough = self._strikes >= self._patience.strikes or self._own_s > self._patience.own_s
        return self._solver.usable and not self._late and not enough

    @property
    def starting(self) -> bool:
        return self._solver.starting

    @property
    def busy(self) -> bool:
        return self._solver.busy

    @property
    def largest_batch(self) -> int:
        return self._solver.largest_batch

    def begin(self) -> None:
        self._late = False
        self._solver.begin()

    def submit(self, values: np.ndarray) -> None:
        began = time.perf_counter()
        self._solver.submit(values)
        now = time.perf_counter()
        self._deadline = now + self._patience.wait_s
        self._count(now - began)

    def poll(self) -> Answer | None:
        began = time.perf_counter()
        answer = self._solver.poll()
        self._count(time.perf_counter() - began)
        if answer is None and self._solver.busy and began > self._deadline:
            self._solver.abandon()
            self._late = True
            self._strikes += 1
            self._complaint = f"no answer within the {self._patience.wait_s * 1e3:.1f} ms that mode auto waits"
        return answer

    def _count(self, spent_s: float) -> None:
        self._own_s += spent_s
        if self._own_s > self._patience.own_s:
            self._complaint = f"its rounds took the CPU more than the {self._patience.own_s * 1e3:.1f} ms of mode auto"

    def wait(self) -> None:
        time.sleep(max(0.0, min(_NAP_S, self._deadline - time.perf_counter())))

    def abandon(self) -> None:
        self._solver.abandon()

    def distrust(self, reason: str) -> None:
        self._solver.distrust(reason)
