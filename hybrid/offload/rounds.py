"""The rounds of one run with a core solver: send values, take or await the answer, count, trace, say how it ended.

All rounds are sent here; what is sent and how an answer is merged is the algorithm's part (traverse.py,
many_sources.py, pagerank.py, components.py, on_ranks.py). Invariant: nothing that a solver does or fails to do raises
an error here; where no answer comes, the caller computes the core's part itself.
"""

from __future__ import annotations

import contextlib

import numpy as np

from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.terminal import plural
from hybrid.worker.core_solver import Answer, CoreSolver

STILL_STARTING = "not waited for: the worker was still starting"
MOST_ROUNDS = 1000  # the default of npu.max_rounds


class Rounds:
    """See the module. ``sharing``: the core's edges are the solver's, so its answers are waited for."""

    def __init__(self, solver: CoreSolver, mode: str, trace: Trace, max_rounds: float = MOST_ROUNDS) -> None:
        self.solver, self.trace, self.tally = solver, trace, Tally()
        self._max_rounds = max_rounds
        self._outstanding = False
        self._sent_at, self._sent = 0.0, 0
        self._shape: tuple[int, ...] = ()
        self._further: dict[str, int] = {}
        solver.begin()
        self.sharing = mode == "share" and solver.usable

    @property
    def can_send(self) -> bool:
        """Whether a round may go out now; in mode race none does before the solver has started."""
        solver = self.solver
        return solver.usable and not solver.busy and (self.sharing or not solver.starting)

    def send(self, values: np.ndarray) -> bool:
        """Hand the core's values over, if a round may go out now; whether an answer can be expected."""
        if not self.can_send:
            return False
        if self.tally.rounds_sent >= self._max_rounds:
            self.solver.distrust(f"no end after {plural(int(self._max_rounds), 'round')} (npu.max_rounds)")
            return False
        self._sent_at, self._sent = self.trace.now(), int(np.count_nonzero(values >= 0))
        self._shape = values.shape
        self._further = {"sources": int(values.shape[0])} if values.ndim > 1 else {}
        self.solver.submit(values)
        self._outstanding = True
        self.tally.rounds_sent += 1
        self.tally.values_sent += self._sent
        return self.solver.usable

    def take(self) -> Answer | None:
        """The answer, if it is there and has the shape of what was sent."""
        answer = self.solver.poll()
        if answer is not None and answer.values.shape != self._shape:
            self.refuse(answer, f"its answer is {answer.values.shape}, the round was {self._shape}")
            return None
        if answer is None and not self.solver.usable:
            self._record("", self.solver.failure)
        return answer

    def wait(self) -> None:
        """Sleep until there may be an answer."""
        t0 = self.trace.now()
        self.solver.wait()
        self.trace.extend("cpu", "wait", t0, why="everything left depends on the core")

    def receive(self) -> Answer | None:
        """The answer to what was sent: awaited in mode share, in mode race only taken if it is there."""
        answer = self.take()
        while answer is None and self.sharing and self.solver.busy and self.solver.usable:
            self.wait()
            answer = self.take()
        if answer is None and self.solver.busy:
            self.solver.abandon()
            self._record("", "not needed: the CPU was first")
        elif answer is None and self._outstanding and self.solver.usable:
            self.solver.distrust("the round was lost")
            self._record("", self.solver.failure)
        return answer

    def merge(self, answer: Answer, t0: float, adopted: int, rejected: int = 0, why: str = "") -> None:
        """Count an answer that was merged from ``t0`` on; a solver whose values were rejected is not asked again."""
        tally = self.tally
        tally.rounds_merged += 1
        tally.values_received += answer.received
        tally.values_adopted += adopted
        tally.values_rejected += rejected
        self.trace.add("cpu", "merge", t0, round=answer.round_id, adopted=adopted)
        self._record(
            answer.round_id, "merged", t0, **_timing(answer.facts),
            values_received=answer.received, values_adopted=adopted, values_rejected=rejected,
        )  # fmt: skip
        if rejected:
            self.solver.distrust(f"round {answer.round_id}: {plural(rejected, 'value')} {why}")

    def refuse(self, answer: Answer, reason: str) -> None:
        """An answer that cannot be merged at all."""
        self.solver.distrust(f"round {answer.round_id}: {reason}")
        self._record(answer.round_id, reason, **_timing(answer.facts))

    def close(self) -> Tally:
        """The run is over: abandon what is outstanding, and return the account."""
        solver, tally = self.solver, self.tally
        if solver.busy:
            solver.abandon()
        self._record("", "not needed: the CPU had converged" if solver.usable else solver.failure)
        if not solver.usable:
            tally.outcome = solver.failure
        elif tally.rounds_merged:
            tally.outcome = tally.merged
        elif tally.rounds_sent:
            tally.outcome = "the CPU converged before the worker answered"
        elif solver.starting:
            tally.outcome = STILL_STARTING
        else:
            tally.outcome = "not needed: no core vertex got a value before the CPU converged"
        return tally

    def _record(self, round_id: str, outcome: str, t1: float | None = None, **facts: float) -> None:
        if self._outstanding:
            self._outstanding = False
            self.trace.add(
                "npu", "round", self._sent_at, t1, round=round_id, outcome=outcome, values_sent=self._sent,
                **self._further, **facts,
            )  # fmt: skip


def _timing(facts: dict[str, str]) -> dict[str, float]:
    """What the worker says of its own time; what is no number is left out."""
    found = {}
    for name in ("compute_s", "iterations"):
        with contextlib.suppress(ValueError):
            found[name] = float(facts.get(name, ""))
    return found
