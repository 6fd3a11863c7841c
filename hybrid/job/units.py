"""A unit of work, from tasks to proven runs: one source, or a batch of them, whoever computes it.

Invariant: no number leaves this module without its check. A hybrid result that fails is computed again, by the CPU
alone or, like the CPU's own, by a plain path that shares nothing with the engines (hybrid/job/proof.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.algorithms.proof import restore
from hybrid.errors import NotCertified
from hybrid.job.core import JobCore
from hybrid.job.engines import Computed, Engine, PlainEngine, Proven, Unit
from hybrid.job.failed_proof import Repair
from hybrid.job.proof import prove_found
from hybrid.results.run_record import Run
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.terminal import plural


def units_of(tasks: Sequence[Task], batch: int = 1) -> list[Unit]:
    """The tasks, so many at a time; a source without edges by itself, and last."""
    searched = [task for task in tasks if has_edges(task)]
    alone = [[task] for task in tasks if not has_edges(task)]
    return [*(searched[first : first + batch] for first in range(0, len(searched), batch)), *alone]


def in_order(tasks: Sequence[Task], runs: Sequence[Run]) -> list[Run]:
    """The runs in the order of their tasks."""
    by_source = {id(run.source): run for run in runs}
    return [by_source[id(task.source)] for task in tasks]


def has_edges(task: Task) -> bool:
    return task.source is None or task.source.internal >= 0


def run_unit(algorithm: Algorithm, engine: Engine, unit: Unit, core: JobCore) -> list[Run]:
    """Compute, prove or repair, and restore; NotCertified if nothing passes the check."""
    trace = core.trace
    if not has_edges(unit[0]):
        return [run_without_edges(algorithm, unit[0], trace)]
    computed, solver = core.run(engine, unit)
    t1 = trace.now()
    if solver is None or not engine.reruns:
        proven = engine.prove(unit, computed, trace)
        if solver is not None and any(repair is not None for _, repair in proven):
            core.reject(solver, computed.tally, f"{_name(unit)}, in which it took part, failed the certificate")
    else:
        try:
            proven = engine.prove(unit, computed, trace, repair=False)
        except NotCertified as error:
            trace.add("coordinator", "repair", trace.now(), findings=error.reason)
            computed.tally.values_rejected += computed.tally.values_adopted
            core.reject(solver, computed.tally, f"a result that it took part in failed the check: {error.reason}")
            again = engine.alone(unit, trace)
            computed.found, computed.seconds = again.found, trace.now() - t1 + computed.seconds
            t1 = trace.now()
            proven = engine.prove(unit, computed, trace)
    return conclude(algorithm, unit, computed, proven, trace.now() - t1)


def run_without_edges(algorithm: Algorithm, task: Task, trace: Trace) -> Run:
    """A source that has no edges reaches itself, and nobody need search."""
    tally = Tally(outcome="not needed: the source has no edges")
    return prove_run(algorithm, task, algorithm.run(task), 0.0, trace, tally)


def run_once(algorithm: Algorithm, task: Task, trace: Trace) -> Run:
    """One run by the CPU alone, proven."""
    t0 = trace.now()
    (found,) = PlainEngine(algorithm).alone([task], trace).found
    return prove_run(algorithm, task, found, trace.now() - t0, trace)


def prove_run(
    algorithm: Algorithm, task: Task, found: Found, seconds: float, trace: Trace, tally: Tally | None = None
) -> Run:
    """What a run of so many seconds found, proven or repaired."""
    t1 = trace.now()
    proven, repair = prove_found(algorithm, task, found, trace)
    return make_run(algorithm, task, proven, repair, seconds, trace.now() - t1, tally)


def conclude(
    algorithm: Algorithm, unit: Unit, computed: Computed, proven: Sequence[Proven], check_s: float,
    further: dict[str, Any] | None = None,
) -> list[Run]:  # fmt: skip
    """The runs of a unit: what passed between CPU and solver belongs to all of it, and is counted with the first."""
    first, size, runs = unit[0].source, len(unit), []
    for i, (task, (found, repair)) in enumerate(zip(unit, proven, strict=True)):
        tally = computed.tally
        if i:
            assert first is not None
            tally = Tally(outcome=f"in one batch with source {first.user_id}")
        more = dict(further or {})
        if computed.batch is not None:
            assert first is not None
            more["batch"] = {"first": first.user_id, "sources": size, "seconds": computed.seconds}
        runs.append(
            make_run(algorithm, task, found, repair, computed.seconds / size, check_s / size, tally,
                     computed.waited_s / size, more)
        )  # fmt: skip
    return runs


def make_run(
    algorithm: Algorithm, task: Task, found: Found, repair: Repair | None, seconds: float, check_s: float,
    tally: Tally | None = None, waited_s: float = 0.0, further: dict[str, Any] | None = None,
) -> Run:  # fmt: skip
    """A proven result as a run, in the user's ids."""
    arrays = restore(algorithm, task, found)
    return Run(
        task.source, arrays, algorithm.facts(task, arrays), found.counters, seconds, check_s, repair,
        tally or Tally(), waited_s, algorithm.edges_reached(task, found), further or {},
    )  # fmt: skip


def _name(unit: Unit) -> str:
    source = unit[0].source
    assert source is not None
    return f"the result for source {source.user_id}" if len(unit) == 1 else f"a batch of {plural(len(unit), 'source')}"
