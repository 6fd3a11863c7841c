"""One job, from the graph to checked arrays in the user's ids; on the computing thread, in stoppable steps."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS
from cpu_engine.graph.graph import Graph
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Arrays, Task
from hybrid.api.options import configured
from hybrid.config.schema import Config
from hybrid.job.failed_proof import Repair
from hybrid.job.sources import Source, resolve_sources
from hybrid.job.units import has_edges, in_order, run_unit, units_of
from hybrid.job.warm_up_algorithms import warm_up_hybrid, warm_up_job
from hybrid.results.record import describe_findings
from hybrid.results.run_record import Run
from hybrid.service.catalogue import Catalogue, Entry
from hybrid.service.events import EventBus, LiveTrace
from hybrid.service.http.problems import Problem, problem_of
from hybrid.service.metrics import Metrics
from hybrid.service.queue.compute import Compute, Stopped
from hybrid.service.queue.disk import Disk
from hybrid.service.queue.jobs import (
    CANCELLED,
    DONE,
    FAILED,
    OVER,
    QUEUED,
    RUNNING,
    SHUTDOWN,
    Job,
    JobBook,
    stopped_problem,
)
from hybrid.service.queue.journal import Journal
from hybrid.service.rank_pool.jobs import PoolJobs
from hybrid.service.rank_pool.pool import PoolLost
from hybrid.service.worker.jobs import LentCore
from hybrid.service.worker.pool import Workers
from hybrid.terminal import plural

_log = logging.getLogger(__name__)
MOST_LOSSES = 3  # pools that may end with a job before it is given up
FEW_SOURCES = 8  # searched one by one, level by level in the trace; more go 64 at a time


class Runner:
    """Carries jobs out."""

    def __init__(
        self, catalogue: Catalogue, compute: Compute, journal: Journal, bus: EventBus, metrics: Metrics,
        workers: Workers,
    ) -> None:  # fmt: skip
        self._catalogue, self._compute, self._journal = catalogue, compute, journal
        self._bus, self._metrics, self._workers = bus, metrics, workers
        self._warm: set[tuple[object, ...]] = set()
        self.rank_pool: PoolJobs | None = None  # several ranks
        self.book: JobBook
        self.disk: Disk

    def carry_out(self, job: Job) -> None:
        """Run a job to its end, whatever that is; never raises for what the job does."""
        self.book.begin(job)
        job.state, job.started, job.phase = RUNNING, time.time(), "opening"
        job.trace = LiveTrace(self._bus, job.id)
        self.book.publish(job)
        try:
            entry = self._catalogue.ready(job.graph)
            entry.jobs += 1
            try:
                self._run(job, entry)
            finally:
                entry.jobs -= 1  # before anybody hears that it is over, and unloads the graph
            self.book.conclude(job, DONE)
        except Stopped:
            self._conclude_stopped(job)
        except PoolLost as lost:
            self._try_again(job, lost)
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                _log.exception("job %s failed", job.id)
            self.book.conclude(job, FAILED, problem.document())
        finally:
            self._put_trace_away(job)
            if job.state in OVER:
                self._metrics.count_job(job.algorithm, job.state)
            _log.info("job", extra={"facts": {"job": job.id, "algorithm": job.algorithm, "state": job.state}})

    def _conclude_stopped(self, job: Job) -> None:
        if job.stop_reason == SHUTDOWN:
            self.book.take_back(job)
        else:
            state = CANCELLED if job.stop_reason == "cancelled" else FAILED
            self.book.conclude(job, state, stopped_problem(job.stop_reason))

    def _try_again(self, job: Job, lost: PoolLost) -> None:
        """The ranks ended, and others are being started: the job is the next one, unless they end because of it."""
        job.losses += lost.guilty
        if job.stop_reason:
            self._conclude_stopped(job)
        elif job.losses < MOST_LOSSES:
            self.book.take_back(job)
            self._compute.put_back(job)
        else:
            often = plural(job.losses, "time")
            detail = f"the ranks ended {often} while they computed this job, the last time because {lost}"
            fix = "give them more memory, or set ranks: 1; the service's log has what they said"
            self.book.conclude(job, FAILED, Problem(503, detail, fix).document())

    def _put_trace_away(self, job: Job) -> None:
        """From memory to the journal, which has it already if the job is done."""
        events, job.trace = job.trace.events, None
        if job.state not in (DONE, QUEUED):
            try:
                self._journal.write_result(job.id, {}, events)
            except OSError:  # forgotten meanwhile, or the disk is full: the job's own document matters more
                _log.warning("the trace of job %s could not be kept", job.id)

    def _run(self, job: Job, entry: Entry) -> None:
        graph, trace = entry.graph, job.trace
        assert graph is not None
        config = job_config(job, self._workers.config)
        algorithm = algorithm_named(job.algorithm)
        sources: list[Source | None] = list(resolve_sources(graph, config)) if algorithm.sourced else [None]
        job.total = len(sources)
        tasks = [Task(graph, config, source) for source in sources]
        self._say(job, "compiling")
        with self._compute.interruptible(), trace.span("coordinator", "compile"):
            self._warm_up(algorithm, config, graph)
        if self.rank_pool is not None and self.rank_pool.takes(job, config):
            self._say(job, "running" if self.rank_pool.is_up else "waiting for the ranks")
            with self._compute.interruptible():
                runs, account = self.rank_pool.compute(job, entry, algorithm, tasks, self._advance)
            further = {"ranks": account, "losses": job.losses}
        else:
            runs, further = self._run_here(job, entry, algorithm, tasks)
        self._say(job, "writing")
        with trace.span("coordinator", "write"):
            arrays = {"vertex": graph.user_ids, **stack([run.arrays for run in runs])}
            job.summary = {**summarise(algorithm, graph, runs, job), **further}
            self.disk.make_room(sum(array.nbytes for array in arrays.values()))
            self._journal.write_result(job.id, arrays, trace.events)

    def _run_here(
        self, job: Job, entry: Entry, algorithm: Algorithm, tasks: list[Task]
    ) -> tuple[list[Run], dict[str, Any]]:
        """By this process, beside a resident worker if there is one; the runs, and what the summary says besides."""
        batch = ROOTS_PER_PASS if algorithm.name == "bfs" and len(tasks) > FEW_SOURCES else 1
        trace, runs = job.trace, []
        lent = LentCore(self._workers, entry.id, tasks, algorithm, batch, trace)
        try:
            lent.open()
            self._say(job, "running")
            with self._compute.interruptible():
                if batch > 1:
                    with trace.span("coordinator", "compile"):
                        warm_up_hybrid(algorithm, tasks[0].config, tasks[0].graph, batch)
                engine = lent.prepare()
                for unit in units_of(tasks, batch):
                    source = unit[0].source
                    trace.source = None if source is None or len(unit) > 1 else source.user_id
                    runs += run_unit(algorithm, engine, unit, lent.core)
                    self._advance(job, len(unit))
                trace.source = None
                verdict = lent.compare(engine, units_of([task for task in tasks if has_edges(task)], batch), runs)
        finally:
            lent.close()
        told = None if verdict is None else verdict.as_dict()
        return in_order(tasks, runs), {"npu": lent.describe(runs), "verdict": told}

    def _warm_up(self, algorithm: Algorithm, config: Config, graph: Graph) -> None:
        kind = None if graph.weight is None else graph.weight.dtype
        known = (algorithm.name, graph.directed, kind)
        if known not in self._warm:
            warm_up_job(algorithm, config, graph)
            self._warm.add(known)

    def _say(self, job: Job, phase: str) -> None:
        job.phase = phase
        self.book.publish(job)

    def _advance(self, job: Job, amount: int) -> None:
        job.done += amount
        self.book.publish(job)


def job_config(job: Job, base: Config) -> Config:
    """The job's options as a checked configuration, the worker's part as in ``base``; ConfigError names key and fix."""
    options = dict(job.options)
    if job.source is not None:
        options["source"] = job.source
    config = configured(job.algorithm, options)
    npu = dataclasses.replace(base.npu, mode=config.npu.mode if "npu.mode" in options else base.npu.mode)
    enabled = config.compare.enabled if "compare.enabled" in options else base.compare.enabled
    compare = dataclasses.replace(base.compare, enabled=enabled)
    graph = dataclasses.replace(config.graph, cache_dir=base.graph.cache_dir)
    config = dataclasses.replace(config, engine="level")  # of a search in this process
    return dataclasses.replace(config, graph=graph, npu=npu, core=base.core, exchange=base.exchange, compare=compare)


def stack(runs: list[Arrays]) -> Arrays:
    """One run as it is, several as rows."""
    if len(runs) == 1:
        return runs[0]
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}


def summarise(algorithm: Algorithm, graph: Graph, runs: list[Run], job: Job) -> dict[str, Any]:
    """What was found, in numbers and a sentence."""
    return {
        **describe_findings(algorithm, graph, runs),
        "certified": True,
        "runs": [run.as_dict() for run in runs[:64]],
        "repairs": [describe_repair(run.repair) for run in runs if run.repair is not None][:64],
        "seconds": {
            "run": sum(run.seconds_run for run in runs),
            "certify": sum(run.seconds_check for run in runs),
            "compile": job.trace.spent("compile"),
        },
    }


def describe_repair(repair: Repair) -> dict[str, Any]:
    """For clients, to whom no path of this machine is told: the record by its name alone, the log has the path."""
    return {**repair.as_dict(), "record": None if repair.record is None else repair.record.name}
