"""The resident worker's part in one job: planned, lent for its length, described in its summary.

Invariant: ``open`` and ``close`` are called where the job cannot be stopped; in between it may be, at any instruction.
What is asked of the worker, and what becomes of one whose word fails a check, is as in any job (hybrid/job/core.py).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.job.core import JobCore
from hybrid.job.engines import Engine, Unit, engine_for, why_not_shared
from hybrid.job.verdict import Verdict
from hybrid.planning.plan import Plan, make_plan, plan_off
from hybrid.results.record import describe_npu
from hybrid.results.run_record import Run
from hybrid.service.events import LiveTrace
from hybrid.service.worker.pool import Worker, Workers
from hybrid.service.worker.resident import Core

_log = logging.getLogger(__name__)
_LONGEST_COMPARISON_S = 10.0


class LentCore:
    """See the module. ``core`` is right to use whether or not there is a worker."""

    def __init__(
        self, workers: Workers, name: str, tasks: Sequence[Task], algorithm: Algorithm, batch: int, trace: LiveTrace
    ) -> None:
        self._workers, self._name, self._task, self._algorithm = workers, name, tasks[0], algorithm
        self._searches, self._batch, self._trace = len(tasks), batch, trace
        self._config, self._graph = tasks[0].config, tasks[0].graph
        self._worker: Worker | None = None
        self._plan: Plan | None = None
        self._account: dict[str, Any] = {}
        self.core = JobCore(self._config, trace)
        self.reason = self.not_compared = ""

    def open(self) -> None:
        """Borrow a worker, if one is wanted and there."""
        try:
            self._plan = plan = self._decide()
            self.reason = plan.mode_reason if plan.mode == "off" else ""
        except Exception as error:  # a plan that cannot be made is no reason for a job to fail
            _log.exception("no plan for %s on %s", self._algorithm.name, self._name)
            self.reason = f"no plan could be made: {type(error).__name__}"
        if self.reason:
            self._plan = plan_off(self._graph, self.reason)
            return
        core = self._core(plan)
        worker = self._workers.worker_for(core)
        if worker is None:
            self.reason = "the worker is busy with another graph"
            return
        lent = worker.lend(core, any_core=True)
        if lent is None:
            told = worker.tell()
            self.reason = f"the worker was {told['state']}, and nobody waits for it ({told['why']})"
            return
        self._worker = worker
        self._trace.simulated = worker.tell()["simulated"] and worker.device
        self.core = JobCore(self._config, self._trace, lent=lent)
        if self._algorithm.name == "bfs":
            worker.publish(core)

    def _decide(self) -> Plan:
        """Core and mode, off with the reason where the CPU works alone."""
        mode, name, graph = self._config.npu.mode, self._algorithm.name, self._graph
        why = "npu.mode is off" if mode == "off" else why_not_shared(name, graph)
        if not why and not self._workers.possible:
            why = "service.workers is 0"
        if why:
            return plan_off(graph, why)
        if name != "bfs":
            return make_plan(graph, self._config)
        plans = self._workers.plans(self._name, graph, mode)
        plan = plans.single if self._searches < 2 else plans.batch
        if plan.mode == "off" and plans.single.mode != "off":
            plan = plans.single
        return dataclasses.replace(plan, batch=self._batch)

    def _core(self, plan: Plan) -> Core:
        core = self._workers.plans(self._name, self._graph, self._config.npu.mode).core
        same = core is not None and core.size == plan.core_size
        return core if core is not None and same else Core(self._name, self._graph, plan.core_size)

    def prepare(self) -> Engine:
        """The job's engine; an algorithm with a core of its own gives it to the worker, in the job's own time."""
        plan, name = self._plan, self._algorithm.name
        assert plan is not None
        mode = "off" if self._worker is None else plan.mode
        engine = engine_for(self._algorithm, self._task, plan.split, batch=self._batch, mode=mode)
        if self._worker is not None:
            if name != "bfs":
                self._worker.taken_over()
            self.core.attach(plan, engine, self._searches, publish=name != "bfs")
        return engine

    def close(self) -> None:
        """Give the worker back."""
        worker, self._worker = self._worker, None
        self._account = {"worker": self.core.worker}
        if worker is not None:
            worker.give_back()

    def compare(self, engine: Engine, units: Sequence[Unit], runs: Sequence[Run]) -> Verdict | None:
        """The same sources both ways, in turns; None, and ``not_compared``, where that cannot be or is not wanted."""
        took_s = 2 * self._config.compare.repeats * sum(run.seconds_run for run in runs)
        if not any(run.npu.rounds_sent for run in runs):
            self.not_compared = "the CPU worked alone"
        elif took_s > _LONGEST_COMPARISON_S:
            self.not_compared = "not compared: it would take longer than the job"
        else:
            self.not_compared = self.core.why_not_compared()
        if self.not_compared:
            return None
        verdict = self.core.compare(engine, units)
        if verdict is None:
            self.not_compared = "the worker was lost meanwhile"
        return verdict

    def describe(self, runs: Sequence[Run]) -> dict[str, Any]:
        """The summary's account of it; after ``close``."""
        assert self._plan is not None
        told = describe_npu(self._config, self._plan, self._account["worker"], [run.npu for run in runs])
        if self.reason:
            told["outcome"] = self.reason
        return {**told, "not_compared": self.not_compared}
