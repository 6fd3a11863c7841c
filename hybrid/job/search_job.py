"""The main job on one rank: open the graph, plan, start the worker, traverse from every source, certify, report.

Invariant: no number leaves this module without its certificate, and nothing stays behind - no process, no exchange
directory, no half-written result - however the job ends. hybrid/ranks/search_job.py is the same job on many ranks.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from typing import Any

import numba

from cpu_engine.bfs.traversal import Traversal
from cpu_engine.graph.graph import Graph
from hybrid.cli.terminal import note, progress
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.interrupts import interrupts_held
from hybrid.job.algorithm_job import run_library_job
from hybrid.job.batches import BatchRuns, warm_up_batches
from hybrid.job.opening import open_graph
from hybrid.job.proof import prove_or_repair
from hybrid.job.sources import Source, resolve_sources
from hybrid.job.verdict import Verdict, measure_verdict
from hybrid.job.warm_up import REHEARSED_ARCS, looks_deep, make_engine, say_if_slow, warm_up
from hybrid.offload.traverse import Partner, Traversed, traverse_alone, traverse_together
from hybrid.planning.device_profiles import parse_device
from hybrid.planning.plan import Plan, make_plan, plan_by_rule
from hybrid.results.folder import ResultFolder
from hybrid.results.record import Finished, Record, WorkerFacts, result_folder, tell_opened, write_record
from hybrid.results.run_record import Run, edges_reached, run_without_edges
from hybrid.results.trace import Trace
from hybrid.worker.guard import NoRegretPartner
from hybrid.worker.index_keeper import IndexKeeper, index_keeper
from hybrid.worker.simulated import SimulatedPartner, SimulatedTrace, simulated_partner
from hybrid.worker.solver import NpuPartner

__all__ = ["Finished", "Run", "run_job"]
_log = logging.getLogger(__name__)


def run_job(config: Config) -> Finished:
    """Run the configured job on this process alone to its certified result."""
    if config.ranks != 1:
        raise ConfigError(
            "ranks: more than one must be started by mpirun",
            value=config.ranks,
            fix="use `tandem run`, which starts them, or set ranks: 1",
        )
    if config.threads != "auto":
        set_threads(int(config.threads))
    with result_folder(config) as folder:
        summary = _Job(config, folder).run() if config.algorithm == "bfs" else run_library_job(config, folder)
    return Finished(folder.final, summary)


def set_threads(wanted: int) -> None:
    """Let parallel kernels use so many threads, or as many as there are."""
    numba.set_num_threads(min(wanted, int(getattr(numba.config, "NUMBA_NUM_THREADS", 1))))


class _Job:
    def __init__(self, config: Config, folder: ResultFolder) -> None:
        self.config, self.folder = config, folder
        simulation = parse_device(config.npu.device)
        self.trace = Trace() if simulation is None else SimulatedTrace(simulation.label)
        self.runs: list[Run] = []
        self.verdict: Verdict | None = None
        self.partner: NpuPartner | SimulatedPartner | None = None
        self.guard: NoRegretPartner | None = None  # mode auto: what searches see of the partner
        self.keeper: IndexKeeper | None = None  # npu.index: answers without rounds, once it is there

    def run(self) -> dict[str, Any]:
        config, trace = self.config, self.trace
        try:
            with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
                opened = open_graph(config.graph, trace)
            tell_opened(opened)
            ruled = None
            if config.npu.mode not in ("off", "auto"):  # auto has not decided yet; a worker that loads takes CPU time
                with trace.span("coordinator", "plan"):
                    ruled = plan_by_rule(opened.graph, config)
                if ruled.mode != "off":
                    self._start_partner(config)  # it loads while the kernels are
            with trace.span("coordinator", "compile"):
                warm_up(config.engine, config.bfs.strategy, deep=looks_deep(opened.graph))
            with trace.span("coordinator", "plan"):
                plan = make_plan(opened.graph, config, ruled)
                sources = resolve_sources(opened.graph, config)
                if plan.mode != "off" and self.partner is None:
                    self._start_partner(config)
                if self.partner is not None and plan.mode != "off":
                    self.partner.publish_edges(opened.graph.out_offsets, opened.graph.out_targets, plan.core_size)
                    if config.npu.mode == "auto":
                        self.guard = NoRegretPartner(self.partner, plan.patience)
                        if isinstance(self.partner, NpuPartner) and not plan.index:  # a simulated one needs no start
                            self.guard.rehearse(plan.core_size, plan.batch)
                    uses = math.inf if plan.index else len(sources)
                    self.keeper = index_keeper(config, opened.graph, plan.core_size, uses, self.partner)
            if plan.batch > 1:
                with trace.span("coordinator", "compile"):
                    warm_up_batches()
            engine = make_engine(config.engine, plan.split, config.bfs.strategy)
            self._rehearse(engine, plan, sources)
            _log.info("core %d vertices, %d edges (%s); mode %s", plan.core_size, plan.core_edges, plan.rule, plan.mode)
            self._traverse_all(opened.graph, plan, engine, sources)
        finally:
            if self.partner is not None:
                with interrupts_held():
                    self.partner.close()
                if config.exchange.keep and isinstance(self.partner, NpuPartner):
                    note(f"the exchange directory is kept: {self.partner.directory}")
        partner = self.partner
        worker = None if partner is None else _worker_facts(partner)
        record = Record(
            config, opened, plan, self.runs, trace, numba.get_num_threads(), worker=worker, verdict=self.verdict
        )
        return write_record(self.folder, record)

    def _start_partner(self, config: Config) -> None:
        partner = simulated_partner(config) or NpuPartner(config, self.folder.path / "worker.log", self.trace)
        self.partner = partner
        partner.start()

    def _rehearse(self, engine: Traversal, plan: Plan, sources: list[Source]) -> None:
        """What the first search would do on its clock: load kernels that few graphs need, wait for a worker."""
        root = next((source.internal for source in sources if source.internal >= 0), None)
        if root is not None and plan.batch == 1 and plan.split.graph.m <= REHEARSED_ARCS:
            with self.trace.span("coordinator", "compile"):
                traverse_alone(engine, root)
        if isinstance(self.partner, NpuPartner) and plan.mode != "off" and self.guard is None:
            self.partner.rehearse(plan.mode, plan.batch)

    def _served_by(self, plan: Plan) -> Partner | None:
        """Who may be sent rounds now, if anybody; mode auto does without a worker that is still starting."""
        indexed = None if plan.mode == "off" or self.keeper is None else self.keeper.partner()
        if indexed is not None or plan.index:
            return indexed
        if plan.mode == "off" or self.guard is None:
            return None if plan.mode == "off" else self.partner
        return self.guard if self.guard.ready else None

    def _why_alone(self, plan: Plan) -> str:
        """Why mode auto has nobody for this search; empty in other modes."""
        if self.guard is None:
            return ""
        if plan.index and self.keeper is not None:
            return self.keeper.failure or "mode auto did not wait for the worker to make the core's index"
        return self.guard.failure or "mode auto did not wait for the worker to start"

    def _traverse_all(self, graph: Graph, plan: Plan, engine: Traversal, sources: list[Source]) -> None:
        compare, max_rounds = self.config.compare, self.config.npu.max_rounds
        batches = None
        with progress("traversing", "source") as bar:
            if plan.batch > 1:
                served_by = functools.partial(self._served_by, plan)
                why_alone = functools.partial(self._why_alone, plan)
                simulated = self.partner if isinstance(self.partner, SimulatedPartner) else None
                batches = BatchRuns(
                    graph, plan.split, plan.mode, max_rounds, self.trace, served_by, why_alone, simulated, self.config
                )
                self.runs = batches.run_all(sources, plan.batch, bar)
            else:
                for done, source in enumerate(sources):
                    bar(done, len(sources))
                    self.trace.source = source.user_id
                    self.runs.append(self._run_source(graph, plan, engine, source))
                self.trace.source = None
        partner = self._served_by(plan)
        if compare.enabled and partner is not None and _takes_part(partner, plan.mode):
            with_edges = [source for source in sources if source.internal >= 0]
            with self.trace.span("coordinator", "compare", repeats=compare.repeats):
                if batches is not None:
                    self.verdict = batches.verdict(sources, plan.batch, partner, compare.repeats)
                else:
                    self.verdict = measure_verdict(engine, with_edges, plan.mode, partner, compare.repeats, max_rounds)
            if self.verdict is not None and isinstance(self.partner, SimulatedPartner):
                text = f"{self.partner.device}: {self.verdict.text}; no real NPU was used"
                self.verdict = dataclasses.replace(self.verdict, text=text)

    def _run_source(self, graph: Graph, plan: Plan, engine: Traversal, source: Source) -> Run:
        if source.internal < 0:
            return run_without_edges(graph, source)
        partner = self._served_by(plan)
        if isinstance(self.partner, SimulatedPartner) and partner in (self.partner, self.guard):
            self.partner.rehearse(engine, source.internal, plan.mode, self.config.npu.max_rounds)
        seen = len(self.trace.events)
        t0 = self.trace.now()
        if partner is None:
            found = traverse_alone(engine, source.internal, self.trace)
            found.npu.outcome = self._why_alone(plan) or found.npu.outcome
        else:
            found = traverse_together(
                engine, source.internal, plan.mode, partner, self.trace, self.config.npu.max_rounds
            )
            if isinstance(self.partner, SimulatedPartner):
                found.npu.outcome = f"simulated: {found.npu.outcome}"
        t1 = self.trace.now()
        waits = [event for event in self.trace.events[seen:] if event["kind"] == "wait"]
        repaired = self._certify(graph, plan, source, found, partner)
        return Run(
            source, found.level.copy(), found.parent.copy(), found.npu, found.steps, found.edges_looked_at,
            t1 - t0, sum(wait["t1"] - wait["t0"] for wait in waits), self.trace.now() - t1, repaired,
            edges_reached(graph, found.level) / (t1 - t0), repair=found.repair,
        )  # fmt: skip

    def _certify(self, graph: Graph, plan: Plan, source: Source, found: Traversed, partner: Partner | None) -> int:
        """Prove the result; a partner that took part in one that failed is not asked again. How many values changed."""
        repaired = prove_or_repair(graph, found, source.internal, plan.core_size, self.trace, self.config)
        if repaired and found.npu.rounds_merged and partner is not None and partner.usable:
            partner.distrust(f"the result for source {source.user_id}, in which it took part, failed the certificate")
            found.npu.outcome = partner.failure
        return repaired


def _takes_part(partner: Partner, mode: str) -> bool:
    """Whether there is something to compare: race does without a worker that is still starting."""
    return partner.usable and (mode == "share" or not partner.starting)


def _worker_facts(partner: NpuPartner | SimulatedPartner) -> WorkerFacts:
    simulated = partner.as_dict() if isinstance(partner, SimulatedPartner) else None
    return WorkerFacts(partner.device, partner.start_seconds, partner.failure, simulated)
