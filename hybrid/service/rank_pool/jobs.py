"""Jobs on the pool: what is given to the ranks, and what of their answers becomes a result.

Invariant: ranks are believed nothing. They answer in internal ids; every value is checked here on the service's own
graph, with the check of a run on one rank, before it is part of a result.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from cpu_engine.comm.requests import Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.store.graph_store import is_store, save_store
from hybrid.algorithms.algorithm import Found, Task
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.job.driver import at_once
from hybrid.job.engines import Unit
from hybrid.job.units import has_edges, prove_run, run_once
from hybrid.planning.plan import Plan, plan_off
from hybrid.ranks.algorithms import algorithm_on_ranks, policy_on_ranks
from hybrid.registry import ALGORITHMS
from hybrid.results.record import Record
from hybrid.results.run_record import Run
from hybrid.results.trace import Trace
from hybrid.service.catalogue import Catalogue, Entry
from hybrid.service.queue.backend import ServiceBackend
from hybrid.service.queue.jobs import Job
from hybrid.service.rank_pool.pool import RankPool
from hybrid.service.rank_pool.state import UP
from hybrid.service.rank_pool.wire import Frame


class PoolJobs:
    """Which jobs are for the ranks, and what they are told of each."""

    def __init__(self, pool: RankPool, config: Config, catalogue: Catalogue) -> None:
        self.pool, self._config, self._catalogue = pool, config, catalogue
        self._saved: dict[Entry, Path] = {}  # graphs that no cache has

    def takes(self, job: Job, config: Config) -> bool:
        """Whether this job is for the ranks; those that cannot be had for now leave all jobs to the service alone."""
        if not self.pool.usable or not ALGORITHMS[job.algorithm].on_ranks or config.sssp.strategy != "delta":
            return False
        if job.options.get("npu.mode", "off") != "off":
            return False  # who asks for the worker gets it, and that is the service's
        try:
            policy_on_ranks(self._config, algorithm_on_ranks(job.algorithm, self._config), self._config.ranks)
        except InputError:
            return False
        return True

    def order(self, job: Job, entry: Entry, tasks: list[Task]) -> dict[str, Any]:
        config = self._config
        cluster, graph = config.cluster, config.graph
        options = {
            **job.options, "npu.mode": "off", "engine": config.engine, "cluster.policy": cluster.policy,
            "cluster.sync": cluster.sync, "cluster.partition_cache": cluster.partition_cache,
            "graph.cache": graph.cache, "graph.cache_dir": graph.cache_dir,
        }  # fmt: skip
        roots = [(-1, -1) if task.source is None else (task.source.user_id, task.source.internal) for task in tasks]
        store = str(self._store_of(entry))
        return {
            "graph": entry.id, "store": store, "algorithm": job.algorithm, "options": options, "roots": roots,
            "keep": sorted({store, *(str(one.store) for one in self._catalogue.all() if one.store is not None)}),
        }  # fmt: skip

    def _store_of(self, entry: Entry) -> Path:
        """The folder from which ranks can map the very graph that the service has."""
        for gone in [one for one in self._saved if one not in self._catalogue.all()]:
            del self._saved[gone]
        if entry.store is None or not is_store(entry.store):
            assert entry.graph is not None
            path = self.pool.folder / f"graph-{entry.id}-{round(entry.created * 1e6)}"
            if not is_store(path):
                save_store(entry.graph, path)
            entry.store = self._saved[entry] = path
        return entry.store


class OnPool(ServiceBackend):
    """One job on the ranks; PoolLost if they end meanwhile."""

    _answers: Generator[Frame, None, dict[str, Any]] | None = None  # none is given where there is nothing to ask

    def __init__(self, jobs: PoolJobs, *common: Any) -> None:
        super().__init__(*common)
        self._jobs = jobs

    def open(self) -> Plan:
        pool, searched = self._jobs.pool, [task for task in self.tasks if has_edges(task)]
        self.say("running" if pool.state.state == UP else "waiting for the ranks")
        if searched:
            with self.interruptible():
                order = self._jobs.order(self.job, self.entry, searched)
            self._answers = pool.carry_out(order)
        return plan_off(self.graph, "the ranks compute alone")

    def run_proven(self, unit: Unit) -> list[Run]:
        (task,), trace = unit, self.trace
        if not has_edges(task):  # nothing to search, so nobody to help
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
