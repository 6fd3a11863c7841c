"""The worker beside a job of the library: started while the graph is read, given the core, asked, judged, stopped.

Invariant: a result in which the worker took part and that fails its check is thrown away; the run is made again by the
CPU alone, and the worker is not asked any more. Nothing of the worker stays behind, however the job ends.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from hybrid.errors import ConfigError
from hybrid.interrupts import interrupts_held
from hybrid.library.algorithm import Algorithm, Found, Task
from hybrid.library.sharing import SHARINGS, Sharing, why_not_shared
from hybrid.partner import NpuPartner
from hybrid.plan import Plan, plan_library
from hybrid.profiles import parse_device
from hybrid.result import ResultFolder
from hybrid.schema import Config
from hybrid.trace import Trace
from hybrid.traverse import NpuTally
from hybrid.verdict import Verdict, judge

_log = logging.getLogger(__name__)


class LibraryNpu:
    """See the module. ``run`` is right to call in any state: it gives None where the CPU is to work alone."""

    def __init__(
        self, algorithm: Algorithm, config: Config, folder: ResultFolder | None, trace: Trace,
        lent: NpuPartner | None = None,
    ) -> None:  # fmt: skip
        """Starts a worker of its own, whose log goes to ``folder``, unless one is ``lent``."""
        self._algorithm, self._config, self._trace = algorithm, config, trace
        self._log_path = None if folder is None else folder.path / "worker.log"
        self._partner, self._lent = lent, lent is not None
        self._sharing: Sharing | None = None
        self._plan: Plan | None = None
        self._total = NpuTally()
        self._last_outcome = ""
        self.mode, self.reason = config.npu.mode, "as configured"
        if self.mode != "off" and algorithm.name not in SHARINGS:
            self.mode, self.reason = "off", f"{algorithm.name} runs on the CPU alone"
        elif self.mode != "off" and parse_device(config.npu.device) is not None:
            raise ConfigError(
                "npu.device: simulated devices serve bfs only",
                value=config.npu.device,
                fix="measure other algorithms beside one with `python run.py breakeven`",
            )

    def start(self) -> None:
        """Start the worker, which loads while the graph is read; mode auto decides first."""
        if self.mode in ("race", "share") and not self._lent:
            self._start()

    def _start(self) -> None:
        assert self._log_path is not None, "who has no folder lends a worker"
        self._partner = NpuPartner(self._config, self._log_path, self._trace)
        self._partner.start()

    def plan(self, task: Task) -> None:
        """Choose core and mode for this graph, and hand the core over."""
        if self.mode == "off":
            return
        self.reason = why_not_shared(self._algorithm.name, task)
        if self.reason:
            self.mode = "off"
            return
        self._plan = plan = plan_library(task.graph, self._config, self._algorithm.name)
        self.mode, self.reason = plan.mode, plan.mode_reason
        if self.mode == "off":
            return
        if self._partner is None:
            self._start()
        assert self._partner is not None
        self._sharing = SHARINGS[self._algorithm.name](task, plan.split)
        self._sharing.publish(self._partner)

    def run(self, task: Task) -> Found | None:
        """The run by two; None where nobody is there to share it with, or there is nothing to share."""
        if not self._serves(task):
            return None
        assert self._sharing is not None
        assert self._partner is not None
        found, tally = self._sharing.run(task, self._partner, self.mode, self._trace)
        for name in ("rounds_sent", "rounds_merged", "values_sent", "values_received", "values_adopted"):
            setattr(self._total, name, getattr(self._total, name) + getattr(tally, name))
        self._last_outcome = tally.outcome
        return found

    def reject(self, reason: str) -> None:
        """What came of a run by two failed its check."""
        assert self._partner is not None
        self._total.values_rejected += self._total.values_adopted
        now = self._trace.now()
        self._trace.add("coordinator", "repair", now, findings=reason)
        _log.warning("not certified, computing again without the worker: %s", reason)
        self._partner.distrust(f"its values failed the check: {reason}")

    def compare(self, tasks: Sequence[Task]) -> Verdict | None:
        """Every task both ways, in turns; None where that cannot be or is not wanted."""
        tasks = [task for task in tasks if self._serves(task)]
        if not self._config.compare.enabled or not tasks:
            return None
        assert self._sharing is not None
        assert self._partner is not None
        if self.mode == "race" and self._partner.starting:
            return None  # it took no part: there is nothing to compare
        repeats = self._config.compare.repeats
        times = np.zeros((2, repeats, len(tasks)))
        with self._trace.span("coordinator", "compare", repeats=repeats):
            for column, task in enumerate(tasks):
                for row in range(repeats):
                    for way in (0, 1) if row % 2 == 0 else (1, 0):
                        began = time.perf_counter()
                        if way:
                            self._sharing.run(task, self._partner, self.mode, Trace())
                        else:
                            self._algorithm.run(task)
                        times[way, row, column] = time.perf_counter() - began
                        if not self._partner.usable:
                            return None
        return judge(times[0], times[1], self.mode)

    def close(self) -> None:
        """The worker is gone after this."""
        if self._partner is not None and not self._lent:
            with interrupts_held():
                self._partner.close()

    def describe(self) -> dict[str, Any]:
        """The summary's account of it."""
        partner, plan, total = self._partner, self._plan, self._total
        if self.mode == "off" or partner is None:
            total.outcome = f"off ({self.reason})"
        elif partner.failure:
            total.outcome = partner.failure
        elif not total.rounds_sent and self._last_outcome:
            total.outcome = self._last_outcome
        else:
            total.outcome = f"merged {total.rounds_merged} of {total.rounds_sent} rounds"
        core = None
        if plan is not None and self.mode != "off":
            core = {"size": plan.core_size, "edges": plan.core_edges, "density": plan.density, "rule": plan.rule}
        return {
            "mode": self.mode,
            "device": "none" if partner is None or self.mode == "off" else partner.device,
            "configured": self._config.npu.mode,
            "start_seconds": None if partner is None else partner.start_seconds,
            **dataclasses.asdict(total),
            "core": core,
            "predicted": None if plan is None else plan.predicted,
        }

    def _serves(self, task: Task) -> bool:
        searched = not self._algorithm.sourced or task.root >= 0
        return self._sharing is not None and self._partner is not None and self._partner.usable and searched
