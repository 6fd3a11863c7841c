"""Jobs on the pool: what is given to the ranks, and what of their answers becomes a result.

Invariant: ranks are believed nothing. They answer in internal ids; every value is checked here on the service's own
graph, with the check of a run on one rank, before it is part of a result.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cpu_engine.errors import InputError
from cpu_engine.graph.store.graph_store import is_store, save_store
from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.job.units import has_edges, prove_run, run_without_edges
from hybrid.ranks.algorithms import algorithm_on_ranks, policy_on_ranks
from hybrid.registry import ALGORITHMS
from hybrid.results.run_record import Run
from hybrid.results.trace import Trace
from hybrid.service.catalogue import Catalogue, Entry
from hybrid.service.queue.jobs import Job
from hybrid.service.rank_pool.pool import RankPool
from hybrid.service.rank_pool.state import UP
from hybrid.service.rank_pool.wire import Frame

Advance = Callable[[Job, int], None]


class PoolJobs:
    """Where jobs are computed that ranks can compute together."""

    def __init__(self, pool: RankPool, config: Config, catalogue: Catalogue) -> None:
        self.pool, self._config, self._catalogue = pool, config, catalogue
        self._saved: dict[Entry, Path] = {}  # graphs that no cache has

    @property
    def is_up(self) -> bool:
        return self.pool.state.state == UP

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

    def compute(
        self, job: Job, entry: Entry, algorithm: Algorithm, tasks: list[Task], advance: Advance
    ) -> tuple[list[Run], dict[str, Any] | None]:
        """The checked runs, and the account of the ranks; PoolLost if they end meanwhile."""
        searched = [task for task in tasks if has_edges(task)]
        runs, account, trace = [], None, job.trace
        with contextlib.closing(_Answers(self.pool, self._order(job, entry, searched), bool(searched))) as answers:
            for task in tasks:
                trace.source = None if task.source is None else task.source.user_id
                if not has_edges(task):  # nothing to search, so nobody to help
                    runs.append(run_without_edges(algorithm, task, trace))
                else:
                    frame = next(answers)
                    job.phase = "running"
                    add_events(trace, frame)
                    runs.append(prove_run(algorithm, task, found_in(frame), float(frame.facts["seconds"]), trace))
                advance(job, 1)
            account = answers.account()
        trace.source = None
        return runs, account

    def _order(self, job: Job, entry: Entry, tasks: list[Task]) -> dict[str, Any]:
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


class _Answers:
    """The frames of one order; none is given where there is nothing to ask."""

    def __init__(self, pool: RankPool, order: dict[str, Any], needed: bool) -> None:
        self._frames = pool.carry_out(order) if needed else None

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        assert self._frames is not None
        return next(self._frames)

    def account(self) -> dict[str, Any] | None:
        """What the ranks did, once all runs are taken."""
        if self._frames is None:
            return None
        try:
            next(self._frames)
        except StopIteration as stop:
            ranks: dict[str, Any] = stop.value["ranks"]
            return ranks
        fix = "ask again; the service's log has what the ranks said"
        raise NotCertified("the ranks gave more answers than were asked for", fix=fix)

    def close(self) -> None:
        if self._frames is not None:
            self._frames.close()


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
