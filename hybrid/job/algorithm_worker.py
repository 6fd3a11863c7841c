"""The worker beside a job of the library: started while the graph is read, given the core, asked, judged, stopped.

Invariant: a result in which the worker took part and that fails its check is thrown away; the run is made again by the
CPU alone, and the worker is not asked any more. Nothing of the worker stays behind, however the job ends.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.cli.terminal import plural
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.interrupts import interrupts_held
from hybrid.job.verdict import Verdict, judge, time_in_turns
from hybrid.offload.sharing import SHARINGS, Sharing, why_not_shared
from hybrid.offload.traverse import NpuTally
from hybrid.planning.device_profiles import parse_device
from hybrid.planning.plan import Plan, plan_library
from hybrid.results.folder import ResultFolder
from hybrid.results.trace import Trace
from hybrid.worker.solver import NpuPartner

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

    def rehearse(self) -> None:
        """Let the worker start and answer before the clock of the first run."""
        if self._partner is not None and self.mode != "off" and not self._lent:
            self._partner.rehearse(self.mode)

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
        """A hybrid result failed its check."""
        assert self._partner is not None
        self._total.values_rejected += self._total.values_adopted
        now = self._trace.now()
        self._trace.add("coordinator", "repair", now, findings=reason)
        _log.warning("not certified, computing again without the worker: %s", reason)
        self._partner.distrust(f"a result that it took part in failed the check: {reason}")

    def compare(self, tasks: Sequence[Task]) -> Verdict | None:
        """Every task both ways, in turns; None where that cannot be or is not wanted."""
        tasks = [task for task in tasks if self._serves(task)]
        if not self._config.compare.enabled or not tasks:
            return None
        assert self._sharing is not None
        assert self._partner is not None
        if self.mode == "race" and self._partner.starting:
            return None  # it took no part: there is nothing to compare
        sharing, partner, repeats = self._sharing, self._partner, self._config.compare.repeats
        ways = (
            lambda column: self._algorithm.run(tasks[column]),
            lambda column: sharing.run(tasks[column], partner, self.mode, Trace()),
        )
        with self._trace.span("coordinator", "compare", repeats=repeats):
            times = time_in_turns(ways, repeats, len(tasks), lambda: partner.usable)
        return None if times is None else judge(times[0], times[1], self.mode)

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
            total.outcome = f"merged {total.rounds_merged} of {plural(total.rounds_sent, 'round')}"
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
