"""The backend of a job on many ranks: each holds a part of the graph, rank 0 proves on the whole graph and speaks.

Methods are drivers (cpu_engine.comm.requests): one per rank over MPI, or all of them in one process for tests.
Invariant: rank 0 alone makes the result folder and speaks; an error on any rank ends all of them at once, with one
line that names the rank and its machine.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from cpu_engine.bfs.many.engine import ManyResult
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.comm.collectives import RankInfo, barrier, broadcast_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.ranks.algorithms import Options, PartFinding, RankAlgorithm
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.config.schema import Config
from hybrid.graphs.opening import Opened, open_graph
from hybrid.graphs.sources import Source, resolve_sources
from hybrid.job.driver import Job, Prepared
from hybrid.job.engines import BatchEngine, Computed, Unit, roots_of
from hybrid.job.proof import count_false_values, prove_found
from hybrid.job.units import conclude, has_edges, make_run, run_once
from hybrid.job.verdict import judge, turns
from hybrid.job.warm_up import say_if_slow
from hybrid.launch.announce import Announcer
from hybrid.offload.many_sources import ManyTraversed
from hybrid.planning.core_statistics import FEWEST_RUNS, SearchFacts, core_spread, looks_per_vertex
from hybrid.planning.plan import choose_batch, largest_core
from hybrid.planning.prediction import typical_root
from hybrid.ranks.algorithms import (
    MANY_SOURCES,
    masters_by_part,
    options_of,
)
from hybrid.ranks.from_shares import builds_shares, drive_from_shares
from hybrid.ranks.part_runs import Gathered, PartRuns, config_fingerprint
from hybrid.ranks.parts import OpenedPart, Opener, open_graph_on_ranks
from hybrid.ranks.rendezvous import require_same
from hybrid.ranks.summary import describe_search, over_ranks
from hybrid.ranks.warm_up import rehearse, search_in_loopback, warm_up_on_ranks
from hybrid.ranks.workers import RankCore
from hybrid.results.folder import ResultFolder
from hybrid.results.record import WorkerFacts, log_opened
from hybrid.results.run_record import Run, Verdict
from hybrid.results.schema import RunFurther, Summary
from hybrid.results.tally import Tally
from hybrid.terminal import note

_log = logging.getLogger(__name__)


class OnRanks(PartRuns):
    """One rank's side of a job. ``folder``: rank 0's result folder, None elsewhere."""

    def __init__(
        self,
        info: RankInfo,
        config: Config,
        folder: ResultFolder | None,
        announcer: Announcer,
        opener: Opener = open_graph,
    ) -> None:
        super().__init__(info, config)
        self.speaks = info.rank == 0
        self._announcer, self._opener = announcer, opener
        self._log_path = None if folder is None else folder.path / "worker.log"
        self._core: RankCore | None = None
        self._algorithm: Algorithm
        self._chosen: RankAlgorithm
        self._mine: OpenedPart
        self._made: Any = None
        self._many: Any = None
        self._graph: Graph
        self._sync = "bsp"
        self._own: list[np.ndarray] | None = None
        self._split: CoreSplit

    def prepare(self, algorithm: Algorithm) -> Driver[Prepared]:
        info, config, trace = self.info, self.config, self.trace
        fix = "give every rank the same file and arguments"
        yield from require_same(info, "configuration", config_fingerprint(config), fix)
        chosen, policy, sync = self.choose(algorithm.name)
        self._core = core = RankCore(info, config, chosen.name, trace, self._log_path, self._announcer)
        core.start_early()
        if chosen.name == "bfs" and info.local_ranks[1:2] == (info.rank,):
            search_in_loopback(config.engine, sync, policy)  # it would only wait while the first one opens the graph
        opened = yield from self._open(algorithm, chosen)
        with trace.span("coordinator", "partition"):
            self._mine = yield from self.open_part(opened, chosen, policy)
        self._algorithm, self._chosen, self._graph, self._sync = algorithm, chosen, opened.graph, sync
        self._own = masters_by_part(self._mine.part) if self.speaks else None
        warm_up = warm_up_on_ranks(info, algorithm, chosen, config, opened.graph, policy, sync)
        if config.npu.mode == "auto":  # it decides by a search; else the workers load while the kernels are
            with trace.span("coordinator", "compile"):
                yield from warm_up
        with trace.span("coordinator", "plan"):
            tasks = yield from self._share_tasks(algorithm, opened)
            measured = yield from self._measure(opened, core)
            batch = choose_batch(config, sum(map(has_edges, tasks))) if algorithm.name == "bfs" else 1
            one_by_one = config.npu.mode == "auto" and config.npu.batch == "auto"  # which is what mode auto predicts
            plan = yield from core.share_plan(opened, len(tasks), 1 if one_by_one else batch, measured)
            batch = batch if plan.mode == "off" else plan.batch
        with trace.span("coordinator", "compile"):
            if config.npu.mode != "auto":
                yield from warm_up
            options = {**options_of(config), "core_size": plan.core_size}
            part, searched = self._mine.part, [task for task in tasks if has_edges(task)]
            core.attach(part, sync)
            if batch > 1:
                self._many = MANY_SOURCES.make(part, opened.graph, sync, options)
                yield from self._drive(searched[:1], {})
            else:
                self._made = chosen.make(part, opened.graph, sync, options)
            if chosen.name == "bfs" or plan.mode != "off":
                yield from rehearse(self._drive, part.m, searched[:batch], core, config)
        yield from self.events.align(trace)
        self._split = plan.split
        return Prepared(opened, tasks, batch, dataclasses.replace(plan, batch=batch))

    def _open(self, algorithm: Algorithm, chosen: RankAlgorithm) -> Driver[Opened]:
        driver = open_graph_on_ranks(self.info, self.config.graph, self.trace, self._announcer, self._opener)
        if not self.speaks:
            opened = yield from driver
            return opened
        with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
            opened = yield from driver
        log_opened(opened)
        if not chosen.threaded and numba.get_num_threads() > 1:
            note(f"{chosen.name} uses one thread of each rank: more ranks use more CPUs")
        if algorithm.weighted and opened.graph.weight is None:
            note("the graph has no weights: every edge counts as 1")
        return opened

    def _share_tasks(self, algorithm: Algorithm, opened: Opened) -> Driver[list[Task]]:
        """Sources are resolved by rank 0, so that what is to be said about them is said once."""
        if not algorithm.sourced:
            return [Task(opened.graph, self.config)]
        pairs = None
        if self.speaks:
            pairs = [(one.user_id, one.internal) for one in resolve_sources(opened.graph, self.config)]
        shared = yield from broadcast_facts(self.info, pairs)
        return [Task(opened.graph, self.config, Source(*pair)) for pair in shared]

    def _measure(self, opened: Opened, core: RankCore) -> Driver[SearchFacts | None]:
        """A search by all ranks without a core solver, the fastest of a few, at rank 0, if mode auto wants one."""
        graph, chosen = opened.graph, self._chosen
        if self.config.npu.mode != "auto" or not (yield from core.wants_search(opened)):
            return None
        made = chosen.make(self._mine.part, graph, self._sync, {})
        source, best = Source(-1, typical_root(graph)), None
        for _ in range(FEWEST_RUNS):
            done, _ = yield from self.run_parts(chosen, made, graph, source, self._own)
            best = done if best is None or done.seconds < best.seconds else best
        self.statistics, self.events.events = [], []  # it is in no account
        if best is None or best.found is None:
            return None
        total = over_ranks(best.by_rank)
        edges = int(total.get("edges_looked_at", 0))
        limit = min(graph.n, largest_core(self.config.core))
        level = best.found.arrays.get("level")
        spread = np.empty(0, np.int64) if level is None else core_spread(level, limit)  # hops, not distances
        return SearchFacts(best.seconds, total["rounds"], edges, looks_per_vertex(graph.in_offsets, edges), spread)

    # ------------------------------------------------------------------------------------- the runs

    def _drive(self, unit: Unit, options: Options) -> Driver[PartFinding]:
        """One run of this rank's part, by the engine that the job has."""
        options = options_of(self.config) | options
        if self._many is not None:
            return MANY_SOURCES.drive(self._many, -1, options | {"roots": roots_of(unit)})
        return self._chosen.drive(self._made, -1 if unit[0].source is None else unit[0].root, options)

    def run(self, unit: Unit) -> Driver[list[Run]]:
        task, core = unit[0], self._core
        if not has_edges(task):  # nothing to search
            return [run_once(self._algorithm, task, self.trace)] if self.speaks else []
        assert core is not None
        yield from core.rehearse(lambda options: self._drive(unit, options))
        if self._many is not None:
            found = yield from self._run_many(unit, core)
            return found
        source = task.source
        gathered, tally = yield from self.run_parts(self._chosen, self._made, task.graph, source, self._own, core)
        runs = []
        if gathered.found is not None:
            assert tally is not None
            runs = [self._prove(task, gathered, tally)]
        failed = bool(runs and runs[0].repair is not None and runs[0].npu.rounds_merged)
        yield from core.reject_if(failed, "the result" if source is None else f"the result for source {source.user_id}")
        return runs

    def _run_many(self, unit: Unit, core: RankCore) -> Driver[list[Run]]:
        """Many sources in one pass of all ranks: their levels; parents are filled in at rank 0, from proven levels."""
        trace, roots = self.trace, roots_of(unit)
        gathered, tally = yield from self.run_parts(
            MANY_SOURCES, self._many, unit[0].graph, None, self._own, core, {"roots": roots}
        )
        if gathered.found is None or tally is None:
            yield from core.reject_if(False, "")
            return []
        t1, total, level = trace.now(), over_ranks(gathered.by_rank), gathered.found.arrays["level"]
        steps, edges = total["rounds"], total.get("edges_looked_at", 0)
        done = ManyTraversed(roots, ManyResult(level, None, steps, edges), tally, steps, edges)
        computed = Computed([], tally, seconds=max(gathered.seconds, 1e-9), batch=done)
        proven = BatchEngine(self._split).prove(unit, computed, trace)
        further = RunFurther(ranks=describe_search(gathered.by_rank))
        runs = conclude(self._algorithm, unit, computed, proven, trace.now() - t1, further)
        failed = tally.rounds_merged > 0 and any(repair is not None for _, repair in proven)
        yield from core.reject_if(failed, f"a batch of {len(unit)} sources")
        return runs

    def _prove(self, task: Task, gathered: Gathered, tally: Tally) -> Run:
        """At rank 0, on the whole graph, which knows nothing of parts."""
        trace, found, by_rank = self.trace, gathered.found, gathered.by_rank
        assert found is not None
        t1 = trace.now()
        told, further = describe_search(by_rank), RunFurther()
        if self._algorithm.name == "bfs":
            total = over_ranks(by_rank)
            counters = {"steps": total["rounds"], "edges_looked_at": total.get("edges_looked_at", 0)}
            further["ranks"] = told
        else:
            counters = {**found.counters, "ranks": told}
        found = dataclasses.replace(found, counters=counters)
        proven, repair = prove_found(self._algorithm, task, found, trace)
        if repair is not None and tally.rounds_merged:
            false = tally.values_adopted  # how many of them is not known
            if self._algorithm.name == "bfs":
                before, after = (one.arrays["level"] for one in (found, proven))
                false = count_false_values(before, after, self._split.core_size)
            tally.values_rejected += false
        seconds = max(gathered.seconds, 1e-9)
        waited = min(seconds, sum(one.get("wait_s", 0.0) for one in by_rank) / len(by_rank))
        return make_run(
            self._algorithm, task, proven, repair, seconds, trace.now() - t1, tally, waited, further
        )  # fmt: skip

    def compare(self, units: Sequence[Unit]) -> Driver[Verdict | None]:
        """CPU-only against hybrid on the same ranks, in turns; None where a worker was lost on the way."""
        core, repeats = self._core, self.config.compare.repeats
        assert core is not None
        if not self.config.compare.enabled or core.mode == "off" or not units:
            return None
        if not (yield from core.any_serving()):
            return None
        times = np.zeros((2, repeats, len(units)))
        with self.trace.span("coordinator", "compare", repeats=repeats):
            for way, row, column in turns(repeats, len(units)):
                options = {}
                if way:
                    options = yield from core.begin()
                yield from barrier(patient=False)
                began = time.perf_counter()
                yield from self._drive(units[column], options)
                slowest = yield AllReduce(np.array([round((time.perf_counter() - began) * 1e9)], np.int64), "max")
                times[way, row, column] = int(slowest[0]) * 1e-9
                if way:
                    core.end_run()
            usable = yield from core.any_serving()
        return core.label_verdict(judge(times[0], times[1], core.mode)) if usable else None

    # --------------------------------------------------------------------------------------- the end

    def conclude(self) -> Driver[dict[str, Any] | None]:
        yield from self.events.collect(self.trace)
        ranks = yield from self.describe(self._mine, self._sync)
        return ranks

    @property
    def worker(self) -> WorkerFacts | None:
        return None if self._core is None else self._core.worker

    def close(self) -> None:
        if self._core is not None:
            self._core.close()


def drive_on_rank(
    info: RankInfo, config: Config, folder: ResultFolder | None, announcer: Announcer, opener: Opener = open_graph
) -> Driver[Summary | None]:
    """One rank's side of the configured job; the summary at rank 0."""
    if (yield from builds_shares(info, config)):
        summary = yield from drive_from_shares(info, config, folder)
    else:
        summary = yield from _drive_whole(info, config, folder, announcer, opener)
    yield from barrier()  # no rank ends before the result is written
    return summary


def _drive_whole(
    info: RankInfo, config: Config, folder: ResultFolder | None, announcer: Announcer, opener: Opener
) -> Driver[Summary | None]:
    summary = yield from Job(config, OnRanks(info, config, folder, announcer, opener), folder).drive()
    return summary
