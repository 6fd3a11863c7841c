"""Many traversals by two: a batch of sources against one resident core, their core values in one round.

The CPU's side is bit-parallel (cpu_engine/bfs/many/core.py), 64 sources per group; a batch may have several
groups. In ``share`` every group runs until all that is left of it depends on the core; the values of all sources that
wait go out as one matrix, and come back closed. In ``race`` the CPU does everything, and an answer in time is merged.

Invariant: a value only ever falls; a batch ends only when no source waits - closed by the partner's word, or with the
core's edges taken back. Whether that word was true is not decided here: the certificate does that, for all at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cpu_engine.bfs.many.core import CoreManyBfs, ManyTable
from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs, ManyResult
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.cli.terminal import plural
from hybrid.config.schema import Config
from hybrid.job.failed_proof import Repair
from hybrid.job.proof import count_false_values, prove_levels
from hybrid.offload.traverse import STILL_STARTING, Answer, NpuTally, Partner
from hybrid.results.trace import Trace

_log = logging.getLogger(__name__)
_RACE_LEVELS = 2  # made before the values go out: by then most searches have come to the core


@dataclass
class ManyTraversed:
    """A finished, not yet certified, batch of traversals."""

    roots: np.ndarray
    found: ManyResult
    npu: NpuTally
    steps: int
    edges_looked_at: int
    repair: Repair | None = None  # given: some levels failed their certificate, and these are others


class ManyEngine:
    """The CPU's side with its buffers, reused by every batch on the same split."""

    def __init__(self, split: CoreSplit) -> None:
        self.split = split
        self._alone = ManyBfs(split.graph)
        self._groups: list[CoreManyBfs] = []
        self._table: ManyTable | None = None

    def alone(self, roots: np.ndarray, *, parents: bool = False, trace: Trace | None = None) -> ManyTraversed:
        """The CPU does everything."""
        t0 = 0.0 if trace is None else trace.now()
        found = self._alone.run(roots, parents=parents)
        if trace is not None:
            trace.add("cpu", "step", t0, engine=CoreManyBfs.name, direction="auto", level=0, frontier=int(roots.size),
                      edges=found.edges_looked_at)  # fmt: skip
        return ManyTraversed(roots, found, NpuTally(), found.levels_run, found.edges_looked_at)

    def table_for(self, roots: int, *, parents: bool) -> ManyTable:
        """The last batch's table if it has the size: pages that were touched before cost nothing."""
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
        self,
        roots: np.ndarray,
        mode: str,
        partner: Partner,
        trace: Trace,
        max_rounds: int = 1000,
        *,
        parents: bool = False,
    ) -> ManyTraversed:
        """CPU and partner in mode ``race`` or ``share``; a partner that needs more rounds than that is done without.

        The arrays are the engine's own, valid until the next batch: whoever keeps them copies them.
        """
        return _Together(self, np.asarray(roots, np.int64), mode, partner, trace, max_rounds).run(parents)


@dataclass(frozen=True)
class _Round:
    """What is out: of each group which roots, and all their values, one row each."""

    rows: list[tuple[CoreManyBfs, np.ndarray]]
    values: np.ndarray
    sent_at: float
    sent: int  # values that are not -1


class _Together:
    def __init__(
        self, engine: ManyEngine, roots: np.ndarray, mode: str, partner: Partner, trace: Trace, max_rounds: int
    ) -> None:
        self.engine, self.roots, self.partner, self.trace = engine, roots, partner, trace
        self.max_rounds = max_rounds
        self.groups = engine.groups_for(roots)
        self.tally = NpuTally()
        self.sharing = mode == "share" and partner.usable
        self.steps = 0
        self.out: _Round | None = None

    def run(self, parents: bool) -> ManyTraversed:
        for at, group in enumerate(self.groups):
            group.start(self._part(at), withhold_core=self.sharing)
        self.partner.begin()
        if self.sharing:
            self._share()
        else:
            self._race()
        self._close()
        table = self.engine.table_for(self.roots.size, parents=parents)
        with self.trace.span("cpu", "write_levels"):
            for at, group in enumerate(self.groups):
                group.write(table.level, table.parent, at * ROOTS_PER_PASS)
        edges = sum(group.edges_looked_at for group in self.groups)
        return ManyTraversed(self.roots, table.result(self.steps, edges), self.tally, self.steps, edges)

    def _part(self, at: int) -> np.ndarray:
        return self.roots[at * ROOTS_PER_PASS : (at + 1) * ROOTS_PER_PASS]

    # -------------------------------------------------------------------------------------------- share and race

    def _share(self) -> None:
        partner = self.partner
        while True:
            self._go_on(self.groups)
            waiting = self._rows(lambda group: group.waiting)
            if not waiting:
                return
            if partner.usable and self.tally.rounds_sent >= self.max_rounds:
                partner.distrust(f"no end after {plural(self.max_rounds, 'round')} (npu.max_rounds)")
            if not partner.usable:
                self._take_core_back()
                continue
            self._submit(waiting)
            answer = self._wait_for_answer()
            if answer is not None:
                self._merge(answer)

    def _race(self) -> None:
        if self.partner.usable and not self.partner.starting and self.engine.split.core_size:
            self._go_on(self.groups, _RACE_LEVELS)
            touched = self._rows(lambda group: np.arange(group.width if group.touching() else 0))
            if touched and any(group.can_step() for group in self.groups):
                self._submit(touched)
        for group in self.groups:
            while group.can_step():
                self._step(group)
                answer = self.partner.poll() if self.out is not None else None
                if answer is not None:
                    self._merge(answer)

    def _rows(self, of: Callable[[CoreManyBfs], np.ndarray]) -> list[tuple[CoreManyBfs, np.ndarray]]:
        """Which roots of which groups go out, as many as a round may carry; the others have to wait for the next."""
        room = max(1, getattr(self.partner, "largest_batch", self.roots.size))
        found = []
        for group in self.groups:
            rows = of(group)[:room]
            room -= rows.size
            if rows.size:
                found.append((group, rows))
        return found

    def _go_on(self, groups: list[CoreManyBfs], most: int | None = None) -> None:
        for group in groups:
            made = 0
            while group.can_step() and (most is None or made < most):
                self._step(group)
                made += 1

    def _step(self, group: CoreManyBfs) -> None:
        t0 = self.trace.now()
        step = group.step()
        self.steps += 1
        self.trace.add(
            "cpu", "step", t0, engine=group.name, direction=step.direction, level=step.level,
            frontier=step.frontier, edges=step.edges,
        )  # fmt: skip

    def _take_core_back(self) -> None:
        now = self.trace.now()
        for group in self.groups:
            group.take_core_back()
        self.trace.add("cpu", "take_back", now, why=self.partner.failure)

    # ------------------------------------------------------------------------------------------------- the rounds

    def _submit(self, rows: list[tuple[CoreManyBfs, np.ndarray]]) -> None:
        t0 = self.trace.now()
        values = np.empty((sum(some.size for _, some in rows), self.engine.split.core_size), np.int32)
        at = 0
        for group, some in rows:
            group.core_values(some, values[at : at + some.size])
            at += some.size
        sent = int(np.count_nonzero(values >= 0))
        self.out = _Round(rows, values, t0, sent)
        self.partner.submit(values)
        self.tally.rounds_sent += 1
        self.tally.values_sent += sent

    def _wait_for_answer(self) -> Answer | None:
        partner = self.partner
        while True:
            answer = partner.poll()
            if answer is not None or not partner.usable:
                if answer is None:
                    self._record_round("", partner.failure, {})
                return answer
            if not partner.busy:
                partner.distrust("the round was lost")
                continue
            t0 = self.trace.now()
            partner.wait()
            self.trace.extend("cpu", "wait", t0, why="everything left depends on the core")

    def _merge(self, answer: Answer) -> None:
        out, t0, tally = self.out, self.trace.now(), self.tally
        assert out is not None
        if answer.values.shape != out.values.shape:
            told = f"its answer is {answer.values.shape}, the round was {out.values.shape}"
            self.partner.distrust(f"round {answer.round_id}: {told}")
            self._record_round(answer.round_id, told, answer.facts)
            return
        adopted = rejected = at = 0
        theirs = np.ascontiguousarray(answer.values, np.int32)
        for group, some in out.rows:
            mine = slice(at, at + some.size)
            adoption = group.adopt(some, out.values[mine], theirs[mine])
            adopted, rejected, at = adopted + adoption.adopted, rejected + adoption.rejected, at + some.size
        tally.rounds_merged += 1
        tally.values_received += answer.received
        tally.values_adopted += adopted
        tally.values_rejected += rejected
        self.trace.add("cpu", "merge", t0, round=answer.round_id, adopted=adopted)
        counts = {"values_received": answer.received, "values_adopted": adopted, "values_rejected": rejected}
        self._record_round(answer.round_id, "merged", answer.facts, t0, **counts)
        if rejected:
            self.partner.distrust(f"round {answer.round_id}: {plural(rejected, 'value')} that no path has")

    def _close(self) -> None:
        partner, tally = self.partner, self.tally
        if partner.busy:
            partner.abandon()
        if self.out is not None:
            self._record_round("", "not needed: the CPU had converged", {})
        if not partner.usable:
            tally.outcome = partner.failure
        elif tally.rounds_merged:
            tally.outcome = f"merged {tally.rounds_merged} of {plural(tally.rounds_sent, 'round')}"
        elif tally.rounds_sent:
            tally.outcome = "the CPU converged before the worker answered"
        elif partner.starting:
            tally.outcome = STILL_STARTING
        else:
            tally.outcome = "not needed: no core vertex got a value before the CPU converged"

    def _record_round(
        self, round_id: str, outcome: str, facts: dict[str, str], t1: float | None = None, **counts: int
    ) -> None:
        out, self.out = self.out, None
        assert out is not None
        timing = {}
        for name in ("compute_s", "iterations"):
            try:
                timing[name] = float(facts.get(name, ""))
            except ValueError:
                continue
        self.trace.add(
            "npu", "round", out.sent_at, t1, round=round_id, outcome=outcome, values_sent=out.sent,
            sources=int(out.values.shape[0]), **timing, **counts,
        )  # fmt: skip


def prove_or_repair_many(
    graph: Graph, done: ManyTraversed, core_size: int, trace: Trace, config: Config | None = None
) -> np.ndarray:
    """Make the levels certified in place; how many values of each search had to change (0: right as they came).

    Parents, where there are any, belong to the levels: those of a repaired search are replaced with them.
    """
    before = done.found
    done.found, done.repair = prove_levels(graph, done.roots, before, trace, config)
    if done.repair is None:
        return np.zeros(done.roots.size, np.int64)
    if done.npu.rounds_merged:
        done.npu.values_rejected += count_false_values(before.level, done.found.level, core_size)
    changed: np.ndarray = np.count_nonzero(before.level != done.found.level, axis=1)
    return changed
