"""One traversal by two: the CPU engine steps, the partner's core values are merged in between.

Invariant: a value only ever falls; in ``share`` mode the run ends only when the engine has nothing to do and the core
is closed under its own edges by the partner's word - or the engine has taken the core's edges back. Whether the
partner's word was true is not decided here: the certificate does that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cpu_engine.bfs.traversal import Traversal
from cpu_engine.threads import threads_for
from hybrid.cli.terminal import plural
from hybrid.results.trace import Trace

if TYPE_CHECKING:
    from hybrid.job.failed_proof import Repair

STILL_STARTING = "not waited for: the worker was still starting"


@dataclass(frozen=True)
class Answer:
    """A round's result: core values, int32[k], -1 where the worker has none, and the worker's own facts."""

    round_id: str
    values: np.ndarray
    received: int
    facts: dict[str, str] = field(default_factory=dict)


class Partner(Protocol):
    """Whoever iterates on the core. Never raises for what a worker does: it becomes unusable and says why."""

    failure: str

    @property
    def usable(self) -> bool:
        """Whether rounds can still be sent."""

    @property
    def starting(self) -> bool:
        """Whether it is known to be still loading: who need not wait for an answer sends nothing before it is over."""

    @property
    def busy(self) -> bool:
        """Whether a round is outstanding."""

    def begin(self) -> None:
        """A new traversal starts."""

    def submit(self, values: np.ndarray) -> None:
        """Hand over the core's values; one round at a time."""

    def poll(self) -> Answer | None:
        """The answer, if it is there."""

    def wait(self) -> None:
        """Sleep until something may have changed: an answer, a death, a time-out."""

    def abandon(self) -> None:
        """The outstanding round is no longer needed."""

    def distrust(self, reason: str) -> None:
        """The worker said something provably false: no more rounds."""


@dataclass
class NpuTally:
    """What passed between the two in one traversal."""

    rounds_sent: int = 0
    rounds_merged: int = 0
    values_sent: int = 0
    values_received: int = 0
    values_adopted: int = 0
    values_rejected: int = 0
    outcome: str = "off"


@dataclass
class Traversed:
    """A finished, not yet certified, traversal; its arrays are the engine's until that starts again."""

    level: np.ndarray
    parent: np.ndarray
    npu: NpuTally
    steps: int
    edges_looked_at: int
    repair: Repair | None = None  # given: it failed its certificate, and these arrays are others


def traverse_alone(engine: Traversal, root: int, trace: Trace | None = None) -> Traversed:
    """The CPU does everything."""
    steps = edges = 0
    with threads_for(engine.work):
        engine.start(root, withhold_core=False)
        while engine.can_step():
            edges += _step(engine, trace)
            steps += 1
            engine.settle()
        level, parent = engine.finish()
    return Traversed(level, parent, NpuTally(), steps, edges)


def traverse_together(
    engine: Traversal, root: int, mode: str, partner: Partner, trace: Trace, max_rounds: int = 1000
) -> Traversed:
    """CPU and partner in mode ``race`` or ``share``; a partner that needs more rounds than that is done without."""
    with threads_for(engine.work):
        return _Together(engine, root, mode, partner, trace, max_rounds).run()


class _Together:
    def __init__(
        self, engine: Traversal, root: int, mode: str, partner: Partner, trace: Trace, max_rounds: int
    ) -> None:
        self.engine, self.partner, self.trace, self.max_rounds = engine, partner, trace, max_rounds
        self.tally = NpuTally()
        self.sharing = mode == "share" and partner.usable
        self.sent_at = 0.0
        self.sent = 0  # values in the outstanding round
        self.outstanding = False
        engine.start(root, withhold_core=self.sharing)
        self.closed = np.full_like(engine.core_values(), -1)

    def run(self) -> Traversed:
        engine, partner = self.engine, self.partner
        partner.begin()
        steps = edges = 0
        while True:
            self._merge_if_answered()
            if self.sharing and not partner.usable:
                self._take_core_back()
            engine.settle()
            self._submit_if_news()
            if engine.can_step():
                edges += _step(engine, self.trace)
                steps += 1
            elif self.sharing and partner.busy:
                t0 = self.trace.now()
                partner.wait()
                self.trace.extend("cpu", "wait", t0, why="everything left depends on the core")
            elif not (self.sharing and not partner.usable):  # lost this very moment: the core is taken back first
                break
        self._close()
        level, parent = engine.finish()
        return Traversed(level, parent, self.tally, steps, edges)

    def _merge_if_answered(self) -> None:
        answer = self.partner.poll()
        if answer is None:
            if self.outstanding and not self.partner.usable:
                self._record_round("", self.partner.failure, self.trace.now(), {})
            return
        t0 = self.trace.now()
        adoption = self.engine.adopt(answer.values)
        self.closed = answer.values
        tally = self.tally
        tally.rounds_merged += 1
        tally.values_received += answer.received
        tally.values_adopted += adoption.adopted
        tally.values_rejected += adoption.rejected
        self.trace.add("cpu", "merge", t0, round=answer.round_id, adopted=adoption.adopted)
        self._record_round(
            answer.round_id, "merged", t0, answer.facts,
            values_received=answer.received, values_adopted=adoption.adopted, values_rejected=adoption.rejected,
        )  # fmt: skip
        if adoption.rejected:
            self.partner.distrust(
                f"round {answer.round_id}: {plural(adoption.rejected, 'value')} shorter than any path"
            )

    def _submit_if_news(self) -> None:
        partner = self.partner
        if not partner.usable or partner.busy or (partner.starting and not self.sharing):
            return
        mine = self.engine.core_values()
        if np.array_equal(mine, self.closed):
            return
        if self.tally.rounds_sent >= self.max_rounds:
            partner.distrust(f"no end after {plural(self.max_rounds, 'round')} (npu.max_rounds)")
            return
        self.sent_at = self.trace.now()
        partner.submit(mine)
        self.outstanding = True
        self.sent = int(np.count_nonzero(mine >= 0))
        self.tally.rounds_sent += 1
        self.tally.values_sent += self.sent

    def _take_core_back(self) -> None:
        self.sharing = False
        self.engine.take_core_back()
        now = self.trace.now()
        self.trace.add("cpu", "take_back", now, why=self.partner.failure)

    def _close(self) -> None:
        partner, tally = self.partner, self.tally
        if partner.busy:
            partner.abandon()
            self._record_round("", "not needed: the CPU had converged", self.trace.now(), {})
        if not partner.usable:
            tally.outcome = partner.failure
        elif tally.rounds_merged:
            tally.outcome = f"merged {tally.rounds_merged} of {plural(tally.rounds_sent, 'round')}"
        elif tally.rounds_sent:
            tally.outcome = "the CPU converged before the worker answered"
        elif partner.starting:
            tally.outcome = STILL_STARTING
        else:
            tally.outcome = "not needed: no core vertex got a value before the CPU converged"

    def _record_round(self, round_id: str, outcome: str, t1: float, facts: dict[str, str], **counts: int) -> None:
        self.outstanding = False
        timing = {name: float(facts[name]) for name in ("compute_s", "iterations") if _is_number(facts.get(name))}
        self.trace.add(
            "npu", "round", self.sent_at, t1, round=round_id, outcome=outcome, values_sent=self.sent, **timing, **counts
        )


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def _step(engine: Traversal, trace: Trace | None) -> int:
    if trace is None:
        return engine.step().edges
    t0 = trace.now()
    step = engine.step()
    trace.add(
        "cpu", "step", t0, engine=engine.name, direction=step.direction, level=step.level,
        frontier=step.frontier, edges=step.edges,
    )  # fmt: skip
    return step.edges
