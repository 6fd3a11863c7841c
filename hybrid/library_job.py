"""The job of every algorithm but BFS, on one rank: open the graph, run, check, write.

Invariant: no number leaves this module without its check. Where the algorithm can share its dense core with a worker
(hybrid/library_npu.py), a result that fails its check is computed again by the CPU alone.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from cpu_engine.graph.graph import Graph
from hybrid import __version__
from hybrid.errors import NotCertified
from hybrid.library import algorithm_named
from hybrid.library.algorithm import Algorithm, Arrays, Found, Task
from hybrid.library.distribution import describe_spread
from hybrid.library.proof import restore
from hybrid.library_npu import LibraryNpu
from hybrid.opening import Opened, open_graph
from hybrid.record import describe_graph, tell_opened, write_account, write_arrays
from hybrid.result import ResultFolder
from hybrid.schema import Config
from hybrid.sources import Source, resolve_sources
from hybrid.terminal import note, progress
from hybrid.trace import Trace
from hybrid.warmup import say_if_slow, star_with_tail

_log = logging.getLogger(__name__)
_SAMPLE_VERTICES = 40
_NOT_ON_RANKS = "off (on several ranks the library runs without a worker)"
_DENSE_VERTICES = 320  # some algorithms do with one thread below 65,536 edges


@dataclass(frozen=True)
class LibraryRun:
    """One checked run, in the user's ids."""

    source: Source | None
    arrays: Arrays
    facts: dict[str, Any]
    counters: dict[str, Any]
    seconds_run: float
    seconds_check: float

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
        }


def run_library_job(config: Config, folder: ResultFolder) -> dict[str, Any]:
    """Run the configured algorithm to its checked result; the summary."""
    algorithm, trace = algorithm_named(config.algorithm), Trace()
    npu = LibraryNpu(algorithm, config, folder, trace)
    try:
        npu.start()
        with say_if_slow("building the graph; on the very first run the kernels for it are compiled, too"):
            opened = open_graph(config.graph, trace)
        tell_opened(opened)
        graph = opened.graph
        if algorithm.weighted and graph.weight is None:
            note("the graph has no weights: every edge counts as 1")
        with trace.span("coordinator", "compile"):
            warm_up_algorithm(algorithm, config, graph)
        with trace.span("coordinator", "plan"):
            npu.plan(Task(graph, config))
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
    weight_kind = None if like.weight is None else like.weight.dtype
    source = Source(0, 0) if algorithm.sourced else None
    with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
        for make in (sample_graph, dense_sample):
            sample = make(directed=like.directed, weight_kind=weight_kind)
            run_once(algorithm, Task(sample, algorithm.for_warm_up(config), source), Trace())


def sample_graph(*, directed: bool, weight_kind: np.dtype | None = None) -> Graph:
    """A graph of 40 vertices; every kind of it has kernels of its own."""
    sample = star_with_tail(_SAMPLE_VERTICES)
    weight = None if weight_kind is None else np.ones(sample.m, weight_kind)
    return dataclasses.replace(sample, directed=directed, weight=weight, hanging_start=-1)


def dense_sample(*, directed: bool, weight_kind: np.dtype | None = None) -> Graph:
    """A clique with edges enough for the kernels of large graphs, and weights that differ."""
    n = _DENSE_VERTICES
    everybody = np.arange(n, dtype=np.int32)
    targets = np.broadcast_to(everybody, (n, n))[~np.eye(n, dtype=bool)]
    offsets = np.arange(n + 1, dtype=np.int64) * (n - 1)
    weight = None if weight_kind is None else (1 + (targets + everybody.repeat(n - 1)) % 64).astype(weight_kind)
    ids = everybody.astype(np.int64)
    return Graph(n, targets.size, directed, offsets, targets, offsets, targets, weight, ids, everybody, everybody)


def run_once(algorithm: Algorithm, task: Task, trace: Trace, npu: LibraryNpu | None = None) -> LibraryRun:
    """Run, beside the worker if there is one, check, restore; NotCertified if the CPU's own result fails its check."""
    t0 = trace.now()
    if npu is not None:
        with trace.span("cpu", "run") as learned:
            found = npu.run(task)
            learned.update({} if found is None else found.counters)
        if found is not None:
            try:
                return conclude_run(algorithm, task, found, trace.now() - t0, trace)
            except NotCertified as error:
                npu.reject(str(error))
    with trace.span("cpu", "run") as learned:
        found = algorithm.run(task)
        learned.update(found.counters)
    return conclude_run(algorithm, task, found, trace.now() - t0, trace)


def conclude_run(algorithm: Algorithm, task: Task, found: Found, seconds: float, trace: Trace) -> LibraryRun:
    """Check and restore what a run of so many seconds found; NotCertified if the check fails."""
    t1 = trace.now()
    with trace.span("coordinator", "certify"):
        check = algorithm.check(task, found)
    t2 = trace.now()
    if not check.holds:
        raise NotCertified(
            f"{algorithm.name}: {check.explain(task.graph)}",
            fix="this is a defect of Tandem: please report it with the configuration and the graph",
        )
    arrays = restore(algorithm, task, found)
    return LibraryRun(task.source, arrays, algorithm.facts(task, arrays), found.counters, seconds, t2 - t1)


def summarise_runs(
    algorithm: Algorithm, config: Config, opened: Opened, runs: list[LibraryRun], trace: Trace
) -> dict[str, Any]:
    """summary.json: what was found and how long it took."""
    facts = algorithm.over_runs([run.facts for run in runs])
    main, first = algorithm.fields[0], runs[0]
    return {
        "tandem": __version__,
        "certified": True,  # run_once lets nothing else pass
        "algorithm": algorithm.name,
        "title": algorithm.title,
        "headline": algorithm.headline(facts),
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
        "verdict": None,
    }
