"""The job of the algorithm library on many ranks: what hybrid/job/algorithm_job.py does on one, by all of them.

``RankLibraryJob.drive`` is a driver like RankJob's. Invariant: rank 0 alone makes the result folder, checks every run
on the whole graph with the check of a run on one rank, and writes the same result; the NPU takes no part.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from contextlib import nullcontext
from typing import Any

import numba
import numpy as np

from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.rehearsal import rehearse_messages
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import make_layout, partition_graph
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.algorithms import Options, PartFinding, RankAlgorithm, rank_algorithm
from cpu_engine.sssp.rows import find_bad_weight
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.algorithms.proof import restore
from hybrid.cli.terminal import note, progress
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.job.algorithm_job import LibraryRun, conclude_run, summarise_runs
from hybrid.job.opening import Opened, open_graph
from hybrid.job.sample_graphs import samples_like
from hybrid.job.sources import Source
from hybrid.job.warm_up import say_if_slow
from hybrid.launch.announce import Announcer
from hybrid.ranks.collectives import Seat, barrier, gather, gather_facts
from hybrid.ranks.parts import OpenedPart, Opener, open_part_on_ranks
from hybrid.ranks.rendezvous import Agreed, require_same
from hybrid.ranks.search_job import RankJob, config_fingerprint
from hybrid.ranks.summary import add_statistics, describe_part, describe_ranks, describe_search
from hybrid.results.folder import ResultFolder
from hybrid.results.record import write_account, write_arrays

_log = logging.getLogger(__name__)
_SAMPLE_PARTS = 4  # a grid of 2 x 2, so that every phase has partners


def job_on_rank(
    seat: Seat, config: Config, folder: ResultFolder | None, announcer: Announcer, opener: Opener = open_graph
) -> RankJob | RankLibraryJob:
    """One rank's side of the configured job."""
    kind = RankJob if config.algorithm == "bfs" else RankLibraryJob
    return kind(seat, config, folder, announcer, opener)


class RankLibraryJob(RankJob):
    """One rank's side of the job. Rank 0 is given the result folder, the others None."""

    def drive(self) -> Driver[dict[str, Any] | None]:
        """All of it; the summary at rank 0."""
        seat, config = self.seat, self.config
        fix = "give every rank the same file and arguments"
        yield from require_same(seat, "configuration", config_fingerprint(config), fix)
        try:
            chosen = rank_algorithm(config.algorithm)
            policy = chosen.choose_policy(config.cluster.policy)
        except InputError as error:
            wrong = ConfigError(error.reason, value=error.value, fix=error.fix)
            raise Agreed(wrong) from error  # the configuration is the same everywhere
        sync = chosen.choose_sync(config.cluster.sync)
        algorithm = algorithm_named(config.algorithm)
        opened = yield from self._open()
        if not chosen.threaded and numba.get_num_threads() > 1 and seat.rank == 0:
            note(f"{chosen.name} uses one thread of each rank: more ranks use more CPUs")
        if sync != config.cluster.sync:
            _log.info("%s runs bsp: %s", chosen.name, chosen.only_bsp_because)
        if algorithm.weighted and opened.graph.weight is None and seat.rank == 0:
            note("the graph has no weights: every edge counts as 1")
        with self.trace.span("coordinator", "partition"):
            mine = yield from self._open_part(opened, chosen, policy)
            yield from barrier()
        with self.trace.span("coordinator", "compile"):
            yield from self._warm_up(algorithm, chosen, opened.graph, policy, sync)
            made = chosen.make(mine.part, opened.graph, sync, _options(config))
        sources: list[Source | None] = [None]
        if algorithm.sourced:
            sources = list((yield from self._share_sources(opened)))
        runs = yield from self._run_all(algorithm, chosen, opened, mine.part, made, sources)
        yield from self.events.collect(self.trace)
        shares = yield from gather_facts(seat, describe_part(mine.part, numba.get_num_threads()))
        summary = None
        if shares is not None:
            ranks = describe_ranks(seat, mine.part, sync, mine.from_cache, shares, self.statistics or [{}] * seat.size)
            summary = self._write_library(algorithm, opened, runs, ranks)
        yield from barrier()
        return summary

    # --------------------------------------------------------------------------------------- parts

    def _open_part(self, opened: Opened, chosen: RankAlgorithm, policy: str) -> Driver[OpenedPart]:
        layout = _layout(opened.graph, chosen, policy, self.seat.size)
        mine: OpenedPart = yield from open_part_on_ranks(self.seat, self.config, opened, layout)
        part = _with_weights(mine.part, chosen)
        _log.info("part %d: %d arcs, %d masters, %d mirrors", self.seat.rank, part.arcs, part.masters, part.mirrors)
        return dataclasses.replace(mine, part=part)

    def _warm_up(
        self, algorithm: Algorithm, chosen: RankAlgorithm, like: Graph, policy: str, sync: str
    ) -> Driver[None]:
        """The first rank of each machine compiles for the others there, who then find it in the cache."""
        seat = self.seat
        tasks = _sample_tasks(algorithm, self.config, like)
        with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
            if seat.rank == seat.first_here:
                for task in tasks:
                    found = _run_sample(chosen, task, policy, sync)
                    if seat.rank == 0:
                        algorithm.check(task, found)
                        restore(algorithm, task, found)
            yield from barrier()
        if seat.rank != seat.first_here:
            for task in tasks:
                _run_sample(chosen, task, policy, sync)
        yield from barrier()

    # --------------------------------------------------------------------------------------- runs

    def _run_all(
        self,
        algorithm: Algorithm,
        chosen: RankAlgorithm,
        opened: Opened,
        part: Part,
        made: Any,
        sources: list[Source | None],
    ) -> Driver[list[LibraryRun]]:
        """The checked runs, at rank 0; elsewhere an empty list."""
        own = masters_by_part(part) if self.seat.rank == 0 else None
        graph = opened.graph
        runs: list[LibraryRun] = []
        yield from self.events.align(self.trace)
        with progress(algorithm.name, "source") if own is not None else nullcontext() as bar:
            for done, source in enumerate(sources):
                if bar is not None:
                    bar(done, len(sources))
                self.trace.source = None if source is None else source.user_id
                task = Task(graph, self.config, source)
                if source is not None and source.internal < 0:  # nothing to search, so nobody to help
                    found, seconds = algorithm.run(task) if own is not None else None, 0.0
                else:
                    try:
                        found, seconds = yield from self._run(chosen, made, source, own)
                    except InputError as error:  # found by all of them together; one of them can name the edge
                        raise Agreed(find_bad_weight(graph) or error) from error
                if found is not None:
                    runs.append(conclude_run(algorithm, task, found, seconds, self.trace))
        self.trace.source = None
        return runs

    def _run(
        self, chosen: RankAlgorithm, made: Any, source: Source | None, own: list[np.ndarray] | None
    ) -> Driver[tuple[Found | None, float]]:
        """One run by all; the whole result at rank 0, and how long the slowest took."""
        yield from barrier()  # rank 0 may still be checking the last one: wait without spinning
        yield from barrier(patient=False)
        began = time.perf_counter()
        finding: PartFinding = yield from chosen.drive(
            made, -1 if source is None else source.internal, _options(self.config)
        )
        slowest = yield AllReduce(np.array([round((time.perf_counter() - began) * 1e9)], np.int64), "max")
        self.events.extend(-1 if source is None else source.user_id, finding.statistics.events)
        with self.trace.span("coordinator", "gather"):
            whole = {}
            for name, values in finding.arrays.items():
                gathered = yield from gather(self.seat, np.ascontiguousarray(values).view(np.uint8))
                if gathered is not None and own is not None:
                    whole[name] = _scatter(gathered, own, values.dtype)
            by_rank = yield from gather_facts(self.seat, finding.statistics.as_dict())
        if by_rank is None:
            return None, 0.0
        self.statistics = [
            add_statistics(*pair) for pair in zip(self.statistics or [{}] * len(by_rank), by_rank, strict=True)
        ]
        counters = {**finding.counters, "ranks": describe_search(by_rank)}
        return Found(whole, counters, finding.isolated), float(slowest[0]) * 1e-9

    # --------------------------------------------------------------------------------------- the result

    def _write_library(
        self, algorithm: Algorithm, opened: Opened, runs: list[LibraryRun], ranks: dict[str, Any]
    ) -> dict[str, Any]:
        assert self.folder is not None
        config, trace = self.config, self.trace
        with trace.span("coordinator", "write"):
            write_arrays(self.folder, config, algorithm, opened.graph, [(run.label, run.arrays) for run in runs])
            summary = summarise_runs(algorithm, config, opened, runs, trace)
        summary["ranks"] = ranks
        summary["seconds"] |= {
            "partition": trace.spent("partition"), "write": trace.spent("write"), "total": trace.now(),
        }  # fmt: skip
        write_account(self.folder, config, trace, summary)
        return summary


def _options(config: Config) -> Options:
    """What the driver of the configured algorithm is told."""
    if config.algorithm == "sssp":
        return {"delta": config.sssp.delta}
    if config.algorithm == "pagerank":
        return dataclasses.asdict(config.pagerank)
    return {"iterations": config.cdlp.iterations} if config.algorithm == "cdlp" else {}


def _layout(graph: Graph, chosen: RankAlgorithm, policy: str, parts: int) -> Layout:
    weighted = chosen.weighted and graph.weight is not None
    return make_layout(graph, policy, parts, weighted=weighted, symmetric=chosen.symmetric)


def _with_weights(part: Part, chosen: RankAlgorithm) -> Part:
    """Where weights are wanted and the graph has none, every edge counts as 1."""
    if not chosen.weighted or part.out_weight is not None:
        return part
    return dataclasses.replace(part, out_weight=np.ones(part.arcs, np.int64))


def _sample_tasks(algorithm: Algorithm, config: Config, like: Graph) -> list[Task]:
    """Few and many values to a message: they are encoded by different kernels."""
    config, source = algorithm.for_warm_up(config), Source(0, 0) if algorithm.sourced else None
    return [Task(sample, config, source) for sample in samples_like(like)]


def _run_sample(chosen: RankAlgorithm, task: Task, policy: str, sync: str) -> Found:
    """A small graph in a few parts, within this process."""
    rehearse_messages()
    graph, options = task.graph, _options(task.config)
    layout = _layout(graph, chosen, policy, _SAMPLE_PARTS)
    parts = [
        _with_weights(part, chosen)
        for part in partition_graph(graph, policy, _SAMPLE_PARTS, weighted=layout.weighted, symmetric=chosen.symmetric)
    ]
    made = [chosen.make(part, graph, sync, options) for part in parts]
    found = run_loopback([chosen.drive(one, 0, options) for one in made])
    own = [part.internal_of[: part.masters] for part in parts]
    whole = {
        name: _scatter([np.ascontiguousarray(one.arrays[name]).view(np.uint8) for one in found], own, values.dtype)
        for name, values in found[0].arrays.items()
    }
    return Found(whole, found[0].counters, found[0].isolated)


def masters_by_part(part: Part) -> list[np.ndarray]:
    """The internal ids of each part's masters in their order; the layout has them, so they need not travel."""
    owner_of, parts = part.layout.owner_of, part.layout.parts
    order = np.argsort(owner_of, kind="stable").astype(np.int32)
    bounds = np.searchsorted(owner_of[order], np.arange(parts + 1))
    return [order[bounds[rank] : bounds[rank + 1]] for rank in range(parts)]


def _scatter(gathered: list[np.ndarray], own: list[np.ndarray], dtype: np.dtype[Any]) -> np.ndarray:
    """The masters' values of all parts as one array over the whole graph."""
    whole = np.empty(sum(ids.size for ids in own), dtype)
    for ids, payload in zip(own, gathered, strict=True):
        whole[ids] = payload.view(dtype)
    return whole
