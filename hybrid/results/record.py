"""A finished job's record, and what is written of it: arrays, forms, summary, trace, configuration, report.

The same for a job of one rank and of many: whoever ran it fills in the record, ``write_record`` does the rest.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cpu_engine.graph.graph import Graph
from exchange.escape import PrintableFormatter
from hybrid import __version__
from hybrid.algorithms.algorithm import Arrays, Description
from hybrid.cli.terminal import note, plural
from hybrid.config import dump_config
from hybrid.config.schema import Config
from hybrid.interrupts import interrupts_held
from hybrid.job.opening import Opened
from hybrid.job.reach_hint import direction_hint
from hybrid.job.verdict import Verdict
from hybrid.offload.traverse import NpuTally
from hybrid.planning.machine_facts import MachineState
from hybrid.planning.plan import Plan
from hybrid.report import write_report
from hybrid.results.folder import ResultFolder
from hybrid.results.forms import write_forms
from hybrid.results.run_record import BFS, Run
from hybrid.results.trace import Trace

_log = logging.getLogger(__name__)
COUNTED = ("rounds_sent", "rounds_merged", "values_sent", "values_received", "values_adopted", "values_rejected")


@dataclass(frozen=True)
class Finished:
    """A job's result: where it is, and its summary."""

    folder: Path
    summary: dict[str, Any]


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
    opened: Opened
    plan: Plan
    runs: list[Run]
    trace: Trace
    threads: int
    worker: WorkerFacts | None = None  # None: there was none
    verdict: Verdict | None = None
    ranks: dict[str, Any] | None = None  # None: one


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


def tell_opened(opened: Opened) -> None:
    """What the user and the log should know of the graph."""
    for remark in opened.notes:
        note(remark)
        _log.info("%s", remark)
    _log.info("graph %s: %d vertices, %d arcs", opened.name, opened.graph.user_ids.size, opened.graph.m)


def write_record(folder: ResultFolder, record: Record) -> dict[str, Any]:
    """Put everything into the folder; the summary."""
    graph, config, trace = record.opened.graph, record.config, record.trace
    with trace.span("coordinator", "write"):
        arrays = [(str(run.source.user_id), run.in_user_ids(graph, config)) for run in record.runs]
        write_arrays(folder, config, BFS, graph, arrays)
    summary = summarise(record)
    write_account(folder, config, trace, summary)
    return summary


def write_arrays(
    folder: ResultFolder, config: Config, description: Description, graph: Graph, runs: list[tuple[str, Arrays]]
) -> None:
    """The result itself, in the user's ids: (source, arrays) of every run."""
    folder.write_arrays(graph.user_ids, [arrays for _, arrays in runs])
    write_forms(folder.path, config.result.forms, description, graph.user_ids, runs)


def write_account(folder: ResultFolder, config: Config, trace: Trace, summary: dict[str, Any]) -> None:
    """What is told of the job: configuration, trace, summary, report."""
    summary["machine"] = folder.machine.as_dict(MachineState.now())
    config_text = dump_config(_with_absolute_path(config))
    folder.write_text("config.yaml", config_text)
    folder.write_text("trace.jsonl", trace.to_jsonl())
    folder.write_summary(summary)
    if config.result.report:
        write_report(folder.path, summary, trace.events, config_text, final_name=folder.final)


def summarise(record: Record) -> dict[str, Any]:
    """summary.json: what happened, in numbers."""
    config, plan = record.config, record.plan
    runs = [run.as_dict() for run in record.runs]
    rates = [run.teps for run in record.runs if run.teps > 0]
    summary = {
        "tandem": __version__,
        "certified": all(run["certified"] for run in runs),
        "algorithm": config.algorithm,
        "engine": config.engine,
        "strategy": config.bfs.strategy if config.engine == "level" else None,
        "threads": record.threads,
        "graph": describe_graph(record.opened),
        "core": {
            "size": plan.core_size,
            "edges": plan.core_edges,
            "density": plan.density,
            "threshold": plan.threshold,
            "rule": plan.rule,
        },
        "sources": [run.source.user_id for run in record.runs],
        "reached": sum(run["reached"] for run in runs),
        "max_level": max(run["max_level"] for run in runs),
        "teps": len(rates) / sum(1 / rate for rate in rates) if rates else 0.0,
        "seconds": _seconds(record),
        "npu": _summarise_npu(record),
        "runs": runs,
        "repairs": [run.repair.as_dict() for run in record.runs if run.repair is not None],
        "claims": list(BFS.claims),
        "verdict": None if record.verdict is None else record.verdict.as_dict(),
        "predicted": _judge_prediction(record),
    }
    hint = direction_hint(record.opened.graph, ((run["source"], run["reached"]) for run in runs))
    if hint is not None:
        summary["hint"] = hint
    if record.ranks is not None:
        summary["ranks"] = record.ranks
    return summary


def _judge_prediction(record: Record) -> dict[str, Any] | None:
    """What the planner expected of all searches, with what was measured of them beside it."""
    predicted, verdict = record.plan.predicted, record.verdict
    if predicted is None:
        return None
    told = dict(predicted)
    searched = [run for run in record.runs if run.source.internal >= 0]
    if "cpu_only_s" in told:
        hybrid_s = told["hybrid_s"]
        told["cpu_only_seconds"] = told["cpu_only_s"] * len(searched)
        told["hybrid_seconds"] = None if hybrid_s is None else hybrid_s * len(searched)
    alone = sum(run.seconds_traverse for run in searched) if record.plan.mode == "off" else None
    told["measured_cpu_only_seconds"] = alone if verdict is None else verdict.cpu_only_seconds
    told["measured_hybrid_seconds"] = None if verdict is None else verdict.hybrid_seconds
    return told


def _seconds(record: Record) -> dict[str, float]:
    trace, runs, spent = record.trace, record.runs, record.trace.spent
    seconds = {
        "open": record.opened.seconds_open,
        "build": record.opened.seconds_build,
        "compile": spent("compile"),
        "plan": spent("plan"),
        "traverse": sum(run.seconds_traverse for run in runs),
        "certify": sum(run.seconds_certify for run in runs),
        "compare": spent("compare"),
        "write": spent("write"),
        "await_worker": spent("await"),
        "total": trace.now(),
    }
    if record.ranks is not None:
        seconds |= {"partition": spent("partition"), "gather": spent("gather")}
    return seconds


def _summarise_npu(record: Record) -> dict[str, Any]:
    plan, worker = record.plan, record.worker
    totals = NpuTally()
    for run in record.runs:
        for name in COUNTED:
            setattr(totals, name, getattr(totals, name) + getattr(run.npu, name))
    if worker is None or plan.mode == "off":
        totals.outcome = f"off ({plan.mode_reason})"
    elif worker.failure:
        totals.outcome = worker.failure
    elif totals.rounds_merged:
        totals.outcome = f"merged {totals.rounds_merged} of {plural(totals.rounds_sent, 'round')}"
    else:
        totals.outcome = next((run for run in reversed(record.runs) if run.speaks), record.runs[-1]).npu.outcome
    simulated = None if worker is None else worker.simulated
    if simulated is not None and not totals.outcome.startswith(("simulated", "off")):
        totals.outcome = f"simulated: {totals.outcome}"
    return {
        "mode": plan.mode,
        "device": "none" if worker is None else worker.device,
        "worker": record.config.npu.worker if simulated is None else "simulated",
        "start_seconds": None if worker is None else worker.start_seconds,
        **asdict(totals),
        **({} if simulated is None else {"simulated": simulated}),
    }


def _with_absolute_path(config: Config) -> Config:
    """The configuration as it can be run again from any folder."""
    if config.graph.path is None:
        return config
    absolute = str(Path(config.graph.path).absolute())
    return dataclasses.replace(config, graph=dataclasses.replace(config.graph, path=absolute))


def describe_graph(opened: Opened) -> dict[str, Any]:
    """What the summary tells of the graph."""
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
