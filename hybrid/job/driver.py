"""The one driver of a job, for every algorithm and every backend: open, plan, run, prove or repair, compare, write.

``Job.drive`` is a driver in the sense of cpu_engine.comm.requests: on many ranks it yields requests, on one it yields
none. Invariant: no number leaves without its check, and nothing stays behind - no process, no exchange directory, no
half-written result - however the job ends.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from cpu_engine.comm.requests import Driver
from cpu_engine.graph.graph import Graph
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.config.schema import Config
from hybrid.devices.profiles import parse_device
from hybrid.errors import ConfigError
from hybrid.graphs.opening import Opened, open_graph
from hybrid.graphs.sources import resolve_sources
from hybrid.job.core import JobCore
from hybrid.job.engines import Engine, SharedCore, Unit, engine_for, why_not_shared
from hybrid.job.units import has_edges, in_order, run_unit, units_of
from hybrid.job.warm_up import REHEARSED_ARCS, say_if_slow, set_threads, warm_up_hybrid, warm_up_job
from hybrid.planning.plan import Plan, make_plan, plan_by_rule, plan_off
from hybrid.results.folder import ResultFolder
from hybrid.results.record import Finished, Record, WorkerFacts, log_opened, result_folder, write_record
from hybrid.results.run_record import Run, Verdict
from hybrid.results.schema import Summary
from hybrid.results.trace import Trace
from hybrid.terminal import note, progress

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Prepared:
    """A job that is ready to run: the graph, what is asked, how many tasks go together, what was planned."""

    opened: Opened
    tasks: list[Task]
    batch: int
    plan: Plan


class Backend(Protocol):
    """Where a job runs. Every method is a driver; all ranks call the same methods in the same order."""

    trace: Trace
    speaks: bool  # whether this process has the results and writes them: of several ranks, one does

    def prepare(self, algorithm: Algorithm) -> Driver[Prepared]:
        """Open the graph, plan, start the device, compile: all that is not part of a run's time."""

    def run(self, unit: Unit) -> Driver[list[Run]]:
        """Compute and prove; the runs where ``speaks``, else none."""

    def compare(self, units: list[Unit]) -> Driver[Verdict | None]:
        """Time CPU-only against hybrid, in turns; None where that cannot be or is not wanted."""

    def conclude(self) -> Driver[dict[str, Any] | None]:
        """The account of the ranks, where there are several."""

    @property
    def worker(self) -> WorkerFacts | None:
        """The device that took part, if any."""

    def close(self) -> None:
        """Leave nothing behind; may be called at any point."""


class Job:
    """See the module. ``folder``: where the result goes, for ``drive`` of the process that speaks."""

    def __init__(self, config: Config, backend: Backend, folder: ResultFolder | None = None) -> None:
        self.config, self.backend, self.folder = config, backend, folder

    def drive(self) -> Driver[Summary | None]:
        """All of it; the summary, where the backend speaks."""
        record = yield from self.compute()
        if record is None:
            return None
        assert self.folder is not None
        return write_record(self.folder, record)

    def compute(self) -> Driver[Record | None]:
        """All but the writing; the record, where the backend speaks."""
        config, backend, algorithm = self.config, self.backend, algorithm_named(self.config.algorithm)
        try:
            prepared = yield from backend.prepare(algorithm)
            runs = yield from self._run_all(algorithm, prepared)
            units = units_of([task for task in prepared.tasks if has_edges(task)], prepared.batch)
            verdict = yield from backend.compare(units)
            ranks = yield from backend.conclude()
        finally:
            backend.close()
        return None if not backend.speaks else Record(
            config, algorithm, prepared.opened, prepared.plan, runs, backend.trace, backend.worker, verdict, ranks
        )  # fmt: skip

    def _run_all(self, algorithm: Algorithm, prepared: Prepared) -> Driver[list[Run]]:
        backend, trace, tasks = self.backend, self.backend.trace, prepared.tasks
        runs: list[Run] = []
        done = 0
        label = algorithm.doing or algorithm.name
        with progress(label, "source") if self.folder is not None else nullcontext() as bar:
            for unit in units_of(tasks, prepared.batch):
                if bar is not None:
                    bar(done, len(tasks))
                source = unit[0].source
                trace.source = None if source is None or len(unit) > 1 else source.user_id
                runs += yield from backend.run(unit)
                done += len(unit)
        trace.source = None
        return in_order(tasks, runs) if backend.speaks else []


class Alone:
    """This process, with a worker of its own beside it where that is planned."""

    speaks = True

    def __init__(self, config: Config, folder: ResultFolder) -> None:
        simulation = parse_device(config.npu.device)
        self.config = config
        self.trace = Trace(None if simulation is None else simulation.label)
        self._core = JobCore(config, self.trace, folder.path / "worker.log")
        self._algorithm: Algorithm
        self._engine: Engine

    def prepare(self, algorithm: Algorithm) -> Driver[Prepared]:
        config, trace, core = self.config, self.trace, self._core
        with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
            opened = open_graph(config.graph, trace)
        log_opened(opened)
        graph, ruled = opened.graph, None
        if algorithm.weighted and graph.weight is None:
            note("the graph has no weights: every edge counts as 1")
        if config.npu.mode not in ("off", "auto"):  # auto has not decided yet; a worker that loads takes CPU time
            with trace.span("coordinator", "plan"):
                ruled = plan_job(graph, config, algorithm, rule_only=True)
                if ruled.mode != "off":
                    core.start()  # it loads while the kernels are
        with trace.span("coordinator", "compile"):
            warm_up_job(algorithm, config, graph)
        with trace.span("coordinator", "plan"):
            plan = plan_job(graph, config, algorithm, ruled)
            sources = list(resolve_sources(graph, config)) if algorithm.sourced else [None]
            tasks = [Task(graph, config, source) for source in sources]
            self._algorithm = algorithm
            self._engine = engine_for(algorithm, tasks[0], plan.split, batch=plan.batch, mode=plan.mode)
            core.attach(plan, SharedCore(algorithm.name, plan.split), len(tasks))
        if plan.batch > 1 or plan.mode != "off":
            with trace.span("coordinator", "compile"):
                warm_up_hybrid(algorithm, config, graph, plan.batch)
        self._rehearse(tasks, plan)
        for task in tasks:
            algorithm.prepare(task)
        _log.info("core %d vertices, %d edges (%s); mode %s", plan.core_size, plan.core_edges, plan.rule, plan.mode)
        return at_once(Prepared(opened, tasks, plan.batch, plan))

    def _rehearse(self, tasks: list[Task], plan: Plan) -> None:
        """Do beforehand what the first run would be timed with: load rarely used kernels, wait for a worker."""
        task = next((task for task in tasks if has_edges(task)), None)
        if task is not None and self._algorithm.name == "bfs" and plan.batch == 1 and task.graph.m <= REHEARSED_ARCS:
            with self.trace.span("coordinator", "compile"):
                self._engine.alone([task], Trace())
        self._core.warm_up()

    def run(self, unit: Unit) -> Driver[list[Run]]:
        return at_once(run_unit(self._algorithm, self._engine, unit, self._core))

    def compare(self, units: list[Unit]) -> Driver[Verdict | None]:
        return at_once(self._core.compare(self._engine, units))

    def conclude(self) -> Driver[dict[str, Any] | None]:
        return at_once(None)

    @property
    def worker(self) -> WorkerFacts | None:
        return self._core.worker

    def close(self) -> None:
        self._core.close()


def run_job(config: Config) -> Finished:
    """Run the configured job on this process alone to its certified result."""
    if config.ranks != 1:
        raise ConfigError(
            "ranks: more than one must be started by mpirun",
            value=config.ranks,
            fix="use `tandem run`, which starts them, or set ranks: 1",
        )
    if config.cluster.build == "shares":
        raise ConfigError(
            "cluster.build: shares are built by several ranks",
            value="ranks: 1",
            fix="set ranks to 2 or more, or cluster.build to auto",
        )
    if config.threads != "auto":
        set_threads(int(config.threads))
    with result_folder(config) as folder:
        summary = run_here(Job(config, Alone(config, folder), folder).drive())
    assert summary is not None
    return Finished(folder.final, summary)


def at_once(value: T) -> Driver[T]:
    """A driver that yields no request."""
    yield from ()
    return value


def run_here(driver: Driver[Any]) -> Any:
    """The result of a driver that yields no request, as on one rank."""
    try:
        next(driver)
    except StopIteration as end:
        return end.value
    raise AssertionError("a job on one rank has nothing to wait for")


def plan_job(
    graph: Graph, config: Config, algorithm: Algorithm, ruled: Plan | None = None, *, rule_only: bool = False
) -> Plan:
    """Core, mode and batch for this job; ``rule_only``: as configured, without predictions."""
    why = "" if config.npu.mode == "off" else why_not_shared(algorithm.name, graph)
    if why:
        return plan_off(graph, why)
    return plan_by_rule(graph, config) if rule_only else make_plan(graph, config, ruled)
