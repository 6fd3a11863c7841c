"""What each round of a program did, and each launch of its kernels, thread by thread: the balance of its rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.schedule.report import Trace, add_threads


@dataclass(frozen=True)
class Step:
    """One round, as a trace records it."""

    direction: str
    frontier: int
    edges: int  # looked at


@dataclass(frozen=True)
class Launch:
    """One launch; ``edges`` per thread where it is known, ``spans`` when each began and ended, by perf_counter."""

    kind: str  # push, pull, update, totals
    first_round: int
    rounds: int  # thin ones are run many at a time
    frontier: int  # of the first round
    edges: tuple[int, ...]
    spans: np.ndarray

    def trace(self, trace: Trace, program: str) -> None:
        """Add it to a trace: an event for each thread, and one for the time it then waited for the others."""
        common = {"program": program, "round": self.first_round, "rounds": self.rounds, "frontier": self.frontier}
        facts = [{"edges": edges} for edges in self.edges] or [{} for _ in range(len(self.spans))]
        add_threads(trace, self.kind, self.spans, np.zeros(len(self.spans)), facts, **common)
