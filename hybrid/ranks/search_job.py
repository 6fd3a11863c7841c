"""The main job on many ranks: what hybrid/job/search_job.py does on one, by all of them, told and written by rank 0.

``RankJob.drive`` is a driver (cpu_engine.comm.requests): one per rank over MPI, or all of them in one process for
tests. Invariant: rank 0 alone makes the result folder, proves the result on the whole graph and speaks; an error on any
rank ends all of them at once, with one line that names the rank and its machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import time
from contextlib import nullcontext
from typing import Any

import numba
import numpy as np

from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.partition.part import Part
from hybrid.cli.terminal import progress
from hybrid.config import dump_config
from hybrid.config.schema import Config
from hybrid.job.opening import Opened, open_graph
from hybrid.job.proof import prove_or_repair
from hybrid.job.sources import Source, resolve_sources
from hybrid.job.verdict import Verdict
from hybrid.job.warm_up import say_if_slow, warm_up_certificate
from hybrid.launch.announce import Announcer
from hybrid.offload.traverse import NpuTally, Traversed
from hybrid.planning.plan import Plan
from hybrid.ranks.collectives import Seat, barrier, broadcast_facts, gather, gather_facts
from hybrid.ranks.parts import OpenedPart, Opener, choose_policy, open_graph_on_ranks, open_part_on_ranks
from hybrid.ranks.rendezvous import require_same
from hybrid.ranks.summary import Statistics, add_statistics, describe_part, describe_ranks, describe_search, over_ranks
from hybrid.ranks.trace import RankTrace
from hybrid.ranks.warm_up import rehearse, search_in_loopback, warm_up_on_ranks
from hybrid.ranks.workers import RankNpu, share_mode
from hybrid.results.folder import ResultFolder
from hybrid.results.record import Record, WorkerFacts, tell_opened, write_record
from hybrid.results.run_record import Run, edges_reached, run_without_edges
from hybrid.results.trace import Trace

_log = logging.getLogger(__name__)


class RankJob:
    """One rank's side of the job. Rank 0 is given the result folder, the others None."""

    def __init__(
        self, seat: Seat, config: Config, folder: ResultFolder | None, announcer: Announcer, opener: Opener = open_graph
    ) -> None:
        self.seat, self.config, self.folder = seat, config, folder
        self._announcer, self._opener = announcer, opener
        self.trace = Trace()  # the job's at rank 0; elsewhere it only keeps the clock
        self.events = RankTrace(seat)
        self.statistics: list[Statistics] = []  # by rank, over the sources so far; at rank 0

    def drive(self) -> Driver[dict[str, Any] | None]:
        """All of it; the summary at rank 0."""
        fix = "give every rank the same file and arguments"
        yield from require_same(self.seat, "configuration", config_fingerprint(self.config), fix)
        log_path = None if self.folder is None else self.folder.path / "worker.log"
        mode = yield from share_mode(self.seat, self.config)
        npu = RankNpu(self.seat, self.config, mode, self.trace, log_path, self._announcer)
        try:
            found = yield from self._drive(npu)
        finally:
            npu.close()
        if found is None:
            yield from barrier()
            return None
        summary = self._write(found)
        yield from barrier()
        return summary

    def _drive(self, npu: RankNpu) -> Driver[_Found | None]:
        seat, config, trace = self.seat, self.config, self.trace
        if seat.local_ranks[1:2] == (seat.rank,):  # it would only wait while the first one opens or builds the graph
            search_in_loopback(
                config.engine, config.cluster.sync, choose_policy(config.cluster.policy, config.engine, seat.size)
            )
        opened = yield from self._open()
        with trace.span("coordinator", "partition"):
            mine = yield from open_part_on_ranks(seat, config, opened)
            yield from barrier()
        part = mine.part
        _log.info("part %d: %d arcs, %d masters, %d mirrors", seat.rank, part.arcs, part.masters, part.mirrors)
        with trace.span("coordinator", "plan"):
            plan, core_size = yield from npu.share_plan(opened)
            sources = yield from self._share_sources(opened)
        with trace.span("coordinator", "compile"):
            yield from warm_up_on_ranks(seat, config.engine, config.cluster.sync, part.layout.policy)
            if seat.rank == 0:
                warm_up_certificate(deep=False)
            engine = RankEngine(part, engine=config.engine, sync=config.cluster.sync, core_size=core_size)
            npu.attach(engine, core_size)
            yield from rehearse(engine, part, [source.internal for source in sources], npu)
        runs = yield from self._search_all(opened, npu, engine, sources)
        verdict = None
        if config.compare.enabled and npu.mode != "off":
            with trace.span("coordinator", "compare", repeats=config.compare.repeats):
                with_edges = [source for source in sources if source.internal >= 0]
                verdict = yield from npu.compare(engine, with_edges, config.compare.repeats)
        yield from self.events.collect(trace)
        shares = yield from gather_facts(seat, describe_part(part, numba.get_num_threads()))
        if shares is None:
            return None
        assert plan is not None
        return _Found(opened, plan, mine, runs, shares, npu.worker, verdict)

    def _open(self) -> Driver[Opened]:
        driver = open_graph_on_ranks(self.seat, self.config.graph, self.trace, self._announcer, self._opener)
        if self.seat.rank != 0:
            opened = yield from driver
            return opened
        with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
            opened = yield from driver
        tell_opened(opened)
        return opened

    def _share_sources(self, opened: Opened) -> Driver[list[Source]]:
        """Resolved by rank 0, so that what is to be said about them is said once."""
        pairs = None
        if self.seat.rank == 0:
            pairs = [(one.user_id, one.internal) for one in resolve_sources(opened.graph, self.config)]
        shared = yield from broadcast_facts(self.seat, pairs)
        return [Source(*pair) for pair in shared]

    # ------------------------------------------------------------------------------------- the searches

    def _search_all(self, opened: Opened, npu: RankNpu, engine: RankEngine, sources: list[Source]) -> Driver[list[Run]]:
        """The certified runs, at rank 0; elsewhere an empty list."""
        scatter = _Scatter(engine.part) if self.seat.rank == 0 else None
        runs: list[Run] = []
        yield from self.events.align(self.trace)
        with progress("traversing", "source") if scatter is not None else nullcontext() as bar:
            for done, source in enumerate(sources):
                if bar is not None:
                    bar(done, len(sources))
                self.trace.source = source.user_id
                if source.internal >= 0:
                    run = yield from self._search(opened, npu, engine, scatter, source)
                else:
                    run = run_without_edges(opened.graph, source)
                runs += [] if run is None else [run]
        self.trace.source = None
        return runs

    def _search(
        self, opened: Opened, npu: RankNpu, engine: RankEngine, scatter: _Scatter | None, source: Source
    ) -> Driver[Run | None]:
        trace = self.trace
        yield from barrier()  # rank 0 may still be proving the last one: wait without spinning
        withheld = yield from npu.begin()
        yield from barrier(patient=False)
        began = time.perf_counter()
        outcome = yield from engine.search(source.internal, npu.outside, withhold_core=withheld)
        elapsed = np.array([round((time.perf_counter() - began) * 1e9)], np.int64)
        slowest = yield AllReduce(elapsed, "max")
        engine.count_redundant(outcome.statistics)
        tally, rounds = yield from npu.end()
        self.events.extend(source.user_id, [*outcome.statistics.events, *rounds])
        with trace.span("coordinator", "gather"):
            result = np.concatenate([outcome.levels, outcome.parents]).astype(np.int32, copy=False).view(np.uint8)
            gathered = yield from gather(self.seat, result)
            by_rank = yield from gather_facts(self.seat, outcome.statistics.as_dict())
        run = None
        if scatter is not None and gathered is not None and by_rank is not None:
            assert tally is not None
            run = self._prove(opened, engine, source, scatter.merge(gathered), by_rank, tally, float(slowest[0]) * 1e-9)
        yield from npu.tell_repaired(0 if run is None or not run.npu.rounds_merged else run.repaired, source)
        return run

    def _prove(
        self,
        opened: Opened,
        engine: RankEngine,
        source: Source,
        found_by_all: tuple[np.ndarray, np.ndarray],
        by_rank: list[Statistics],
        tally: NpuTally,
        elapsed_s: float,
    ) -> Run:
        """At rank 0, on the whole graph, which knows nothing of parts."""
        trace = self.trace
        self.statistics = [
            add_statistics(*pair) for pair in zip(self.statistics or [{}] * len(by_rank), by_rank, strict=True)
        ]
        total = over_ranks(by_rank)
        found = Traversed(*found_by_all, tally, total["rounds"], total.get("edges_looked_at", 0))
        t1 = trace.now()
        repaired = prove_or_repair(opened.graph, found, source.internal, engine.core_size, trace, self.config)
        seconds = max(elapsed_s, 1e-9)
        waited = min(seconds, sum(one.get("wait_s", 0.0) for one in by_rank) / len(by_rank))
        return Run(
            source, found.level, found.parent, found.npu, found.steps, found.edges_looked_at, seconds, waited,
            trace.now() - t1, repaired, edges_reached(opened.graph, found.level) / seconds,
            {"ranks": describe_search(by_rank)}, found.repair,
        )  # fmt: skip

    # --------------------------------------------------------------------------------------- the result

    def _write(self, found: _Found) -> dict[str, Any]:
        assert self.folder is not None
        seat, config = self.seat, self.config
        sync = config.cluster.sync if config.engine == "async" else "bsp"
        statistics = self.statistics or [{}] * seat.size
        ranks = describe_ranks(seat, found.mine.part, sync, found.mine.from_cache, found.shares, statistics)
        threads = numba.get_num_threads()
        record = Record(
            config, found.opened, found.plan, found.runs, self.trace, threads, found.worker, found.verdict, ranks
        )
        return write_record(self.folder, record)


@dataclasses.dataclass(frozen=True)
class _Found:
    """What rank 0 has in the end."""

    opened: Opened
    plan: Plan
    mine: OpenedPart
    runs: list[Run]
    shares: list[dict[str, Any]]
    worker: WorkerFacts | None
    verdict: Verdict | None


class _Scatter:
    """Puts the masters' values of all parts into arrays over the whole graph; no ids travel, the layout has them."""

    def __init__(self, part: Part) -> None:
        owner_of, parts = part.layout.owner_of, part.layout.parts
        self._n = part.n
        self._order = np.argsort(owner_of, kind="stable").astype(np.int32)  # within a part by ascending internal id
        self._bounds = np.searchsorted(owner_of[self._order], np.arange(parts + 1))

    def merge(self, gathered: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Level and parent by internal id."""
        level, parent = np.full(self._n, -1, np.int32), np.full(self._n, -1, np.int32)
        for rank, payload in enumerate(gathered):
            own = self._order[self._bounds[rank] : self._bounds[rank + 1]]
            levels, parents = payload.view(np.int32).reshape(2, own.size)
            level[own], parent[own] = levels, parents
        return level, parent


def config_fingerprint(config: Config) -> str:
    return hashlib.blake2b(dump_config(config).encode(), digest_size=16).hexdigest()
