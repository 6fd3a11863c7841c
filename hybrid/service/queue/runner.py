"""One job, from the graph to checked arrays in the user's ids; on the computing thread, in stoppable steps."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import numpy as np

from hybrid.algorithms.algorithm import Arrays
from hybrid.api.options import configured
from hybrid.config.schema import Config
from hybrid.job import driver
from hybrid.job.driver import run_here
from hybrid.results.record import Record, describe_findings
from hybrid.results.run_record import Repair
from hybrid.service.catalogue import Catalogue, Entry
from hybrid.service.events import EventBus, LiveTrace
from hybrid.service.http.problems import Problem, problem_of
from hybrid.service.metrics import Metrics
from hybrid.service.queue.backend import ServiceBackend
from hybrid.service.queue.compute import Compute, Stopped
from hybrid.service.queue.disk import Disk
from hybrid.service.queue.jobs import CANCELLED, DONE, FAILED, OVER, RUNNING, SHUTDOWN, Job, JobBook, stopped_problem
from hybrid.service.queue.journal import Journal
from hybrid.service.rank_pool.jobs import OnPool, PoolJobs
from hybrid.service.rank_pool.pool import PoolLost
from hybrid.service.worker.jobs import BesideWorker
from hybrid.service.worker.pool import Workers
from hybrid.terminal import plural

_log = logging.getLogger(__name__)
MOST_LOSSES = 3  # pools that may end with a job before it is given up


class Runner:
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
        if job.state in (FAILED, CANCELLED):
            try:
                self._journal.write_result(job.id, {}, events)
            except OSError:  # forgotten meanwhile, or the disk is full: the job's own document matters more
                _log.warning("the trace of job %s could not be kept", job.id)

    def _run(self, job: Job, entry: Entry) -> None:
        config, pool = job_config(job, self._workers.config), self.rank_pool
        common = (self._compute.interruptible, self.book.publish, self._warm, job, entry, config)
        backend: ServiceBackend = BesideWorker(self._workers, *common)
        if pool is not None and pool.takes(job, config):
            backend = OnPool(pool, *common)
        record = run_here(driver.Job(config, backend).compute())
        backend.say("writing")
        with job.trace.span("coordinator", "write"):
            arrays = {"vertex": backend.graph.user_ids, **stack([run.arrays for run in record.runs])}
            job.summary = {**summarise(record), **backend.describe(record)}
            self.disk.make_room(sum(array.nbytes for array in arrays.values()))
            self._journal.write_result(job.id, arrays, job.trace.events)


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
    config = dataclasses.replace(config, algorithm=job.algorithm, engine="level")  # of a search in this process
    return dataclasses.replace(config, graph=graph, npu=npu, core=base.core, exchange=base.exchange, compare=compare)


def stack(runs: list[Arrays]) -> Arrays:
    """One run as it is, several as rows."""
    if len(runs) == 1:
        return runs[0]
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}


def summarise(record: Record) -> dict[str, Any]:
    """What was found, in numbers and a sentence."""
    runs = record.runs
    return {
        **describe_findings(record.algorithm, record.opened.graph, runs),
        "certified": True,
        "runs": [run.as_dict() for run in runs[:64]],
        "repairs": [describe_repair(run.repair) for run in runs if run.repair is not None][:64],
        "seconds": {
            "run": sum(run.seconds_run for run in runs),
            "certify": sum(run.seconds_check for run in runs),
            "compile": record.trace.spent("compile"),
        },
    }


def describe_repair(repair: Repair) -> dict[str, Any]:
    """For clients, to whom no path of this machine is told: the record by its name alone, the log has the path."""
    return {**repair.as_dict(), "record": None if repair.record is None else repair.record.name}
