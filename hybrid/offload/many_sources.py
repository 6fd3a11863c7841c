"""Many traversals with a core solver: a batch of sources against one resident core, their core values in one round.

The CPU's side is bit-parallel (cpu_engine/bfs/many/core.py), 64 sources per group; a batch may have several
groups. In ``share`` every group runs until all that is left of it depends on the core; the values of all sources that
wait go out as one matrix, and come back closed. In ``race`` the CPU does everything, and an answer in time is merged.

Invariant: a value only ever falls; a batch ends only when no source waits - the solver has answered, or the CPU has
taken the core's edges back. Whether an answer was true is not decided here: the certificate decides, for all at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cpu_engine.bfs.many.core import CoreManyBfs, ManyTable
from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs, ManyResult
from cpu_engine.bfs.traversal import CoreSplit
from hybrid.offload.rounds import MOST_ROUNDS, Rounds
from hybrid.offload.traverse import traced_step
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import Answer, CoreSolver

if TYPE_CHECKING:
    from hybrid.results.run_record import Repair

Rows = tuple[CoreManyBfs, np.ndarray]  # some of a group's roots
_RACE_LEVELS = 2  # made before the values go out: by then most searches have come to the core


@dataclass
class ManyTraversed:
    """A finished, not yet certified, batch of traversals."""

    roots: np.ndarray
    found: ManyResult
    npu: Tally
    steps: int
    edges_looked_at: int
    repair: Repair | None = None  # given: some levels failed their certificate and were computed again


class ManyEngine:
    """The CPU's side with its buffers, reused by every batch on the same split."""

    def __init__(self, split: CoreSplit) -> None:
        self.split = split
        self._alone = ManyBfs(split.graph)
        self._groups: list[CoreManyBfs] = []
        self._table: ManyTable | None = None

    def alone(self, roots: np.ndarray, *, parents: bool = False, trace: Trace | None = None) -> ManyTraversed:
        """The CPU does everything."""
        trace = trace or Trace()
        t0 = trace.now()
        found = self._alone.run(roots, parents=parents)
        trace.add("cpu", "step", t0, engine=CoreManyBfs.name, direction="auto", level=0, frontier=int(roots.size),
                  edges=found.edges_looked_at)  # fmt: skip
        return ManyTraversed(roots, found, Tally(), found.levels_run, found.edges_looked_at)

    def table_for(self, roots: int, *, parents: bool) -> ManyTable:
        """The last batch's table if it has the size: its memory pages are there already."""
        if self._table is None or not self._table.fits(roots, parents=parents):
            self._table = ManyTable(self.split.graph.n, roots, parents=parents)
        return self._table

    def groups_for(self, roots: np.ndarray) -> list[CoreManyBfs]:
        """As many engines as it takes, 64 roots each."""
        needed = -(-roots.size // ROOTS_PER_PASS)
        while len(self._groups) < needed:
            self._groups.append(CoreManyBfs(self.split))
        return self._groups[:needed]

    def together(
        self, roots: np.ndarray, mode: str, solver: CoreSolver, trace: Trace, max_rounds: int = MOST_ROUNDS, *,
        parents: bool = False,
    ) -> ManyTraversed:  # fmt: skip
        """CPU and solver in mode ``race`` or ``share``; a solver that needs more than ``max_rounds`` is dropped.

        The arrays are the engine's own, valid until the next batch: a caller that keeps them must copy them.
        """
        rounds = Rounds(solver, mode, trace, max_rounds)
        return _Together(self, np.asarray(roots, np.int64), rounds, trace).run(parents)


class _Together:
    """One batch with a core solver."""

    def __init__(self, engine: ManyEngine, roots: np.ndarray, rounds: Rounds, trace: Trace) -> None:
        self.engine, self.roots, self.rounds = engine, roots, rounds
        self.solver, self.trace = rounds.solver, trace
        self.groups = engine.groups_for(roots)
        self.steps = 0
        self.out: tuple[list[Rows], np.ndarray] = ([], np.empty(0, np.int32))  # of which roots, and their values

    def run(self, parents: bool) -> ManyTraversed:
        for at, group in enumerate(self.groups):
            group.start(self.roots[at * ROOTS_PER_PASS : (at + 1) * ROOTS_PER_PASS], withhold_core=self.rounds.sharing)
        if self.rounds.sharing:
            self._share()
        else:
            self._race()
        tally = self.rounds.close()
        table = self.engine.table_for(self.roots.size, parents=parents)
        with self.trace.span("cpu", "write_levels"):
            for at, group in enumerate(self.groups):
                group.write(table.level, table.parent, at * ROOTS_PER_PASS)
        edges = sum(group.edges_looked_at for group in self.groups)
        return ManyTraversed(self.roots, table.result(self.steps, edges), tally, self.steps, edges)

    def _share(self) -> None:
        while True:
            for group in self.groups:
                self._step_on(group)
            waiting = self._rows(lambda group: group.waiting)
            if not waiting:
                return
            answer = self.rounds.receive() if self._send(waiting) else None
            if answer is not None:
                self._merge(answer)
            elif not self.solver.usable:
                now = self.trace.now()
                for group in self.groups:
                    group.take_core_back()
                self.trace.add("cpu", "take_back", now, why=self.solver.failure)

    def _race(self) -> None:
        if self.rounds.can_send and self.engine.split.core_size:
            for group in self.groups:
                self._step_on(group, _RACE_LEVELS)
            touched = self._rows(lambda group: np.arange(group.width if group.touching() else 0))
            if touched and any(group.can_step() for group in self.groups):
                self._send(touched)
        for group in self.groups:
            while group.can_step():
                self._step_on(group, 1)
                answer = self.rounds.take()
                if answer is not None:
                    self._merge(answer)

    def _rows(self, of: Callable[[CoreManyBfs], np.ndarray]) -> list[Rows]:
        """The roots of each group that go out, as many as a round may carry; the others wait for the next round."""
        room = max(1, self.solver.largest_batch)
        found = []
        for group in self.groups:
            rows = of(group)[:room]
            room -= rows.size
            if rows.size:
                found.append((group, rows))
        return found

    def _step_on(self, group: CoreManyBfs, most: float = math.inf) -> None:
        made = 0
        while group.can_step() and made < most:
            traced_step(group, self.trace)
            made += 1
        self.steps += made

    def _send(self, rows: list[Rows]) -> bool:
        values = np.empty((sum(some.size for _, some in rows), self.engine.split.core_size), np.int32)
        at = 0
        for group, some in rows:
            group.core_values(some, values[at : at + some.size])
            at += some.size
        self.out = rows, values
        return self.rounds.send(values)

    def _merge(self, answer: Answer) -> None:
        (rows, sent), t0 = self.out, self.trace.now()
        adopted = rejected = at = 0
        theirs = np.ascontiguousarray(answer.values, np.int32)
        for group, some in rows:
            mine = slice(at, at + some.size)
            adoption = group.adopt(some, sent[mine], theirs[mine])
            adopted, rejected, at = adopted + adoption.adopted, rejected + adoption.rejected, at + some.size
        self.rounds.merge(answer, t0, adopted, rejected, "that no path has")
