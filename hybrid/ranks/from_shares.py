"""The backend of a job whose graph no rank has whole: built from shares, searched, proven and written on ranks.

As hybrid/ranks/backend.py, with the difference that nothing is gathered: the proof is made by all ranks on their own
parts (docs/how-to/cluster.md says why it is as strong), and every rank writes its rows of the result. Invariant: no
rank holds more than its part, tables over its own vertices, and for the sources a list at rank 0.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.comm.agreement import AgreedInputError
from cpu_engine.comm.collectives import RankInfo, barrier, gather_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.distributed.assembly import BuiltPart
from cpu_engine.graph.distributed.build import build_on_ranks
from cpu_engine.graph.graph import Graph
from cpu_engine.ranks.algorithms import Check, Checked, Options, PartFinding, RankAlgorithm
from cpu_engine.ranks.statistics import RankStatistics
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.config.schema import Config
from hybrid.errors import ConfigError, NotCertified
from hybrid.graphs.opening import DIRECTED_ASSUMED, Opened
from hybrid.graphs.shares import fits_whole, name_of_shared, require_room_for_parts, share_of, why_not_shared
from hybrid.graphs.sources import Source
from hybrid.job.driver import Job, Prepared
from hybrid.job.engines import Unit
from hybrid.job.units import has_edges
from hybrid.job.warm_up import REHEARSED_ARCS, say_if_slow
from hybrid.planning.plan import Plan
from hybrid.ranks.algorithms import options_of, with_weights
from hybrid.ranks.facts import facts_on_ranks, spread_on_ranks
from hybrid.ranks.kept_parts import KeptPart, kept_parts
from hybrid.ranks.part_runs import PartRuns, config_fingerprint
from hybrid.ranks.rendezvous import Agreed, require_same
from hybrid.ranks.rows import rows_of
from hybrid.ranks.shared_graph import Outline, SharedGraph, out_degrees
from hybrid.ranks.sources import resolve_on_ranks
from hybrid.ranks.summary import describe_part, describe_ranks, describe_search, over_ranks
from hybrid.ranks.warm_up import warm_up_on_ranks
from hybrid.ranks.writing import RowsOnRanks
from hybrid.results.folder import ResultFolder
from hybrid.results.record import WorkerFacts, log_opened, write_summary
from hybrid.results.run_record import Run, Verdict
from hybrid.results.schema import RunFurther, Summary
from hybrid.results.tally import Tally
from hybrid.terminal import note

CPU_ALONE = "a graph built from shares is searched by the CPUs alone"
_log = logging.getLogger(__name__)


def builds_shares(info: RankInfo, config: Config) -> Driver[bool]:
    """Whether this job's graph is built from shares; the same at every rank. ``Agreed`` if it was asked for in vain."""
    wanted, why = config.cluster.build, why_not_shared(config.graph)
    if wanted == "whole" or (wanted == "auto" and why):
        return False
    if wanted == "shares":
        if why:
            fix = "set cluster.build to whole, or to auto"
            raise Agreed(ConfigError(f"cluster.build: {why}", value=wanted, fix=fix))
        return True
    tight = info.rank == info.first_here and not fits_whole(config.graph)
    somewhere = yield AllReduce(np.array([tight], np.int64), "max")
    if somewhere[0] and info.rank == 0:
        note("the graph does not fit whole into this machine's memory: every rank builds its part from a share")
    return bool(somewhere[0])


class FromShares(PartRuns):
    """One rank's side of a job. ``folder``: rank 0's result folder, None elsewhere."""

    def __init__(self, info: RankInfo, config: Config, folder: ResultFolder | None) -> None:
        super().__init__(info, config)
        self.speaks = info.rank == 0
        self._path: Path | None = None if folder is None else folder.path
        self._algorithm: Algorithm
        self._chosen: RankAlgorithm
        self._shared: SharedGraph
        self._made: Any = None
        self._sync = "bsp"
        self._reason = "as configured" if config.npu.mode == "off" else CPU_ALONE  # why there is no core solver
        self._options: Options = {}
        self._from_cache = False
        self._out_degree: np.ndarray | None = None
        self._rows: RowsOnRanks
        self._run_of: dict[int, int] = {}  # by id of the source: its row
        self.labels: list[str] = []
        self.spread: dict[str, Any] | None = None

    def prepare(self, algorithm: Algorithm) -> Driver[Prepared]:
        info, config, trace = self.info, self.config, self.trace
        fix = "give every rank the same file and arguments"
        yield from require_same(info, "configuration", config_fingerprint(config), fix)
        chosen, policy, sync = self.choose(algorithm.name)
        self._algorithm, self._chosen, self._sync = algorithm, chosen, sync
        opened = yield from self._build(policy)
        outline = self._shared.outline
        with trace.span("coordinator", "compile"):
            like = cast(Graph, outline)  # only its kind and size are looked at
            yield from warm_up_on_ranks(info, algorithm, chosen, config, like, policy, sync)
        with trace.span("coordinator", "plan"):
            sources: list[Source | None] = [None]
            if algorithm.sourced:
                sources = list((yield from resolve_on_ranks(self._shared, config)))
            tasks = [Task(opened.graph, config, source) for source in sources]
        self._run_of = {id(one): at for at, one in enumerate(sources)}
        self.labels = ["" if one is None else str(one.user_id) for one in sources]
        yield from self._make(tasks)
        self._rows = RowsOnRanks(info, self._path, self._shared.bounds, len(tasks))
        yield from self._rows.begin()
        yield from self._rows.keep(0, {"vertex": self._shared.row_ids})
        yield from self.events.align(trace)
        split = cast(CoreSplit, _NoCore())
        return Prepared(opened, tasks, 1, Plan(split, 0, 0, "none (CPU only)", "off", self._reason))

    def _build(self, policy: str) -> Driver[Opened]:
        info, config, trace, chosen = self.info, self.config, self.trace, self._chosen
        t0, name = trace.now(), name_of_shared(config.graph)
        kept = yield from kept_parts(info, config, policy, weighted=chosen.weighted)
        found = KeptPart(None, True) if kept is None else (yield from kept.open(info, policy))
        built = found.built or (yield from self._build_part(policy))
        if kept is not None and not found.there:
            yield from kept.keep(info, built)
        directed = bool(built.meta["directed"])
        if chosen.symmetric and directed:
            raise _needs_both_ways(chosen.name)
        self._from_cache, seconds = found.built is not None, trace.now() - t0
        trace.add("coordinator", "open" if self._from_cache else "build", t0, graph=name)
        part = built.part
        heaviest = None
        if part.out_weight is not None:
            most = yield AllReduce(np.array([np.ceil(part.out_weight.max(initial=1))], np.int64), "max")
            heaviest = np.array([most[0]], part.out_weight.dtype)
        outline = Outline(part.n, part.m, built.vertices, directed, heaviest, built.meta)
        self._shared = SharedGraph(info, replace(built, part=with_weights(part, chosen)), outline)
        notes = tuple(built.meta["notes"])
        if config.graph.directed == "auto" and built.meta["directed_assumed"]:
            notes += (DIRECTED_ASSUMED,)
        times = (seconds, 0.0) if self._from_cache else (0.0, seconds)
        opened = Opened(cast(Graph, outline), name, self._from_cache, *times, notes)
        if self.speaks:
            log_opened(opened)
            if not chosen.threaded and numba.get_num_threads() > 1:
                note(f"{chosen.name} uses one thread of each rank: more ranks use more CPUs")
            if chosen.weighted and part.out_weight is None:
                note("the graph has no weights: every edge counts as 1")
        _log.info("part %d: %d arcs, %d masters, %d mirrors", info.rank, part.arcs, part.masters, part.mirrors)
        return opened

    def _build_part(self, policy: str) -> Driver[BuiltPart]:
        """This rank's part, from its share of the input; ``Agreed`` for what is wrong with that."""
        info, graph, chosen = self.info, self.config.graph, self._chosen
        drop = {"drop_loops": graph.self_loops == "drop", "drop_duplicates": graph.duplicates == "drop"}
        try:
            share = yield from share_of(info, graph, weighted=chosen.weighted)
            if chosen.symmetric and share.directed:
                raise _needs_both_ways(chosen.name)
            if info.rank == info.first_here:
                require_room_for_parts(graph, len(info.local_ranks), info.size, weighted=chosen.weighted)
            yield from barrier()
            weighted = chosen.weighted and share.weight_dtype is not None
            built: BuiltPart = yield from build_on_ranks(info, share, policy, weighted=weighted, **drop)
        except AgreedInputError as error:
            raise Agreed(error) from error
        return built

    def _make(self, tasks: Sequence[Task]) -> Driver[None]:
        """The algorithm's side on this part; a run beforehand loads what only this graph needs."""
        shared, chosen = self._shared, self._chosen
        self._options = options_of(self.config)
        further = {}
        if chosen.name == "cdlp":
            further = {"positions": shared.position_of, "names_at": shared.names_at}
        with say_if_slow() if self.speaks else nullcontext():
            self._made = chosen.make(shared.part, cast(Graph, shared.outline), self._sync, self._options | further)
            searched = [task for task in tasks if has_edges(task)]
            if chosen.name == "bfs" and searched and shared.part.m <= REHEARSED_ARCS:
                yield from chosen.drive(self._made, searched[0].root, self._options)
        if chosen.name == "bfs":
            self._out_degree = yield from out_degrees(shared.part)

    # ------------------------------------------------------------------------------------- the runs

    def run(self, unit: Unit) -> Driver[list[Run]]:
        (task,) = unit
        trace, shared, algorithm = self.trace, self._shared, self._algorithm
        if has_edges(task):
            finding, seconds, _ = yield from self.run_part(self._chosen, self._made, None, task.source)
            tally = Tally(outcome=f"off ({self._reason})")
        else:
            finding, seconds = self._reach_nothing(), 0.0
            tally = Tally(outcome="not needed: the source has no edges")
        begun = time.perf_counter()
        with trace.span("coordinator", "certify"):
            yield from self._prove(task, finding)
        taken = yield AllReduce(np.array([round((time.perf_counter() - begun) * 1e9)], np.int64), "max")
        user_id = None if task.source is None else task.source.user_id
        with trace.span("coordinator", "gather"):
            rows = yield from rows_of(algorithm, shared, finding, user_id)
            facts = yield from facts_on_ranks(algorithm, shared, rows)
            run = self._run_of[id(task.source)]
            if run == 0 and algorithm.name != "bfs":
                main = algorithm.fields[0]
                self.spread = yield from spread_on_ranks(main, shared, rows[main.name])
            by_rank = yield from gather_facts(self.info, finding.statistics.as_dict())
        with trace.span("coordinator", "write"):
            yield from self._rows.keep(run, rows)
        edges = 0
        if self._out_degree is not None:
            mine = int(self._out_degree[finding.arrays["level"] >= 0].sum())
            edges = int((yield AllReduce(np.array([mine], np.int64)))[0]) // (1 if shared.outline.directed else 2)
        if by_rank is None:
            return []
        if has_edges(task):
            self.count_in(by_rank)
        counters, further = dict(finding.counters), RunFurther()
        if algorithm.name == "bfs":
            total = over_ranks(by_rank)
            counters = {"steps": total["rounds"], "edges_looked_at": total.get("edges_looked_at", 0)}
            further["ranks"] = describe_search(by_rank)
        else:
            counters["ranks"] = describe_search(by_rank)
        waited = min(seconds, sum(one.get("wait_s", 0.0) for one in by_rank) / len(by_rank))
        check_s = int(taken[0]) * 1e-9
        return [Run(task.source, {}, facts, counters, max(seconds, 1e-9), check_s, None, tally, waited, edges, further)]

    def _reach_nothing(self) -> PartFinding:
        """What a source without edges finds: nothing among those that have some."""
        masters, parent = self._shared.part.masters, np.full(self._shared.part.masters, -1, np.int32)
        if self._algorithm.name == "bfs":
            arrays = {"level": np.full(masters, -1, np.int32), "parent": parent}
        else:
            weight = self._shared.part.out_weight
            dtype = np.dtype(np.int64) if weight is None else weight.dtype
            blank = self._algorithm.fields[0].unreached(dtype)
            arrays = {"distance": np.full(masters, blank, dtype), "parent": parent}
        return PartFinding(arrays, RankStatistics())

    def _prove(self, task: Task, finding: PartFinding) -> Driver[None]:
        """All ranks together; ``Agreed`` if the result does not hold: what is wrong on one part is wrong for all."""
        if not has_edges(task):
            return
        root = -1 if task.source is None else task.root
        checked = Checked(self._shared.part, finding, root, self._options, self._shared.user_ids)
        check: Check = yield from self._chosen.check(checked)
        if check.holds:
            return
        about = self._chosen.name if task.source is None else f"{self._chosen.name} from {task.source.user_id}"
        raise Agreed(
            NotCertified(
                f"{about}: the ranks' result failed its check: {check.explain()}",
                fix="run it again; if it fails alike, --set cluster.build=whole computes such a result in another way",
            )
        )

    def compare(self, units: Sequence[Unit]) -> Driver[Verdict | None]:
        yield from ()
        return None  # there is no solver beside the CPUs

    # --------------------------------------------------------------------------------------- the end

    def conclude(self) -> Driver[dict[str, Any] | None]:
        yield from self.events.collect(self.trace)
        with self.trace.span("coordinator", "write"):
            chosen = self.config.result
            yield from self._rows.finish(chosen.arrays, chosen.forms, self._algorithm, self.labels)
        shares = yield from gather_facts(self.info, describe_part(self._shared.part, numba.get_num_threads()))
        if shares is None:
            return None
        statistics = self.statistics or [{}] * self.info.size
        return describe_ranks(self.info, self._shared.part, self._sync, self._from_cache, shares, statistics)

    @property
    def worker(self) -> WorkerFacts | None:
        return None

    def close(self) -> None:
        """There is nothing that could stay."""


def _needs_both_ways(name: str) -> Agreed:
    wrong = f"{name} needs every arc both ways, which shares of a directed graph do not have"
    fix = "set cluster.build to whole, or graph.directed to false"
    return Agreed(ConfigError(wrong, value="cluster.build: shares", fix=fix))


class _NoCore:
    """The dense core of a plan that has none."""

    core_size = 0


def drive_from_shares(info: RankInfo, config: Config, folder: ResultFolder | None) -> Driver[Summary | None]:
    """One rank's side of the configured job, on a graph built from shares; the summary at rank 0."""
    backend = FromShares(info, config, folder)
    record = yield from Job(config, backend, folder).compute()
    if record is None:
        return None
    assert folder is not None
    return write_summary(folder, replace(record, spread=backend.spread))
