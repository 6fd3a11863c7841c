"""A unit of work, from tasks to proven runs: one source, or a batch of them, with or without a core solver.

Invariant: no number leaves this module without its check. A hybrid result that fails is computed again by the CPU
alone, a result of the CPU's by a plain path that shares nothing with the engines (hybrid/job/proof.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.algorithms.proof import restore
from hybrid.errors import NotCertified
from hybrid.job.engines import Computed, Engine, PlainEngine, Proven, Unit
from hybrid.job.proof import prove_found
from hybrid.results.run_record import Repair, Run
from hybrid.results.schema import Batch, RunFurther
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.terminal import plural

if TYPE_CHECKING:
    from hybrid.job.core import JobCore
    from hybrid.worker.core_solver import CoreSolver


class CpuAlone:
    """Computes units without a plan, in the place of a ``JobCore``: one query, or one call from Python."""

    def __init__(self, trace: Trace | None = None) -> None:
        self.trace = trace or Trace()

    def run(self, engine: Engine, unit: Unit) -> tuple[Computed, None]:
        t0 = self.trace.now()
        computed = engine.alone(unit, self.trace)
        computed.seconds = self.trace.now() - t0
        return computed, None

    def reject(self, solver: CoreSolver, tally: Tally, reason: str) -> None:
        raise AssertionError("no solver took part")


def units_of(tasks: Sequence[Task], batch: int = 1) -> list[Unit]:
    """The tasks in units of ``batch``; each source without edges is a unit of its own, and comes last."""
    searched = [task for task in tasks if has_edges(task)]
    alone = [[task] for task in tasks if not has_edges(task)]
    return [*(searched[first : first + batch] for first in range(0, len(searched), batch)), *alone]


def in_order(tasks: Sequence[Task], runs: Sequence[Run]) -> list[Run]:
    """The runs in the order of their tasks."""
    by_source = {id(run.source): run for run in runs}
    return [by_source[id(task.source)] for task in tasks]


def has_edges(task: Task) -> bool:
    return task.source is None or task.source.internal >= 0


def run_unit(algorithm: Algorithm, engine: Engine, unit: Unit, core: JobCore | CpuAlone) -> list[Run]:
    """Compute, prove or repair, and restore; NotCertified if nothing passes the check."""
    return conclude(algorithm, unit, *prove_unit(algorithm, engine, unit, core))


def compute_unit(
    algorithm: Algorithm, engine: Engine, unit: Unit, core: JobCore | CpuAlone
) -> tuple[Computed, CoreSolver | None]:
    """What is still to be proven, and the solver that took part. A source without edges reaches itself."""
    if has_edges(unit[0]):
        return core.run(engine, unit)
    return Computed([algorithm.run(unit[0])], Tally(outcome="not needed: the source has no edges")), None


def prove_unit(
    algorithm: Algorithm, engine: Engine, unit: Unit, core: JobCore | CpuAlone
) -> tuple[Computed, list[Proven], float]:
    """Compute, and prove or repair, in internal ids; and the seconds of the check."""
    trace = core.trace
    computed, solver = compute_unit(algorithm, engine, unit, core)
    t1 = trace.now()
    if not has_edges(unit[0]):
        return computed, [prove_found(algorithm, unit[0], computed.found[0], trace)], trace.now() - t1
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
    return computed, proven, trace.now() - t1


def run_once(algorithm: Algorithm, task: Task, trace: Trace) -> Run:
    """One run by the CPU alone, proven."""
    (run,) = run_unit(algorithm, PlainEngine(algorithm), [task], CpuAlone(trace))
    return run


def prove_run(algorithm: Algorithm, task: Task, found: Found, seconds: float, trace: Trace) -> Run:
    """What a run found in ``seconds``, proven or repaired."""
    t1 = trace.now()
    proven, repair = prove_found(algorithm, task, found, trace)
    return make_run(algorithm, task, proven, repair, seconds, trace.now() - t1)


def conclude(
    algorithm: Algorithm, unit: Unit, computed: Computed, proven: Sequence[Proven], check_s: float,
    further: RunFurther | None = None,
) -> list[Run]:  # fmt: skip
    """The runs of a unit: what passed between CPU and solver belongs to all of it, and is counted with the first."""
    first, size, runs = unit[0].source, len(unit), []
    for i, (task, (found, repair)) in enumerate(zip(unit, proven, strict=True)):
        tally = computed.tally
        if i:
            assert first is not None
            tally = Tally(outcome=f"in one batch with source {first.user_id}")
        more = RunFurther(**(further or {}))
        if computed.batch is not None:
            assert first is not None
            more["batch"] = Batch(first=first.user_id, sources=size, seconds=computed.seconds)
        runs.append(
            make_run(algorithm, task, found, repair, computed.seconds / size, check_s / size, tally,
                     computed.waited_s / size, more)
        )  # fmt: skip
    return runs


def make_run(
    algorithm: Algorithm, task: Task, found: Found, repair: Repair | None, seconds: float, check_s: float,
    tally: Tally | None = None, waited_s: float = 0.0, further: RunFurther | None = None,
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
