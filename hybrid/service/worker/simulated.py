"""A resident worker that is not there: a simulated device (``npu.device: simulated:...``) in the place of a process.

It has no start, no keeper and no death; everything happens on the computing thread.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from hybrid.config.schema import Config
from hybrid.service.worker.life import READY
from hybrid.service.worker.resident import Core, ResidentWorker
from hybrid.worker.simulated import SimulatedSolver


class SimulatedWorker(ResidentWorker):
    """See the module."""

    def __init__(self, solver: SimulatedSolver, why: str) -> None:
        super().__init__(Config(), Path(), Path(), lambda: None, why)
        self._solver: Any = solver
        self.device = solver.device
        self.simulated = f"{self.device}: a model, no device is there"

    def want(self, core: Core | None, why: str, *, lasting: bool) -> None:
        self.core, self.used_at = core, time.monotonic()
        self.life.state, self.life.why = READY, why

    def let_go(self, why: str) -> None:
        self.taken_over()
        super().let_go(why)

    def lend(self, core: Core, *, any_core: bool = False) -> Any:
        self.used_at = time.monotonic()
        if self._lent or self.life.state != READY or not self._solver.usable:
            return None
        self._lent, self.lendings = True, self.lendings + 1
        self.publish(core)
        return self._solver

    def refuse(self, reason: str, *, lied: bool = True) -> None:
        """A device whose word is always true is late at most."""
        self.life.lies += lied

    def give_back(self) -> None:
        self._solver.begin()
        self._lent = False

    @property
    def rounds(self) -> int:
        return int(self._solver.rounds)

    @property
    def pid(self) -> int | None:
        return None

    def close(self) -> None:
        self._solver.close()
