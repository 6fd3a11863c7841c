"""Rounds with a partner for algorithms that go in iterations: values out, work of one's own, values back.

Invariant: nothing that the partner does or fails to do raises here; ``receive`` then gives None, and the caller does
the core's part itself. What passed is counted and traced as it is for a traversal (hybrid/offload/traverse.py).
"""

from __future__ import annotations

import numpy as np

from hybrid.cli.terminal import plural
from hybrid.offload.traverse import STILL_STARTING, NpuTally, Partner
from hybrid.results.trace import Trace


class CoreRounds:
    """The rounds of one run. ``mode``: in ``share`` an answer is waited for, in ``race`` only taken if it is there."""

    def __init__(self, partner: Partner, mode: str, trace: Trace) -> None:
        self.partner, self.tally = partner, NpuTally()
        self._waits, self._trace = mode == "share", trace
        self._sent_at, self._sent = 0.0, 0
        self.seconds_waited = 0.0
        partner.begin()

    def send(self, values: np.ndarray) -> bool:
        """Hand the core's values over; False if nobody is there to take them."""
        partner = self.partner
        if not partner.usable or (partner.starting and not self._waits):
            return False
        self._sent_at, self._sent = self._trace.now(), int(values.size)
        partner.submit(values)
        self.tally.rounds_sent += 1
        self.tally.values_sent += self._sent
        return partner.usable

    def receive(self) -> np.ndarray | None:
        """The answer to what was sent, if there is one to be had."""
        partner, trace = self.partner, self._trace
        answer = partner.poll()
        if answer is None and self._waits and partner.busy:
            t0 = trace.now()
            while answer is None and partner.busy and partner.usable:
                partner.wait()
                answer = partner.poll()
            trace.add("cpu", "wait", t0, why="everything left depends on the core")
            self.seconds_waited += trace.now() - t0
        if answer is None:
            if partner.busy:
                partner.abandon()
                self._record("", "not needed: the CPU was first")
            elif self.tally.rounds_sent:
                self._record("", partner.failure)
            return None
        self.tally.rounds_merged += 1
        self.tally.values_received += answer.received
        self._record(answer.round_id, "merged", values_received=answer.received)
        return answer.values

    def adopted(self, count: int) -> None:
        """So many of the values received changed something."""
        self.tally.values_adopted += count

    def close(self) -> NpuTally:
        """The account of it all."""
        tally, partner = self.tally, self.partner
        if not partner.usable:
            tally.outcome = partner.failure
        elif tally.rounds_sent:
            tally.outcome = f"merged {tally.rounds_merged} of {plural(tally.rounds_sent, 'round')}"
        elif partner.starting:
            tally.outcome = STILL_STARTING
        else:
            tally.outcome = "not needed: no round was sent"
        return tally

    def _record(self, round_id: str, outcome: str, **counts: int) -> None:
        self._trace.add(
            "npu", "round", self._sent_at, round=round_id, outcome=outcome, values_sent=self._sent, **counts
        )
