"""A partner that nobody waits for in vain: what mode auto puts between the traversal and the worker.

The worker first answers a rehearsal, in which it starts, loads the core and compiles; until then searches go without
it. An answer that takes longer than it was predicted to is not waited for: the search takes the core back, and after
a few of those no round is sent any more. Invariant: all that a job loses by waiting for answers that do not come stays
within WAITING of REGRET_SHARE of its CPU-only time and REGRET_S, whatever the worker does; nobody waits for its start.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from hybrid.traverse import Answer, Partner

REGRET_SHARE, REGRET_S = 0.05, 2e-3  # what mode auto may lose against the CPU alone
WAITING = 1 / 4  # of that; deciding and taking the core back need the rest
STRIKES = 3
_SPARE = 1.2  # an answer is waited for at least so many times as long as predicted, or not at all
_NAP_S = 100e-6


@dataclass(frozen=True)
class Patience:
    """How long a job waits for one answer, how often in vain, and what rounds may cost the CPU's own time in all."""

    wait_s: float = math.inf
    strikes: int = STRIKES
    own_s: float = math.inf


def waiting_budget(cpu_only_s: float) -> float:
    """How long a job of ``cpu_only_s`` may wait in vain, in all."""
    return WAITING * (REGRET_SHARE * cpu_only_s + REGRET_S)


def patience_for(round_s: float, cpu_only_s: float) -> Patience | None:
    """For a job of ``cpu_only_s`` in all; None if a single late answer could cost more than a job may lose."""
    budget_s = waiting_budget(cpu_only_s)
    if budget_s < _SPARE * round_s:
        return None
    wait_s = min(2 * round_s + budget_s / STRIKES, budget_s)
    return Patience(wait_s, max(1, min(STRIKES, int(budget_s / wait_s))))


class NoRegretPartner:
    """See the module; satisfies ``Partner`` around another one, whose life is its owner's business."""

    def __init__(self, partner: Partner, patience: Patience) -> None:
        self._partner, self._patience = partner, patience
        self._deadline = 0.0
        self._rehearsing = self._late = False
        self._strikes = 0
        self._own_s = 0.0
        self._complaint = ""
        self.failure = ""

    def rehearse(self, core_size: int) -> None:
        """Send a first round that nobody needs, and do not wait for it."""
        values = np.full(core_size, -1, np.int32)
        values[:1] = 0
        if self._partner.usable:
            self._partner.submit(values)
            self._rehearsing = True

    @property
    def ready(self) -> bool:
        """Whether a search may send rounds: the rehearsal is answered."""
        if self._rehearsing and (self._partner.poll() is not None or not self._partner.usable):
            self._rehearsing = False
        self._late = False
        return self.usable and not self._rehearsing

    @property
    def usable(self) -> bool:
        self.failure = self._partner.failure or self._complaint
        enough = self._strikes >= self._patience.strikes or self._own_s > self._patience.own_s
        return self._partner.usable and not self._late and not enough

    @property
    def busy(self) -> bool:
        return self._partner.busy

    def begin(self) -> None:
        self._late = False
        self._partner.begin()

    def submit(self, values: np.ndarray) -> None:
        began = time.perf_counter()
        self._partner.submit(values)
        now = time.perf_counter()
        self._deadline = now + self._patience.wait_s
        self._count(now - began)

    def poll(self) -> Answer | None:
        began = time.perf_counter()
        answer = self._partner.poll()
        self._count(time.perf_counter() - began)
        if answer is None and self._partner.busy and began > self._deadline:
            self._partner.abandon()
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
        self._partner.abandon()

    def distrust(self, reason: str) -> None:
        self._partner.distrust(reason)
