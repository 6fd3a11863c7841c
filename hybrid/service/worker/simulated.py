"""A resident worker that is not there: a simulated device (``npu.device: simulated:...``) in the place of a process.

It has no start, no keeper and no death; everything happens on the computing thread.
"""

from __future__ import annotations

import math
import time
from typing import Any

from hybrid.service.worker.life import OFF, READY, WorkerLife
from hybrid.service.worker.resident import Core
from hybrid.worker.simulated import SimulatedSolver


class SimulatedWorker:
    """Stands in for ``ResidentWorker``."""

    def __init__(self, solver: SimulatedSolver, why: str) -> None:
        self._solver = solver
        self.life = WorkerLife(why)
        self.core: Core | None = None
        self._held: Core | None = None
        self.device = solver.device
        self.used_at = -math.inf
        self.lendings = self.refusals = 0
        self.busy = False

    def want(self, core: Core | None, why: str, *, lasting: bool) -> None:
        self.core, self.used_at = core, time.monotonic()
        self.life.state, self.life.why = READY, why

    def let_go(self, why: str) -> None:
        self.core = self._held = None
        self.life.state, self.life.why = OFF, why

    def lend(self, core: Core, *, any_core: bool = False) -> SimulatedSolver | None:
        self.used_at = time.monotonic()
        if self.busy or self.life.state != READY or not self._solver.usable:
            return None
        self.busy, self.lendings = True, self.lendings + 1
        self.publish(core)
        return self._solver

    def publish(self, core: Core) -> None:
        if self._held is not core:
            self._solver.publish_edges(core.graph.out_offsets, core.graph.out_targets, core.size)
            self._held = core

    def taken_over(self) -> None:
        self._held = None

    def refuse(self, reason: str, *, lied: bool = True) -> None:
        """A device whose word is always true is late at most."""
        self.refusals += lied

    def give_back(self) -> None:
        self._solver.begin()
        self.busy = False

    @property
    def rounds(self) -> int:
        return self._solver.rounds

    def tell(self) -> dict[str, Any]:
        core = self.core
        return {
            "state": "busy" if self.busy else self.life.state, "why": self.life.why, "device": self.device,
            "simulated": f"{self.device}: a model, no device is there", "graph": None if core is None else core.name,
            "core_size": None if core is None else core.size, "pid": None, "rounds": self.rounds,
            "searches": self.lendings, "refused": self.refusals, "restarts": 0, "deaths": 0,
            "last_death": "",
        }  # fmt: skip

    def close(self) -> None:
        self._solver.close()
