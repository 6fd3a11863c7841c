"""One traversal with a core solver: the CPU engine steps, the solver's core values are merged in between.

Invariant: a value only ever falls; in ``share`` mode the run ends only when the engine has nothing to do and the solver
has answered that the core is closed under its own edges - or the engine has taken the core's edges back. Whether the
answer was true is not decided here: the certificate does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cpu_engine.bfs.traversal import Step, Traversal, search
from cpu_engine.threads import threads_for
from hybrid.offload.rounds import MOST_ROUNDS, Rounds
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import CoreSolver

if TYPE_CHECKING:
    from cpu_engine.bfs.many.core import CoreManyBfs


@dataclass
class Traversed:
    """A finished, not yet certified, traversal; its arrays are the engine's until that starts again."""

    level: np.ndarray
    parent: np.ndarray
    npu: Tally
    steps: int
    edges_looked_at: int


def traverse_alone(engine: Traversal, root: int, trace: Trace | None = None) -> Traversed:
    """The CPU does everything."""
    found = search(engine, root, None if trace is None else partial(traced_step, engine, trace))
    return Traversed(found.level, found.parent, Tally(), found.steps, found.edges_looked_at)


def traverse_together(
    engine: Traversal, root: int, mode: str, solver: CoreSolver, trace: Trace, max_rounds: int = MOST_ROUNDS
) -> Traversed:
    """CPU and solver in mode ``race`` or ``share``; a solver that needs more than ``max_rounds`` is dropped."""
    with threads_for(engine.work):
        rounds = Rounds(solver, mode, trace, max_rounds)
        withheld = rounds.sharing
        engine.start(root, withhold_core=withheld)
        closed = np.full_like(engine.core_values(), -1)  # the solver's last word: core values no core edge can improve
        steps = edges = 0
        while True:
            answer = rounds.take()
            if answer is not None:
                t0 = trace.now()
                adoption, closed = engine.adopt(answer.values), answer.values
                rounds.merge(answer, t0, adoption.adopted, adoption.rejected, "shorter than any path")
            if withheld and not solver.usable:
                withheld = False
                engine.take_core_back()
                trace.add("cpu", "take_back", trace.now(), why=solver.failure)
            engine.settle()
            if rounds.can_send:
                mine = engine.core_values()
                if not np.array_equal(mine, closed):
                    rounds.send(mine)
            if engine.can_step():
                edges += traced_step(engine, trace).edges
                steps += 1
            elif withheld and solver.busy:
                rounds.wait()
            elif not withheld or solver.usable:  # else lost this very moment: the core is taken back first
                break
        tally = rounds.close()
        level, parent = engine.finish()
        return Traversed(level, parent, tally, steps, edges)


def traced_step(engine: Traversal | CoreManyBfs, trace: Trace) -> Step:
    """One step of the engine, and its event."""
    t0 = trace.now()
    step = engine.step()
    trace.add(
        "cpu", "step", t0, engine=engine.name, direction=step.direction, level=step.level,
        frontier=step.frontier, edges=step.edges,
    )  # fmt: skip
    return step
