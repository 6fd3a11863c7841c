"""One job, from the graph to checked arrays in the user's ids; on the computing thread, in stoppable steps."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import numba
import numpy as np

from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs, ManyResult
from cpu_engine.graph.graph import Graph
from hybrid.algorithms import algorithm_named, description_of
from hybrid.algorithms.algorithm import Algorithm, Arrays, Description, Found, Task
from hybrid.algorithms.bfs import Bfs, reach_nothing
from hybrid.algorithms.distribution import describe_spread
from hybrid.api.options import configured
from hybrid.cli.terminal import plural
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.job.algorithm_job import LibraryRun, conclude_run, run_once, warm_up_algorithm
from hybrid.job.batches import warm_up_batches
from hybrid.job.failed_proof import Repair
from hybrid.job.sources import Source, resolve_sources
from hybrid.job.verdict import Verdict
from hybrid.job.warm_up import warm_up
from hybrid.offload.traverse import Traversed, traverse_alone
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
from hybrid.service.worker.jobs import JobHelp
from hybrid.service.worker.pool import Workers

_log = logging.getLogger(__name__)
MOST_LOSSES = 3  # pools that may end with a job before it is given up
FEW_SOURCES = 8  # searched one by one, level by level in the trace; more go 64 at a time
Checked = tuple[list[LibraryRun], Verdict | None]


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
        description = description_of(job.algorithm)
        sources: list[Source | None] = list(resolve_sources(graph, config)) if description.sourced else [None]
        job.total = len(sources)
        tasks = [Task(graph, config, source) for source in sources]
        if self.rank_pool is not None and self.rank_pool.takes(job, config):
            self._run_on_ranks(job, entry, description, tasks)
            return
        help = JobHelp(self._workers, entry.id, tasks[0], job.algorithm, len(tasks), trace)
        try:
            self._say(job, "compiling")
            with self._compute.interruptible(), trace.span("coordinator", "compile"):
                self._warm_up(description, config, graph)
            help.open()
            self._say(job, "running")
            with self._compute.interruptible():
                help.prepare()
                search = self._search if isinstance(description, Bfs) else self._compute_all
                runs, verdict = search(job, tasks, help)
        finally:
            help.close()
        self._say(job, "writing")
        with trace.span("coordinator", "write"):
            arrays = {"vertex": graph.user_ids, **stack([run.arrays for run in runs])}
            job.summary = summarise(description, graph, runs, job)
            job.summary |= {"npu": help.describe(), "verdict": None if verdict is None else verdict.as_dict()}
            self.disk.make_room(sum(array.nbytes for array in arrays.values()))
            self._journal.write_result(job.id, arrays, trace.events)

    def _run_on_ranks(self, job: Job, entry: Entry, description: Description, tasks: list[Task]) -> None:
        """The pool computes, this process checks."""
        assert self.rank_pool is not None
        graph, trace = tasks[0].graph, job.trace
        self._say(job, "compiling")
        with self._compute.interruptible(), trace.span("coordinator", "compile"):
            self._warm_up(description, tasks[0].config, graph)
        self._say(job, "running" if self.rank_pool.is_up else "waiting for the ranks")
        with self._compute.interruptible():
            runs, account = self.rank_pool.compute(job, entry, tasks, self._advance)
        self._say(job, "writing")
        with trace.span("coordinator", "write"):
            arrays = {"vertex": graph.user_ids, **stack([run.arrays for run in runs])}
            job.summary = {**summarise(description, graph, runs, job), "ranks": account, "losses": job.losses}
            self.disk.make_room(sum(array.nbytes for array in arrays.values()))
            self._journal.write_result(job.id, arrays, trace.events)

    def _warm_up(self, description: Description, config: Config, graph: Graph) -> None:
        kind = None if graph.weight is None else graph.weight.dtype
        known = (description.name, graph.directed, kind)
        if known in self._warm:
            return
        if isinstance(description, Algorithm):
            warm_up_algorithm(description, config, graph)
        else:
            warm_up("level")
        self._warm.add(known)

    def _compute_all(self, job: Job, tasks: list[Task], help: JobHelp) -> Checked:
        algorithm, runs = algorithm_named(job.algorithm), []
        for task in tasks:
            job.trace.source = None if task.source is None else task.source.user_id
            runs.append(run_once(algorithm, task, job.trace, help.npu))
            self._advance(job, 1)
        job.trace.source = None
        return runs, help.compare(None, tasks, _spent(runs))

    def _search(self, job: Job, tasks: list[Task], help: JobHelp) -> Checked:
        if len(tasks) > FEW_SOURCES:
            return self._search_many(job, tasks, help)
        engine, runs, trace = LevelBfs(help.split(tasks[0].graph)), [], job.trace
        for task in tasks:
            assert task.source is not None
            trace.source = task.source.user_id
            runs.append(_search_one(engine, task, help, trace))
            self._advance(job, 1)
        trace.source = None
        return runs, help.compare(engine, tasks, _spent(runs))

    def _search_many(self, job: Job, tasks: list[Task], help: JobHelp) -> Checked:
        engine, runs, trace = ManyBfs(tasks[0].graph), [], job.trace
        if help.helps:
            with trace.span("coordinator", "compile"):
                warm_up_batches()
        for first in range(0, len(tasks), ROOTS_PER_PASS):
            some = tasks[first : first + ROOTS_PER_PASS]
            runs += _search_together(engine, some, help, trace)
            self._advance(job, len(some))
        return runs, help.compare(None, tasks, _spent(runs))

    def _say(self, job: Job, phase: str) -> None:
        job.phase = phase
        self.book.publish(job)

    def _advance(self, job: Job, amount: int) -> None:
        job.done += amount
        self.book.publish(job)


def _search_one(engine: LevelBfs, task: Task, help: JobHelp, trace: LiveTrace) -> LibraryRun:
    """One search, beside the worker if there is one; what then fails its check is searched again without."""
    t0 = trace.now()
    if task.root < 0:
        return conclude_run(_Checked(), task, reach_nothing(task), trace.now() - t0, trace)

    def conclude(done: Traversed, *, repair: bool = True) -> LibraryRun:
        counters = {"steps": done.steps, "edges_looked_at": done.edges_looked_at}
        found = Found({"level": done.level, "parent": done.parent}, counters)
        return conclude_run(_Checked(), task, found, trace.now() - t0, trace, repair=repair)

    shared = help.search(engine, task.root)
    if shared is not None:
        try:
            return conclude(shared, repair=False)
        except NotCertified as error:
            help.reject(error.reason)
    return conclude(traverse_alone(engine, task.root, trace))


def _search_together(engine: ManyBfs, tasks: list[Task], help: JobHelp, trace: LiveTrace) -> list[LibraryRun]:
    """Up to 64 searches in one pass; the same."""
    roots, t0 = np.array([task.root for task in tasks if task.root >= 0], np.int64), trace.now()

    def conclude(found: ManyResult, *, repair: bool = True) -> list[LibraryRun]:
        seconds, at, runs = (trace.now() - t0) / len(tasks), 0, []
        for task in tasks:
            one = reach_nothing(task)
            if task.root >= 0:
                level, parent = found.of(at)
                assert parent is not None
                one, at = Found({"level": level, "parent": parent}), at + 1
            runs.append(conclude_run(_Checked(), task, one, seconds, trace, repair=repair))
        return runs

    shared = help.search_many(roots) if roots.size else None
    if shared is not None:
        try:
            return conclude(shared.found, repair=False)
        except NotCertified as error:
            help.reject(error.reason)
    found = engine.run(roots, parents=True)
    trace.add("cpu", "step", t0, engine="many", direction="auto", level=-1, frontier=int(roots.size),
              edges=found.edges_looked_at)  # fmt: skip
    return conclude(found)


def _spent(runs: list[LibraryRun]) -> float:
    return sum(run.seconds_run for run in runs)


class _Checked(Bfs, Algorithm):
    """BFS as something that is checked like the others; it is run here."""


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
    return dataclasses.replace(config, graph=graph, npu=npu, core=base.core, exchange=base.exchange, compare=compare)


def stack(runs: list[Arrays]) -> Arrays:
    """One run as it is, several as rows."""
    if len(runs) == 1:
        return runs[0]
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}


def summarise(description: Description, graph: Graph, runs: list[LibraryRun], job: Job) -> dict[str, Any]:
    """What was found, in numbers and a sentence."""
    facts = [run.facts for run in runs]
    together = facts[0] if len(facts) == 1 else _over_runs(description, facts)
    main = description.fields[0]
    return {
        "title": description.title,
        "headline": description.headline(together),
        "facts": together,
        "certified": True,
        "check": description.checked_by,
        "claims": list(description.claims),
        "columns": {one.name: one.meaning for one in description.fields},
        "sources": [run.source.user_id for run in runs if run.source is not None],
        "spread": describe_spread(main, graph.user_ids, runs[0].arrays[main.name]),
        "runs": [run.as_dict() for run in runs[:64]],
        "repairs": [tell_repair(run.repair) for run in runs if run.repair is not None][:64],
        "threads": numba.get_num_threads(),
        "seconds": {
            "run": sum(run.seconds_run for run in runs),
            "certify": sum(run.seconds_check for run in runs),
            "compile": job.trace.spent("compile"),
        },
    }


def tell_repair(repair: Repair) -> dict[str, Any]:
    """For clients, to whom no path of this machine is told: the record by its name alone, the log has the path."""
    return {**repair.as_dict(), "record": None if repair.record is None else repair.record.name}


def _over_runs(description: Description, facts: list[dict[str, Any]]) -> dict[str, Any]:
    if isinstance(description, Bfs):
        return {"reached": sum(f["reached"] for f in facts), "max_level": max(f["max_level"] for f in facts)}
    return description.over_runs(facts)
