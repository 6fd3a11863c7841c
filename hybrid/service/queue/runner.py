"""One job, from the graph to checked arrays in the user's ids; on the computing thread, in stoppable steps."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.api.options import configured
from hybrid.config.schema import Config
from hybrid.job import driver
from hybrid.job.driver import run_here
from hybrid.results.record import Record, describe_findings
from hybrid.results.run_record import Repair
from hybrid.service.catalogue import Entry
from hybrid.service.events import LiveTrace
from hybrid.service.http.problems import Problem, problem_of
from hybrid.service.queue.backends import BesideWorker, OnPool, ServiceBackend, is_for_ranks
from hybrid.service.queue.compute import Stopped
from hybrid.service.queue.jobs import CANCELLED, DONE, FAILED, OVER, RUNNING, SHUTDOWN, Job, stopped_problem
from hybrid.service.rank_pool.pool import PoolLost
from hybrid.terminal import plural

if TYPE_CHECKING:
    from hybrid.service.service import Service

_log = logging.getLogger(__name__)
MOST_LOSSES = 3  # pools that may end with a job before it is given up


class Runner:
    """``warm``: what was compiled before, for all jobs."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.warm: set[tuple[object, ...]] = set()

    def carry_out(self, job: Job) -> None:
        """Run a job to its end, whatever that is; never raises for what the job does."""
        self.service.book.begin(job)
        job.state, job.started, job.phase = RUNNING, time.time(), "opening"
        job.trace = LiveTrace(self.service.bus, job.id)
        self.service.book.publish(job)
        try:
            entry = self.service.catalogue.ready(job.graph)
            entry.jobs += 1
            try:
                self._run(job, entry)
            finally:
                entry.jobs -= 1  # before anybody hears that it is over, and unloads the graph
            self.service.book.conclude(job, DONE)
        except Stopped:
            self._conclude_stopped(job)
        except PoolLost as lost:
            self._try_again(job, lost)
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                _log.exception("job %s failed", job.id)
            self.service.book.conclude(job, FAILED, problem.document())
        finally:
            self._put_trace_away(job)
            if job.state in OVER:
                self.service.metrics.count_job(job.algorithm, job.state)
            _log.info("job", extra={"facts": {"job": job.id, "algorithm": job.algorithm, "state": job.state}})

    def _conclude_stopped(self, job: Job) -> None:
        if job.stop_reason == SHUTDOWN:
            self.service.book.take_back(job)
        else:
            state = CANCELLED if job.stop_reason == "cancelled" else FAILED
            self.service.book.conclude(job, state, stopped_problem(job.stop_reason))

    def _try_again(self, job: Job, lost: PoolLost) -> None:
        """The ranks ended, and others are being started: the job is the next one, unless they end because of it."""
        job.losses += lost.guilty
        if job.stop_reason:
            self._conclude_stopped(job)
        elif job.losses < MOST_LOSSES:
            self.service.book.take_back(job)
            self.service.compute.put_back(job)
        else:
            often = plural(job.losses, "time")
            detail = f"the ranks ended {often} while they computed this job, the last time because {lost}"
            fix = "give them more memory, or set ranks: 1; the service's log has what they said"
            self.service.book.conclude(job, FAILED, Problem(503, detail, fix).document())

    def _put_trace_away(self, job: Job) -> None:
        """From memory to the journal, which has it already if the job is done."""
        trace, job.trace = job.trace, None
        if job.state in (FAILED, CANCELLED):
            try:
                self.service.journal.write_result(job.id, {}, trace)
            except OSError:  # forgotten meanwhile, or the disk is full: the job's own document matters more
                _log.warning("the trace of job %s could not be kept", job.id)

    def _run(self, job: Job, entry: Entry) -> None:
        config, pool = job_config(job, self.service.config), self.service.rank_pool
        backend: ServiceBackend = BesideWorker(self, job, entry, config)
        if pool is not None and is_for_ranks(pool, self.service.config, job, config):
            backend = OnPool(pool, self, job, entry, config)
        record = run_here(driver.Job(config, backend).compute())
        backend.say("writing")
        with job.trace.span("coordinator", "write"):
            arrays = {"vertex": backend.graph.user_ids}
            for name in record.runs[0].arrays:
                rows = [run.arrays[name] for run in record.runs]
                arrays[name] = rows[0] if len(rows) == 1 else np.stack(rows)
            job.summary = {**summarise(record), **backend.describe(record)}
            self.service.disk.make_room(sum(array.nbytes for array in arrays.values()))
            self.service.journal.write_result(job.id, arrays, job.trace)


def job_config(job: Job, base: Config) -> Config:
    """The job's options as a checked configuration, the worker's part as in ``base``; ConfigError names key and fix."""
    options = dict(job.options)
    if job.source is not None:
        options["source"] = job.source
    config = configured(job.algorithm, options)
    npu, compare = base.npu, base.compare
    if "npu.mode" in options:
        npu = dataclasses.replace(npu, mode=config.npu.mode)
    if "compare.enabled" in options:
        compare = dataclasses.replace(compare, enabled=config.compare.enabled)
    graph = dataclasses.replace(config.graph, cache_dir=base.graph.cache_dir)
    return dataclasses.replace(
        config, algorithm=job.algorithm, engine="level",  # of a search in this process
        graph=graph, npu=npu, core=base.core, exchange=base.exchange, compare=compare,
    )  # fmt: skip


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
