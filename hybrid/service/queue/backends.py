"""The service's backends of the one driver (hybrid/job/driver.py): itself beside a resident worker, and the ranks.

Their steps can be stopped, and are seen. Invariant: kernels run inside of ``interruptible``; what must not be cut
short, such as borrowing a worker, does not. What is asked of a worker, and what becomes of one whose word fails a
check, is as in any job (hybrid/job/core.py). Ranks are believed nothing: they answer in internal ids, and every value
is checked here on the service's own graph, as that of a run on one rank is, before it is part of a result.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS
from cpu_engine.comm.requests import Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.store.graph_store import is_store, save_store
from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.graphs.opening import Opened
from hybrid.graphs.sources import Source, resolve_sources
from hybrid.job.core import JobCore
from hybrid.job.driver import Prepared, at_once
from hybrid.job.engines import SharedCore, Unit, engine_for, why_not_shared
from hybrid.job.units import has_edges, prove_run, run_once, run_unit
from hybrid.job.warm_up import warm_up_hybrid, warm_up_job
from hybrid.planning.plan import Plan, make_plan, plan_off
from hybrid.ranks.algorithms import algorithm_on_ranks, policy_on_ranks
from hybrid.registry import ALGORITHMS
from hybrid.results.record import Record, WorkerFacts, describe_npu
from hybrid.results.run_record import Run, Verdict
from hybrid.results.trace import Trace
from hybrid.service.catalogue import Entry
from hybrid.service.lives import UP
from hybrid.service.queue.jobs import Job
from hybrid.service.rank_pool.pool import RankPool
from hybrid.service.rank_pool.wire import Frame
from hybrid.service.worker.resident import ResidentWorker

if TYPE_CHECKING:
    from hybrid.service.queue.runner import Runner

_log = logging.getLogger(__name__)
_LONGEST_COMPARISON_S = 10.0
FEW_SOURCES = 8  # searched one by one, level by level in the trace; more go 64 at a time


class ServiceBackend:
    """One job of the service."""

    speaks, batch = True, 1
    worker: WorkerFacts | None = None

    def __init__(self, runner: Runner, job: Job, entry: Entry, config: Config) -> None:
        assert entry.graph is not None
        self.runner, self.interruptible = runner, runner.service.compute.interruptible
        self.job, self.entry, self.config, self.graph = job, entry, config, entry.graph
        self.trace: Trace = job.trace

    def prepare(self, algorithm: Algorithm) -> Driver[Prepared]:
        graph, config, self.algorithm = self.graph, self.config, algorithm
        sources: list[Source | None] = list(resolve_sources(graph, config)) if algorithm.sourced else [None]
        self.tasks = [Task(graph, config, source) for source in sources]
        self.job.total = len(sources)
        self.say("compiling")
        known = (algorithm.name, graph.directed, None if graph.weight is None else graph.weight.dtype)
        with self.interruptible(), self.trace.span("coordinator", "compile"):
            if known not in self.runner.warm:
                warm_up_job(algorithm, config, graph)
                self.runner.warm.add(known)
        plan = self.open()
        opened = Opened(graph, self.entry.id, True, 0.0, 0.0, (), self.entry.store)
        return at_once(Prepared(opened, self.tasks, self.batch, plan))

    def open(self) -> Plan:
        """Get hold of what the runs need; ``close`` gives it back."""
        raise NotImplementedError

    def run(self, unit: Unit) -> Driver[list[Run]]:
        with self.interruptible():
            runs = self.run_proven(unit)
        self.job.done += len(unit)
        self.runner.service.book.publish(self.job)
        return at_once(runs)

    def run_proven(self, unit: Unit) -> list[Run]:
        raise NotImplementedError

    def compare(self, units: list[Unit]) -> Driver[Verdict | None]:
        return at_once(None)

    def conclude(self) -> Driver[dict[str, Any] | None]:
        return at_once(None)

    def describe(self, record: Record) -> dict[str, Any]:
        """What the summary says of who computed."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is held after this."""

    def say(self, phase: str) -> None:
        """What the job is doing, to all who watch."""
        self.job.phase = phase
        self.runner.service.book.publish(self.job)


class BesideWorker(ServiceBackend):
    """By the service's own process, beside a resident worker if one is wanted and there."""

    def __init__(self, runner: Runner, job: Job, entry: Entry, config: Config) -> None:
        super().__init__(runner, job, entry, config)
        self._borrowed: ResidentWorker | None = None
        self._core = JobCore(config, self.trace)
        self._runs: list[Run] = []
        self._reason = self._not_compared = ""

    def open(self) -> Plan:
        algorithm, tasks = self.algorithm, self.tasks
        if algorithm.name == "bfs" and len(tasks) > FEW_SOURCES:
            self.batch = ROOTS_PER_PASS
        plan = self._borrow()
        self.say("running")
        worker = self._borrowed
        with self.interruptible():
            if self.batch > 1:
                with self.trace.span("coordinator", "compile"):
                    warm_up_hybrid(algorithm, self.config, self.graph, self.batch)
            mode = "off" if worker is None else plan.mode
            self._engine = engine_for(algorithm, tasks[0], plan.split, batch=self.batch, mode=mode)
            if worker is not None:
                has_own_core = algorithm.name != "bfs"  # given to the worker in the job's own time
                if has_own_core:
                    worker.taken_over()
                shared = SharedCore(algorithm.name, plan.split)
                self._core.attach(plan, shared, len(tasks), publish=has_own_core)
        return plan

    def _borrow(self) -> Plan:
        """The plan; a worker is borrowed if the plan wants one and it is there."""
        workers = self.runner.service.workers
        try:
            plan = self._decide()
            self._reason = plan.mode_reason if plan.mode == "off" else ""
        except Exception as error:  # a plan that cannot be made is no reason for a job to fail
            _log.exception("no plan for %s on %s", self.algorithm.name, self.entry.id)
            self._reason = f"no plan could be made: {type(error).__name__}"
        if self._reason:
            return plan_off(self.graph, self._reason)
        core = workers.plans(self.entry.id, self.graph, self.config.npu.mode).core_of(plan)
        worker = workers.worker_for(core)
        if worker is None:
            self._reason = "the worker is busy with another graph"
            return plan
        lent, told = worker.lend(core, any_core=True), worker.tell()
        if lent is None:
            self._reason = f"the worker was {told['state']}, and nobody waits for it ({told['why']})"
            return plan
        self._borrowed = worker
        self.job.trace.simulated = worker.device if told["simulated"] else None
        self._core = JobCore(self.config, self.trace, lent=lent)
        if self.algorithm.name == "bfs":
            worker.publish(core)
        return plan

    def _decide(self) -> Plan:
        """Core and mode, off with the reason where the CPU works alone."""
        mode, name, graph, workers = self.config.npu.mode, self.algorithm.name, self.graph, self.runner.service.workers
        why = "npu.mode is off" if mode == "off" else why_not_shared(name, graph)
        if not why and not workers.all:
            why = "service.workers is 0"
        if why:
            return plan_off(graph, why)
        if name != "bfs":
            return make_plan(graph, self.config)
        plans = workers.plans(self.entry.id, graph, mode)
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
        worker, self._borrowed = self._borrowed, None
        self.worker = self._core.worker
        if worker is not None:
            worker.give_back()

    def describe(self, record: Record) -> dict[str, Any]:
        npu = describe_npu(self.config, record.plan, record.worker, [run.npu for run in self._runs])
        if self._reason:
            npu["outcome"] = self._reason
        verdict = None if record.verdict is None else record.verdict.as_dict()
        return {"npu": {**npu, "not_compared": self._not_compared}, "verdict": verdict}


class OnPool(ServiceBackend):
    """By the ranks of the pool; PoolLost if they end meanwhile."""

    _answers: Generator[Frame, None, dict[str, Any]] | None = None  # none is given where there is nothing to ask

    def __init__(self, pool: RankPool, runner: Runner, job: Job, entry: Entry, config: Config) -> None:
        super().__init__(runner, job, entry, config)
        self._pool = pool

    def open(self) -> Plan:
        pool, searched = self._pool, [task for task in self.tasks if has_edges(task)]
        self.say("running" if pool.state.state == UP else "waiting for the ranks")
        if searched:
            with self.interruptible():
                order = self._order(searched)
            self._answers = pool.carry_out(order)
        return plan_off(self.graph, "the ranks compute alone")

    def _order(self, tasks: list[Task]) -> dict[str, Any]:
        """What the ranks are told of the job."""
        job, config, entries = self.job, self.runner.service.config, self.runner.service.catalogue.all()
        cluster, graph = config.cluster, config.graph
        options = {
            **job.options, "npu.mode": "off", "engine": config.engine, "cluster.policy": cluster.policy,
            "cluster.sync": cluster.sync, "cluster.partition_cache": cluster.partition_cache,
            "graph.cache": graph.cache, "graph.cache_dir": graph.cache_dir,
        }  # fmt: skip
        roots = [(-1, -1) if task.source is None else (task.source.user_id, task.source.internal) for task in tasks]
        store = str(self._store())
        return {
            "graph": self.entry.id, "store": store, "algorithm": job.algorithm, "options": options, "roots": roots,
            "keep": sorted({store, *(str(one.store) for one in entries if one.store is not None)}),
        }  # fmt: skip

    def _store(self) -> Path:
        """The folder from which ranks can map the very graph that the service has, made if no cache has it."""
        entry = self.entry
        if entry.store is None or not is_store(entry.store):
            path = self._pool.folder / f"graph-{entry.id}-{round(entry.created * 1e6)}"
            if not is_store(path):
                save_store(self.graph, path)
            entry.store = path
        return entry.store

    def run_proven(self, unit: Unit) -> list[Run]:
        (task,), trace = unit, self.trace
        if not has_edges(task):  # nothing to search
            return [run_once(self.algorithm, task, trace)]
        assert self._answers is not None
        frame = next(self._answers)
        self.job.phase = "running"
        add_events(trace, frame)
        return [prove_run(self.algorithm, task, found_in(frame), float(frame.facts["seconds"]), trace)]

    def conclude(self) -> Driver[dict[str, Any] | None]:
        """What the ranks did, once all runs are taken."""
        if self._answers is None:
            return at_once(None)
        try:
            with self.interruptible():
                next(self._answers)
        except StopIteration as stop:
            return at_once(stop.value["ranks"])
        fix = "ask again; the service's log has what the ranks said"
        raise NotCertified("the ranks gave more answers than were asked for", fix=fix)

    def describe(self, record: Record) -> dict[str, Any]:
        return {"ranks": record.ranks, "losses": self.job.losses}

    def close(self) -> None:
        if self._answers is not None:
            self._answers.close()


def is_for_ranks(pool: RankPool, service: Config, job: Job, config: Config) -> bool:
    """Whether this job is for the ranks; those that cannot be had for now leave all jobs to the service alone."""
    if not pool.usable or not ALGORITHMS[job.algorithm].on_ranks or config.sssp.strategy != "delta":
        return False
    if job.options.get("npu.mode", "off") != "off":
        return False  # who asks for the worker gets it, and that is the service's
    try:
        policy_on_ranks(service, algorithm_on_ranks(job.algorithm, service), service.ranks)
    except InputError:
        return False
    return True


def found_in(frame: Frame) -> Found:
    """What ranks found, not yet checked."""
    return Found(dict(frame.arrays), dict(frame.facts["counters"]), dict(frame.facts["isolated"]))


def add_events(trace: Trace, frame: Frame) -> None:
    """Each rank's time line into the job's: the clock is the same on all of one machine."""
    shift = float(frame.facts["origin"]) - (time.perf_counter() - trace.now())
    for event in frame.facts["events"]:
        known = ("t0", "t1", "actor", "kind", "source")
        details = {name: value for name, value in event.items() if name not in known}
        trace.add(event["actor"], event["kind"], event["t0"] + shift, event["t1"] + shift, **details)
