"""The main job: open the graph, plan, start the worker, traverse from every source, certify, report.

Invariant: no number leaves this module without its certificate, and nothing stays behind - no process, no exchange
directory, no half-written result - however the job ends.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from cpu_engine.algorithms.traversal import Traversal
from cpu_engine.graph.graph import Graph
from hybrid import __version__
from hybrid.certify import prove_or_repair
from hybrid.config import dump_config
from hybrid.errors import ConfigError
from hybrid.interrupts import interrupts_held
from hybrid.opening import Opened, open_graph
from hybrid.partner import NpuPartner
from hybrid.plan import Plan, choose_mode, make_plan
from hybrid.report import write_report
from hybrid.result import ResultFolder
from hybrid.schema import Config
from hybrid.sources import Source, resolve_sources
from hybrid.terminal import note, progress
from hybrid.trace import Trace
from hybrid.traverse import NpuTally, Traversed, traverse_alone, traverse_together
from hybrid.verdict import Verdict, measure_verdict
from hybrid.warmup import make_engine, say_if_slow, warm_up

_log = logging.getLogger(__name__)


@dataclass
class Run:
    """One source's certified traversal, in internal ids (empty arrays of -1 when the source has no edges)."""

    source: Source
    level: np.ndarray
    parent: np.ndarray
    npu: NpuTally
    steps: int
    edges_looked_at: int
    seconds_traverse: float
    seconds_waited: float  # part of seconds_traverse in which the CPU had nothing to do but wait for the worker
    seconds_certify: float
    repaired: int  # values that the certificate refused and the CPU set right
    teps: float

    def in_user_ids(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        """Level and parent aligned with graph.user_ids."""
        level, parent = graph.to_user_levels(self.level), graph.to_user_parents(self.parent)
        own = np.searchsorted(graph.user_ids, self.source.user_id)
        level[own], parent[own] = 0, self.source.user_id  # also right for a source without edges
        return level, parent

    def as_dict(self) -> dict[str, Any]:
        return {
            "source": self.source.user_id,
            "certified": True,
            "reached": max(1, int(np.count_nonzero(self.level >= 0))),
            "max_level": max(0, int(self.level.max(initial=0))),
            "teps": self.teps,
            "seconds": {
                "traverse": self.seconds_traverse,
                "waited": self.seconds_waited,
                "certify": self.seconds_certify,
            },
            "npu": asdict(self.npu),
            "steps": self.steps,
            "edges_looked_at": self.edges_looked_at,
            "repaired": self.repaired,
        }


@dataclass(frozen=True)
class Finished:
    """A job's result: where it is, and its summary."""

    folder: Path
    summary: dict[str, Any]


def run_job(config: Config) -> Finished:
    """Run the configured job to its certified result."""
    if config.ranks != 1:
        raise ConfigError("ranks: this version runs on one", value=config.ranks, fix="set ranks: 1")
    if config.threads != "auto":
        numba.set_num_threads(min(int(config.threads), int(getattr(numba.config, "NUMBA_NUM_THREADS", 1))))
    folder = ResultFolder(config.output, config.algorithm)
    try:
        with _log_to(folder.path / "log.txt"):
            summary = _Job(config, folder).run()
        with interrupts_held():
            return Finished(folder.commit(), summary)
    except BaseException:
        with interrupts_held():
            folder.discard()
        raise


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


class _Job:
    def __init__(self, config: Config, folder: ResultFolder) -> None:
        self.config, self.folder = config, folder
        self.trace = Trace()
        self.runs: list[Run] = []
        self.verdict: Verdict | None = None
        self.partner: NpuPartner | None = None

    def run(self) -> dict[str, Any]:
        config, trace = self.config, self.trace
        try:
            if choose_mode(config.npu.mode)[0] != "off":
                self.partner = NpuPartner(config, self.folder.path / "worker.log", trace)
                self.partner.start()
            with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
                opened = open_graph(config.graph, trace)
            for remark in opened.notes:
                note(remark)
                _log.info("%s", remark)
            _log.info("graph %s: %d vertices, %d arcs", opened.name, opened.graph.user_ids.size, opened.graph.m)
            with trace.span("coordinator", "compile"):
                warm_up(config.engine, config.bfs.strategy)
            with trace.span("coordinator", "plan"):
                plan = make_plan(opened.graph, config)
                sources = resolve_sources(opened.graph, config)
                if self.partner is not None and plan.mode != "off":
                    self.partner.publish_edges(opened.graph.out_offsets, opened.graph.out_targets, plan.core_size)
            _log.info("core %d vertices, %d edges (%s); mode %s", plan.core_size, plan.core_edges, plan.rule, plan.mode)
            self._traverse_all(opened.graph, plan, sources)
        finally:
            if self.partner is not None:
                with interrupts_held():
                    self.partner.close()
                if config.exchange.keep:
                    note(f"the exchange directory is kept: {self.partner.directory}")
        return self._write(opened, plan)

    def _traverse_all(self, graph: Graph, plan: Plan, sources: list[Source]) -> None:
        engine = make_engine(self.config.engine, plan.split, self.config.bfs.strategy)
        with progress("traversing", "source") as bar:
            for done, source in enumerate(sources):
                bar(done, len(sources))
                self.trace.source = source.user_id
                self.runs.append(self._run_source(graph, plan, engine, source))
            self.trace.source = None
        compare, partner = self.config.compare, self.partner
        if compare.enabled and plan.mode != "off" and partner is not None and partner.usable:
            with_edges = [source for source in sources if source.internal >= 0]
            with self.trace.span("coordinator", "compare", repeats=compare.repeats):
                self.verdict = measure_verdict(
                    engine, with_edges, plan.mode, partner, compare.repeats, self.config.npu.max_rounds
                )

    def _run_source(self, graph: Graph, plan: Plan, engine: Traversal, source: Source) -> Run:
        if source.internal < 0:
            nothing = np.full(graph.n, -1, np.int32)
            tally = NpuTally(outcome="not needed: the source has no edges")
            return Run(source, nothing, nothing, tally, 0, 0, 0.0, 0.0, 0.0, 0, 0.0)
        seen = len(self.trace.events)
        t0 = self.trace.now()
        if plan.mode == "off" or self.partner is None:
            found = traverse_alone(engine, source.internal, self.trace)
        else:
            found = traverse_together(
                engine, source.internal, plan.mode, self.partner, self.trace, self.config.npu.max_rounds
            )
        t1 = self.trace.now()
        waits = [event for event in self.trace.events[seen:] if event["kind"] == "wait"]
        repaired = self._certify(graph, plan, source, found)
        edges = int(np.diff(graph.out_offsets)[found.level >= 0].sum()) // (1 if graph.directed else 2)
        return Run(
            source, found.level.copy(), found.parent.copy(), found.npu, found.steps, found.edges_looked_at,
            t1 - t0, sum(wait["t1"] - wait["t0"] for wait in waits), self.trace.now() - t1, repaired, edges / (t1 - t0),
        )  # fmt: skip

    def _certify(self, graph: Graph, plan: Plan, source: Source, found: Traversed) -> int:
        """Prove the result; a worker whose values needed repair is not asked again. How many values changed."""
        repaired = prove_or_repair(graph, found, source.internal, plan.core_size, self.trace)
        if repaired and self.partner is not None and self.partner.usable:
            self.partner.distrust(f"its values for source {source.user_id} failed the certificate")
            found.npu.outcome = self.partner.failure
        return repaired

    # ----------------------------------------------------------------------------------- the result

    def _write(self, opened: Opened, plan: Plan) -> dict[str, Any]:
        graph, folder, trace = opened.graph, self.folder, self.trace
        with trace.span("coordinator", "write"):
            arrays = [run.in_user_ids(graph) for run in self.runs]
            single = len(arrays) == 1
            level = arrays[0][0] if single else np.stack([one[0] for one in arrays])
            parent = arrays[0][1] if single else np.stack([one[1] for one in arrays])
            folder.write_arrays(graph.user_ids, level, parent)
            named = [(run.source.user_id, *one) for run, one in zip(self.runs, arrays, strict=True)]
            folder.write_forms(self.config.result.forms, graph.user_ids, named)
        summary = self._summarise(opened, plan)
        config_text = dump_config(_with_absolute_path(self.config))
        folder.write_text("config.yaml", config_text)
        folder.write_text("trace.jsonl", trace.to_jsonl())
        folder.write_summary(summary)
        if self.config.result.report:
            write_report(folder.path, summary, trace.events, config_text, final_name=folder.final)
        return summary

    def _summarise(self, opened: Opened, plan: Plan) -> dict[str, Any]:
        runs = [run.as_dict() for run in self.runs]
        rates = [run.teps for run in self.runs if run.teps > 0]
        return {
            "tandem": __version__,
            "certified": all(run["certified"] for run in runs),
            "algorithm": self.config.algorithm,
            "engine": self.config.engine,
            "strategy": self.config.bfs.strategy if self.config.engine == "level" else None,
            "threads": numba.get_num_threads(),
            "graph": _describe_graph(opened),
            "core": {
                "size": plan.core_size,
                "edges": plan.core_edges,
                "density": plan.density,
                "threshold": plan.threshold,
                "rule": plan.rule,
            },
            "sources": [run.source.user_id for run in self.runs],
            "reached": sum(run["reached"] for run in runs),
            "max_level": max(run["max_level"] for run in runs),
            "teps": len(rates) / sum(1 / rate for rate in rates) if rates else 0.0,
            "seconds": self._seconds(opened),
            "npu": self._summarise_npu(plan),
            "runs": runs,
            "verdict": None if self.verdict is None else self.verdict.as_dict(),
        }

    def _seconds(self, opened: Opened) -> dict[str, float]:
        def spent(kind: str) -> float:
            return float(sum(event["t1"] - event["t0"] for event in self.trace.events if event["kind"] == kind))

        return {
            "open": opened.seconds_open,
            "build": opened.seconds_build,
            "compile": spent("compile"),
            "plan": spent("plan"),
            "traverse": sum(run.seconds_traverse for run in self.runs),
            "certify": sum(run.seconds_certify for run in self.runs),
            "compare": spent("compare"),
            "write": spent("write"),
            "total": self.trace.now(),
        }

    def _summarise_npu(self, plan: Plan) -> dict[str, Any]:
        partner = self.partner
        totals = NpuTally()
        for run in self.runs:
            for name in (
                "rounds_sent",
                "rounds_merged",
                "values_sent",
                "values_received",
                "values_adopted",
                "values_rejected",
            ):
                setattr(totals, name, getattr(totals, name) + getattr(run.npu, name))
        if partner is None or plan.mode == "off":
            totals.outcome = f"off ({plan.mode_reason})"
        elif partner.failure:
            totals.outcome = partner.failure
        elif totals.rounds_merged:
            totals.outcome = f"merged {totals.rounds_merged} of {totals.rounds_sent} rounds"
        else:
            totals.outcome = self.runs[-1].npu.outcome
        return {
            "mode": plan.mode,
            "device": "none" if partner is None else partner.device,
            "worker": self.config.npu.worker,
            "start_seconds": None if partner is None else partner.start_seconds,
            **asdict(totals),
        }


def _with_absolute_path(config: Config) -> Config:
    """The configuration as it can be run again from any folder."""
    if config.graph.path is None:
        return config
    absolute = str(Path(config.graph.path).absolute())
    return dataclasses.replace(config, graph=dataclasses.replace(config.graph, path=absolute))


def _describe_graph(opened: Opened) -> dict[str, Any]:
    graph = opened.graph
    return {
        "name": opened.name,
        "vertices": int(graph.user_ids.size),
        "edges": graph.m if graph.directed else graph.m // 2,
        "isolated": int(graph.user_ids.size - graph.n),
        "directed": graph.directed,
        "from_store": opened.from_store,
        "notes": list(opened.notes),
        **{
            name: graph.meta[name]
            for name in ("directed_assumed", "self_loops_dropped", "duplicates_dropped")
            if name in graph.meta
        },
    }
