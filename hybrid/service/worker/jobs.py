"""A job by the service's own process, beside a resident worker if one is wanted and there.

Invariant: the worker is borrowed and given back where the job cannot be stopped; in between it may be, at any
instruction. What is asked of the worker, and what becomes of one whose word fails a check, is as in any job
(hybrid/job/core.py).
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS
from cpu_engine.comm.requests import Driver
from hybrid.job.core import JobCore
from hybrid.job.driver import at_once
from hybrid.job.engines import SharedCore, Unit, engine_for, why_not_shared
from hybrid.job.units import run_unit
from hybrid.job.warm_up import warm_up_hybrid
from hybrid.planning.plan import Plan, make_plan, plan_off
from hybrid.results.record import Record, describe_npu
from hybrid.results.run_record import Run, Verdict
from hybrid.service.queue.backend import ServiceBackend
from hybrid.service.worker.pool import Workers
from hybrid.service.worker.resident import Core, ResidentWorker

_log = logging.getLogger(__name__)
_LONGEST_COMPARISON_S = 10.0
FEW_SOURCES = 8  # searched one by one, level by level in the trace; more go 64 at a time


class BesideWorker(ServiceBackend):
    """See the module."""

    def __init__(self, workers: Workers, *common: Any) -> None:
        super().__init__(*common)
        self._workers = workers
        self._worker: ResidentWorker | None = None
        self._core = JobCore(self.config, self.trace)
        self._runs: list[Run] = []
        self._reason = self._not_compared = ""

    def open(self) -> Plan:
        algorithm, tasks = self.algorithm, self.tasks
        if algorithm.name == "bfs" and len(tasks) > FEW_SOURCES:
            self.batch = ROOTS_PER_PASS
        plan = self._borrow()
        self.say("running")
        with self.interruptible():
            if self.batch > 1:
                with self.trace.span("coordinator", "compile"):
                    warm_up_hybrid(algorithm, self.config, self.graph, self.batch)
            mode = "off" if self._worker is None else plan.mode
            self._engine = engine_for(algorithm, tasks[0], plan.split, batch=self.batch, mode=mode)
            if self._worker is not None:
                has_own_core = algorithm.name != "bfs"  # given to the worker in the job's own time
                if has_own_core:
                    self._worker.taken_over()
                shared = SharedCore(algorithm.name, plan.split)
                self._core.attach(plan, shared, len(tasks), publish=has_own_core)
        return plan

    def _borrow(self) -> Plan:
        """The plan; a worker is borrowed if the plan wants one and it is there."""
        try:
            plan = self._decide()
            self._reason = plan.mode_reason if plan.mode == "off" else ""
        except Exception as error:  # a plan that cannot be made is no reason for a job to fail
            _log.exception("no plan for %s on %s", self.algorithm.name, self.entry.id)
            self._reason = f"no plan could be made: {type(error).__name__}"
        if self._reason:
            return plan_off(self.graph, self._reason)
        core = self._workers.plans(self.entry.id, self.graph, self.config.npu.mode).core
        if core is None or core.size != plan.core_size:
            core = Core(self.entry.id, self.graph, plan.core_size)
        worker = self._workers.worker_for(core)
        if worker is None:
            self._reason = "the worker is busy with another graph"
            return plan
        lent, told = worker.lend(core, any_core=True), worker.tell()
        if lent is None:
            self._reason = f"the worker was {told['state']}, and nobody waits for it ({told['why']})"
            return plan
        self._worker = worker
        self.job.trace.simulated = told["simulated"] and worker.device
        self._core = JobCore(self.config, self.trace, lent=lent)
        if self.algorithm.name == "bfs":
            worker.publish(core)
        return plan

    def _decide(self) -> Plan:
        """Core and mode, off with the reason where the CPU works alone."""
        mode, name, graph = self.config.npu.mode, self.algorithm.name, self.graph
        why = "npu.mode is off" if mode == "off" else why_not_shared(name, graph)
        if not why and not self._workers.possible:
            why = "service.workers is 0"
        if why:
            return plan_off(graph, why)
        if name != "bfs":
            return make_plan(graph, self.config)
        plans = self._workers.plans(self.entry.id, graph, mode)
        plan = plans.single if len(self.tasks) < 2 else plans.batch
        if plan.mode == "off" and plans.single.mode != "off":
            plan = plans.single
        return dataclasses.replace(plan, batch=self.batch)

    def run_proven(self, unit: Unit) -> list[Run]:
        runs = run_unit(self.algorithm, self._engine, unit, self._core)
        self._runs += runs
        return runs

    def compare(self, units: list[Unit]) -> Driver[Verdict | None]:
        """None, and ``not_compared`` in the summary, where that cannot be or is not wanted."""
        took_s = 2 * self.config.compare.repeats * sum(run.seconds_run for run in self._runs)
        verdict = None
        with self.interruptible():
            if not any(run.npu.rounds_sent for run in self._runs):
                self._not_compared = "the CPU worked alone"
            elif took_s > _LONGEST_COMPARISON_S:
                self._not_compared = "not compared: it would take longer than the job"
            else:
                self._not_compared = self._core.why_not_compared()
            if not self._not_compared:
                verdict = self._core.compare(self._engine, units)
                self._not_compared = "the worker was lost meanwhile" if verdict is None else ""
        return at_once(verdict)

    def close(self) -> None:
        worker, self._worker = self._worker, None
        self.worker = self._core.worker
        if worker is not None:
            worker.give_back()

    def describe(self, record: Record) -> dict[str, Any]:
        npu = describe_npu(self.config, record.plan, record.worker, [run.npu for run in self._runs])
        if self._reason:
            npu["outcome"] = self._reason
        verdict = None if record.verdict is None else record.verdict.as_dict()
        return {"npu": {**npu, "not_compared": self._not_compared}, "verdict": verdict}
