"""A finished job's record, and what is written of it: arrays, forms, summary, trace, configuration, report.

The same for a job of one rank and of many: the backend fills in the record, ``write_record`` does the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numba

from cpu_engine.graph.graph import Graph
from exchange.escape import PrintableFormatter
from hybrid import __version__
from hybrid.algorithms.algorithm import Algorithm
from hybrid.algorithms.distribution import describe_spread
from hybrid.config import dump_config
from hybrid.config.schema import Config
from hybrid.devices.machine_facts import MachineState
from hybrid.graphs.opening import Opened
from hybrid.graphs.reach_hint import direction_hint
from hybrid.interrupts import interrupts_held
from hybrid.report import write_report
from hybrid.results.folder import ResultFolder
from hybrid.results.forms import write_forms
from hybrid.results.run_record import Run, Verdict
from hybrid.results.schema import (
    AlgorithmAccount,
    BfsAccount,
    CoreFacts,
    Findings,
    GraphFacts,
    Mode,
    Npu,
    Prediction,
    Ranks,
    Seconds,
    Simulated,
    Spread,
    Summary,
)
from hybrid.results.tally import Tally, total
from hybrid.results.trace import Trace
from hybrid.terminal import note

if TYPE_CHECKING:
    from hybrid.planning.plan import Plan

_BUILT = ("directed_assumed", "self_loops_dropped", "duplicates_dropped")  # what is known of a graph that was built
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Finished:
    """A job's result: where it is, and its summary."""

    folder: Path
    summary: Summary


@dataclass(frozen=True)
class WorkerFacts:
    """What the record needs to know of the worker."""

    device: str = "none"
    start_seconds: float | None = None
    failure: str = ""
    simulated: dict[str, Any] | None = None  # given: there was no device, and this is what stood in for it


@dataclass(frozen=True)
class Record:
    """All that is known at the end of a job."""

    config: Config
    algorithm: Algorithm
    opened: Opened
    plan: Plan
    runs: list[Run]
    trace: Trace
    worker: WorkerFacts | None = None  # None: there was none
    verdict: Verdict | None = None
    ranks: dict[str, Any] | None = None  # None: one
    spread: dict[str, Any] | None = None  # given where no process has the arrays


@contextmanager
def result_folder(config: Config, keeper_pid: int | None = None) -> Iterator[ResultFolder]:
    """A folder with the job's log in it; complete under its name after the block, gone if the block fails.

    ``keeper_pid``: the process that puts it under its name, or removes it, once it knows how the job has ended.
    """
    folder = ResultFolder(config.output, config.algorithm, keeper_pid)
    try:
        with _log_to(folder.path / "log.txt"):
            yield folder
        if keeper_pid is None:
            with interrupts_held():
                folder.commit()
    except BaseException:
        with interrupts_held():
            folder.discard()
        raise


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


def log_opened(opened: Opened) -> None:
    """What the user and the log should know of the graph."""
    for remark in opened.notes:
        note(remark)
        _log.info("%s", remark)
    _log.info("graph %s: %d vertices, %d arcs", opened.name, opened.graph.vertices, opened.graph.m)


def write_record(folder: ResultFolder, record: Record) -> Summary:
    """Put everything into the folder; the summary."""
    graph = record.opened.graph
    with record.trace.span("coordinator", "write"):
        folder.write_arrays(graph.user_ids, [run.arrays for run in record.runs])
        runs = [(run.label, run.arrays) for run in record.runs]
        write_forms(folder.path, record.config.result.forms, record.algorithm, graph.user_ids, runs)
    return write_summary(folder, record)


def write_summary(folder: ResultFolder, record: Record) -> Summary:
    """All but the arrays; the summary."""
    config, trace = record.config, record.trace
    account = summarise_searches(record) if config.algorithm == "bfs" else summarise(record)
    hint = _hint(record)
    if hint is not None:
        account["hint"] = hint
    if record.ranks is not None:
        account["ranks"] = cast(Ranks, record.ranks)
    if config.graph.path is not None:  # absolute: it can be run again from any folder
        config = replace(config, graph=replace(config.graph, path=str(Path(config.graph.path).absolute())))
    machine, config_text = folder.machine.as_dict(MachineState.now()), dump_config(config)
    folder.write_text("config.yaml", config_text)
    folder.write_text("trace.jsonl", trace.to_jsonl())
    summary = folder.write_summary({**account, "machine": machine})
    if config.result.report:
        write_report(folder.path, summary, trace.events, config_text, final_name=folder.final)
    return cast(Summary, summary)


def summarise_searches(record: Record) -> BfsAccount:
    """summary.json of a BFS: what happened, in numbers."""
    config, plan, runs = record.config, record.plan, record.runs
    rates, facts = [run.teps for run in runs if run.teps > 0], record.algorithm.over_runs([run.facts for run in runs])
    return {
        "tandem": __version__,
        "certified": True,  # nothing else leaves hybrid/job/units.py
        "algorithm": "bfs",
        "engine": config.engine,
        "strategy": config.bfs.strategy if config.engine == "level" else None,
        "threads": numba.get_num_threads(),
        "graph": describe_graph(record.opened),
        "core": {**describe_core(plan), "threshold": plan.threshold},
        "sources": [run.source.user_id for run in runs if run.source is not None],
        "reached": facts["reached"],
        "max_level": facts["max_level"],
        "teps": len(rates) / sum(1 / rate for rate in rates) if rates else 0.0,
        "seconds": _seconds(record, "traverse"),
        "npu": _npu_of_searches(record),
        "runs": [run.as_search() for run in runs],
        "repairs": [run.repair.as_dict() for run in runs if run.repair is not None],
        "claims": list(record.algorithm.claims),
        "verdict": None if record.verdict is None else record.verdict.as_dict(),
        "predicted": _judge_prediction(record),
    }


def summarise(record: Record) -> AlgorithmAccount:
    """summary.json of any other algorithm."""
    algorithm, config, opened, runs = record.algorithm, record.config, record.opened, record.runs
    return {
        "tandem": __version__,
        "certified": True,
        "algorithm": algorithm.name,
        **describe_findings(algorithm, opened.graph, runs, record.spread),
        "unfinished": algorithm.unfinished(runs[0].counters),  # empty: converged
        "options": algorithm.options(config),
        "graph": describe_graph(opened),
        "runs": [run.as_dict() for run in runs],
        "repairs": [run.repair.as_dict() for run in runs if run.repair is not None],
        "seconds": _seconds(record, "run"),
        "npu": describe_npu(config, record.plan, record.worker, [run.npu for run in runs]),
        "verdict": None if record.verdict is None else record.verdict.as_dict(),
    }


def describe_findings(
    algorithm: Algorithm, graph: Graph, runs: list[Run], spread: dict[str, Any] | None = None
) -> Findings:
    """What was found, in numbers and a sentence: what a job's summary and the service's have in common."""
    facts, main = algorithm.over_runs([run.facts for run in runs]), algorithm.fields[0]
    if spread is None:
        spread = describe_spread(main, graph.user_ids, runs[0].arrays[main.name])
    return {
        "title": algorithm.title,
        "headline": algorithm.headline(facts),
        "threads": numba.get_num_threads(),
        "sources": [run.source.user_id for run in runs if run.source is not None],
        "facts": facts,
        "check": algorithm.checked_by,
        "claims": list(algorithm.claims),
        "columns": {one.name: one.meaning for one in algorithm.fields},
        "spread": cast(Spread, spread),
    }


def _hint(record: Record) -> str | None:
    if not record.runs or not record.runs[0].arrays:  # each rank has some of them, and of the graph
        return None
    searches = (
        (run.source.user_id, run.facts["reached"]) for run in record.runs if run.source and "reached" in run.facts
    )
    return direction_hint(record.opened.graph, searches)


def _judge_prediction(record: Record) -> Prediction | None:
    """What the planner expected of all searches, with what was measured of them beside it."""
    predicted, verdict = record.plan.predicted, record.verdict
    if predicted is None:
        return None
    told = cast(Prediction, dict(predicted))
    searched = [run for run in record.runs if run.searched]
    if "cpu_only_s" in told:
        hybrid_s = told["hybrid_s"]
        told["cpu_only_seconds"] = told["cpu_only_s"] * len(searched)
        told["hybrid_seconds"] = None if hybrid_s is None else hybrid_s * len(searched)
    alone = sum(run.seconds_run for run in searched) if record.plan.mode == "off" else None
    told["measured_cpu_only_seconds"] = alone if verdict is None else verdict.cpu_only_seconds
    told["measured_hybrid_seconds"] = None if verdict is None else verdict.hybrid_seconds
    return told


def _seconds(record: Record, running: str) -> Seconds:
    trace, runs, spent = record.trace, record.runs, record.trace.spent
    seconds = {
        "open": record.opened.seconds_open,
        "build": record.opened.seconds_build,
        **{name: spent(name) for name in ("compile", "plan", "compare", "write")},
        running: sum(run.seconds_run for run in runs),
        "certify": sum(run.seconds_check for run in runs),
        "await_worker": spent("await"),
        "total": trace.now(),
    }
    if record.ranks is not None:
        seconds |= {"partition": spent("partition"), "gather": spent("gather")}
    return cast(Seconds, seconds)


def _npu_of_searches(record: Record) -> Npu:
    plan, worker = record.plan, record.worker
    ordered = sorted(record.runs, key=lambda run: run.speaks)  # the last one says how they ended
    device = "none" if worker is None else worker.device
    kind = "simulated" if worker is not None and worker.simulated is not None else record.config.npu.worker
    return {**_npu(plan, worker, [run.npu for run in ordered]), "device": device, "worker": kind}


def describe_npu(config: Config, plan: Plan, worker: WorkerFacts | None, tallies: Sequence[Tally]) -> Npu:
    """The account of the core solver in the summary of every algorithm but BFS, and in the service's."""
    off = worker is None or plan.mode == "off"
    return {
        **_npu(plan, worker, tallies),
        "device": "none" if worker is None or off else worker.device,
        "configured": config.npu.mode,
        "core": None if off else describe_core(plan),
        "predicted": cast(Prediction | None, plan.predicted),
    }


def _npu(plan: Plan, worker: WorkerFacts | None, tallies: Sequence[Tally]) -> Npu:
    """All runs together, and how they ended in a sentence."""
    found, simulated = total(tallies), None if worker is None else worker.simulated
    if worker is None or plan.mode == "off":
        found.outcome = f"off ({plan.mode_reason})"
    elif worker.failure:
        found.outcome = worker.failure
    elif found.rounds_merged:
        found.outcome = found.merged
    else:
        found.outcome = tallies[-1].outcome
    if simulated is not None and not found.outcome.startswith(("simulated", "off")):
        found.outcome = f"simulated: {found.outcome}"
    npu: Npu = {
        "mode": cast(Mode, plan.mode),
        "device": "",
        "start_seconds": None if worker is None else worker.start_seconds,
        **found.to_dict(),
    }
    if simulated is not None:
        npu["simulated"] = cast(Simulated, simulated)
    return npu


def describe_core(plan: Plan) -> CoreFacts:
    """The dense core that was planned."""
    return {"size": plan.core_size, "edges": plan.core_edges, "density": plan.density, "rule": plan.rule}


def describe_graph(opened: Opened) -> GraphFacts:
    """What the summary tells of the graph."""
    graph = opened.graph
    facts = {
        "name": opened.name,
        "vertices": graph.vertices,
        "edges": graph.m if graph.directed else graph.m // 2,
        "isolated": graph.vertices - graph.n,
        "directed": graph.directed,
        "from_store": opened.from_store,
        "notes": list(opened.notes),
        **{name: graph.meta[name] for name in _BUILT if name in graph.meta},
    }
    return cast(GraphFacts, facts)
