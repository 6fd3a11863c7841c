"""The job of every algorithm but BFS, on one rank: open the graph, run, check, write.

Invariant: no number leaves this module without its check. A hybrid result that fails its check (the dense core was
shared with a worker, algorithm_worker.py) is computed again by the CPU alone; the CPU's own result that fails is
computed again by a plain path (hybrid/job/proof.py).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numba

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid import __version__
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Arrays, Found, Task
from hybrid.algorithms.distribution import describe_spread
from hybrid.algorithms.proof import restore
from hybrid.cli.terminal import note, progress
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.job.algorithm_worker import LibraryNpu
from hybrid.job.failed_proof import Repair
from hybrid.job.opening import Opened, open_graph
from hybrid.job.proof import prove_found
from hybrid.job.reach_hint import direction_hint
from hybrid.job.sample_graphs import samples_like
from hybrid.job.sources import Source, resolve_sources
from hybrid.job.warm_up import say_if_slow
from hybrid.offload.sharing import SHARINGS
from hybrid.results.folder import ResultFolder
from hybrid.results.record import describe_graph, tell_opened, write_account, write_arrays
from hybrid.results.trace import Trace

_log = logging.getLogger(__name__)
_NOT_ON_RANKS = "off (on several ranks the library runs without a worker)"


@dataclass(frozen=True)
class LibraryRun:
    """One checked run, in the user's ids."""

    source: Source | None
    arrays: Arrays
    facts: dict[str, Any]
    counters: dict[str, Any]
    seconds_run: float
    seconds_check: float
    repair: Repair | None = None  # given: the run's own result failed its check

    @property
    def label(self) -> str:
        return "" if self.source is None else str(self.source.user_id)

    def as_dict(self) -> dict[str, Any]:
        return {
            **({} if self.source is None else {"source": self.source.user_id}),
            "certified": True,
            "facts": self.facts,
            "counters": self.counters,
            "seconds": {"run": self.seconds_run, "certify": self.seconds_check},
            "repaired": 0 if self.repair is None else self.repair.changed,
        }


def run_library_job(config: Config, folder: ResultFolder) -> dict[str, Any]:
    """Run the configured algorithm to its checked result; the summary."""
    algorithm, trace = algorithm_named(config.algorithm), Trace()
    npu = LibraryNpu(algorithm, config, folder, trace)
    try:
        with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
            opened = open_graph(config.graph, trace)
        tell_opened(opened)
        graph = opened.graph
        if algorithm.weighted and graph.weight is None:
            note("the graph has no weights: every edge counts as 1")
        with trace.span("coordinator", "plan"):
            npu.plan(Task(graph, config))  # a worker loads while the kernels are
        with trace.span("coordinator", "compile"):
            warm_up_algorithm(algorithm, config, graph)
            if npu.mode != "off":
                warm_up_sharing(algorithm, config, graph)
        npu.rehearse()
        _log.info("npu: %s", npu.describe()["outcome"])
        sources: list[Source | None] = [None]
        if algorithm.sourced:
            sources = list(resolve_sources(graph, config))
        tasks = [Task(graph, config, source) for source in sources]
        runs = _run_all(algorithm, tasks, trace, npu)
        verdict = npu.compare(tasks)
    finally:
        npu.close()
    with trace.span("coordinator", "write"):
        write_arrays(folder, config, algorithm, graph, [(run.label, run.arrays) for run in runs])
        summary = summarise_runs(algorithm, config, opened, runs, trace)
    summary |= {"npu": npu.describe(), "verdict": None if verdict is None else verdict.as_dict()}
    summary["seconds"] |= {name: trace.spent(name) for name in ("plan", "compare", "write")}
    summary["seconds"]["await_worker"] = trace.spent("await")
    summary["seconds"]["total"] = trace.now()
    write_account(folder, config, trace, summary)
    return summary


def _run_all(algorithm: Algorithm, tasks: list[Task], trace: Trace, npu: LibraryNpu) -> list[LibraryRun]:
    runs = []
    with progress(algorithm.name, "source") as bar:
        for done, task in enumerate(tasks):
            bar(done, len(tasks))
            trace.source = None if task.source is None else task.source.user_id
            algorithm.prepare(task)
            runs.append(run_once(algorithm, task, trace, npu))
    trace.source = None
    return runs


def warm_up_algorithm(algorithm: Algorithm, config: Config, like: Graph) -> None:
    """Compile, or load, what a run and its check on a graph like this one use."""
    source = Source(0, 0) if algorithm.sourced else None
    with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
        for sample in samples_like(like):
            run_once(algorithm, Task(sample, algorithm.for_warm_up(config), source), Trace())


def warm_up_sharing(algorithm: Algorithm, config: Config, like: Graph) -> None:
    """What an algorithm uses beside a worker, with the CPU's own values in the worker's place."""
    for sample in samples_like(like):
        SHARINGS[algorithm.name](Task(sample, algorithm.for_warm_up(config)), CoreSplit(sample, 2)).warm_up()


def run_once(algorithm: Algorithm, task: Task, trace: Trace, npu: LibraryNpu | None = None) -> LibraryRun:
    """Run, beside the worker if there is one, check, restore; NotCertified if nothing passes the check."""
    t0 = trace.now()
    if npu is not None:
        with trace.span("cpu", "run") as learned:
            found = npu.run(task)
            learned.update({} if found is None else found.counters)
        if found is not None:
            try:
                return conclude_run(algorithm, task, found, trace.now() - t0, trace, repair=False)
            except NotCertified as error:
                npu.reject(error.reason)
    with trace.span("cpu", "run") as learned:
        found = algorithm.run(task)
        learned.update(found.counters)
    return conclude_run(algorithm, task, found, trace.now() - t0, trace)


def conclude_run(
    algorithm: Algorithm, task: Task, found: Found, seconds: float, trace: Trace, *, repair: bool = True
) -> LibraryRun:
    """Prove, or repair, and restore what a run of so many seconds found; NotCertified if nothing passes the check."""
    t1 = trace.now()
    found, repaired = prove_found(algorithm, task, found, trace, repair=repair)
    t2 = trace.now()
    arrays = restore(algorithm, task, found)
    return LibraryRun(task.source, arrays, algorithm.facts(task, arrays), found.counters, seconds, t2 - t1, repaired)


def summarise_runs(
    algorithm: Algorithm, config: Config, opened: Opened, runs: list[LibraryRun], trace: Trace
) -> dict[str, Any]:
    """summary.json: what was found and how long it took."""
    facts = algorithm.over_runs([run.facts for run in runs])
    main, first = algorithm.fields[0], runs[0]
    searches = ((one.source.user_id, one.facts["reached"]) for one in runs if one.source and "reached" in one.facts)
    hint = direction_hint(opened.graph, searches)
    return {
        **({} if hint is None else {"hint": hint}),
        "tandem": __version__,
        "certified": True,  # run_once lets nothing else pass
        "algorithm": algorithm.name,
        "title": algorithm.title,
        "headline": algorithm.headline(facts),
        "unfinished": algorithm.unfinished(first.counters),  # empty: converged
        "options": algorithm.options(config),
        "threads": numba.get_num_threads(),
        "graph": describe_graph(opened),
        "sources": [run.source.user_id for run in runs if run.source is not None],
        "facts": facts,
        "check": algorithm.checked_by,
        "claims": list(algorithm.claims),
        "columns": {one.name: one.meaning for one in algorithm.fields},
        "spread": describe_spread(main, opened.graph.user_ids, first.arrays[main.name]),
        "seconds": {
            "open": opened.seconds_open,
            "build": opened.seconds_build,
            "compile": trace.spent("compile"),
            "run": sum(run.seconds_run for run in runs),
            "certify": sum(run.seconds_check for run in runs),
        },
        "npu": {"mode": "off", "device": "none", "configured": config.npu.mode, "outcome": _NOT_ON_RANKS},
        "runs": [run.as_dict() for run in runs],
        "repairs": [run.repair.as_dict() for run in runs if run.repair is not None],
        "verdict": None,
    }
