"""What the backends of a service's job have in common (hybrid/job/driver.py): its steps can be stopped, and are seen.

Invariant: kernels run inside of ``interruptible``; what must not be cut short, such as borrowing a worker, does not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from cpu_engine.comm.requests import Driver
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.config.schema import Config
from hybrid.graphs.opening import Opened
from hybrid.graphs.sources import Source, resolve_sources
from hybrid.job.driver import Prepared, at_once
from hybrid.job.engines import Unit
from hybrid.job.warm_up import warm_up_job
from hybrid.planning.plan import Plan
from hybrid.results.record import Record, WorkerFacts
from hybrid.results.run_record import Run, Verdict
from hybrid.results.trace import Trace
from hybrid.service.catalogue import Entry
from hybrid.service.queue.jobs import Job


class ServiceBackend:
    """One job of the service. ``warm``: what was compiled before, for all of them."""

    speaks, batch = True, 1
    worker: WorkerFacts | None = None

    def __init__(
        self, interruptible: Callable[[], AbstractContextManager[None]], publish: Callable[[Job], None],
        warm: set[tuple[object, ...]], job: Job, entry: Entry, config: Config,
    ) -> None:  # fmt: skip
        assert entry.graph is not None
        self.interruptible, self._publish, self._warm = interruptible, publish, warm
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
            if known not in self._warm:
                warm_up_job(algorithm, config, graph)
                self._warm.add(known)
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
        self._publish(self.job)
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
        self._publish(self.job)
