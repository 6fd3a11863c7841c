"""A vertex program on a partitioned graph: one part's side, as a driver (comm.requests), so on MPI or in one process.

Which copies of a vertex must hear of a value follows from where its field is written and read. Programs whose values
spread run in rounds (bsp) or without (basp): reductions tolerate late updates. Programs that update every vertex, or
count rounds, run in rounds: what arcs bring is reduced to the masters, these are updated, and broadcast to their
mirrors.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.requests import TAG_REDUCE, Exchange, Message
from cpu_engine.comm.rounds import RoundsReport, basp_rounds, bsp_rounds
from cpu_engine.comm.substrate import Field as Synchronised
from cpu_engine.comm.substrate import Phase, Sync
from cpu_engine.comm.termination import Termination
from cpu_engine.graph.partition.part import Part
from cpu_engine.programs.field import Field
from cpu_engine.programs.launch import Step
from cpu_engine.programs.phases import ReducedListPhase, SpreadPhase
from cpu_engine.programs.program import VertexProgram
from cpu_engine.programs.rows import Rows
from cpu_engine.programs.run import ProgramResult, check_strategy
from cpu_engine.programs.spread import Spread
from cpu_engine.programs.sweep import Sweep
from cpu_engine.schedule.errors import OperatorError

_DEGREE = Field("degree", np.float64, reduction="add", read="vertex")


@dataclass(frozen=True)
class PartResult:
    """The fields of a part's masters, in their order, and how the part's side went."""

    values: dict[str, np.ndarray]
    rounds: int
    steps: tuple[Step, ...]
    totals: dict[str, float]
    report: RoundsReport | None  # of a program whose values spread


class ProgramOnRanks:
    """A program made ready for one part; ``sync``: bsp or basp. Each ``run`` is a driver, and begins anew."""

    def __init__(
        self,
        program: VertexProgram,
        part: Part,
        *,
        sync: str = "bsp",
        strategy: str | None = None,
        threads: int | None = None,
        **parameters: Any,
    ) -> None:
        check_strategy(program, strategy)
        program.check_parameters(parameters)
        if sync not in ("bsp", "basp"):
            raise OperatorError(f"sync is {sync!r}", fix="use bsp or basp")
        if sync == "basp" and program.synchronous:
            raise OperatorError(
                f"program {program.name!r} counts rounds, and basp has none", fix="run it with sync='bsp'"
            )
        self.program, self.part, self.sync = program, part, sync
        given = {name: np.asarray(value)[()] for name, value in parameters.items()}
        options: dict[str, Any] = {"strategy": strategy, "threads": threads}
        if program.update is not None:
            options["masters"] = part.masters
        self._make: Callable[..., Any] = partial(
            Sweep if program.update is not None else Spread, program, Rows.of_part(part), given, **options
        )
        self._engine: Any = None

    def run(self, start: Any = None) -> Generator[Any, Any, PartResult]:
        """From these vertices (internal ids), or from all."""
        if self._engine is None:
            degrees = None
            if any("degree" in self.program.wishes(role, one) for role, one in self.program.operators()):
                degrees = yield from _total_degrees(self.part)
            self._engine = self._make(degrees=degrees)
        if self.program.update is not None:
            result = yield from self._sweep(start)
        else:
            result = yield from self._spread(start)
        return result

    def _spread(self, start: Any) -> Generator[Any, Any, PartResult]:
        engine: Spread = self._engine
        field, part = self.program.offered, self.part
        here = None
        if start is not None:
            here = part.local_of(np.atleast_1d(np.asarray(start, np.int64)))
            here = here[here >= 0].astype(np.int64)
        engine.start(here)
        along = Synchronised(field.name, written=field.written, read=field.read)  # type: ignore[arg-type]
        sync = Sync(part, along, phases=partial(SpreadPhase, field=field))
        worker = _Worker(engine)
        if self.sync == "basp":
            report = yield from basp_rounds(worker, sync, Termination(part.part, part.layout.parts))
        else:
            report = yield from bsp_rounds(worker, sync)
        values = {name: array[: part.masters] for name, array in engine.results().items()}
        return PartResult(values, engine.round, tuple(engine.steps), {}, report)

    def _sweep(self, start: Any) -> Generator[Any, Any, PartResult]:
        engine: Sweep = self._engine
        program, part = self.program, self.part
        engine.start(start)
        offered = program.offered
        brought = Synchronised(offered.name, written=offered.written, read="master")  # type: ignore[arg-type]
        reduce = Sync(part, brought, phases=partial(ReducedListPhase, field=offered))
        broadcasts = {
            one.name: Sync(
                part,
                Synchronised(one.name, written="master", read=one.read),
                phases=partial(ReducedListPhase, field=one),
            )
            for one in program.assigned
            if one.read != "vertex"
        }
        engine.take_totals((yield from self._sum_over_parts(engine.begin_totals())))
        while not engine.over:
            engine.bring()
            yield from _exchange(reduce.phases, engine.fields[offered.name])
            totals = engine.settle()
            for name, sync in broadcasts.items():
                yield from _exchange(sync.phases, engine.fields[name])
            engine.take_totals((yield from self._sum_over_parts(totals)))
        values = {name: array[: part.masters] for name, array in engine.results().items()}
        return PartResult(values, engine.round, tuple(engine.steps), engine.totals(), None)

    def _sum_over_parts(self, mine: np.ndarray) -> Generator[Any, Any, np.ndarray]:
        """The sum over all parts, added in their order, so that all have the same."""
        if not self.program.totals:
            return mine
        peers = tuple(q for q in range(self.part.layout.parts) if q != self.part.part)
        payload = np.ascontiguousarray(mine, np.float64).view(np.uint8)
        replies = yield Exchange(TAG_REDUCE, dict.fromkeys(peers, payload), peers)
        sums = {q: np.frombuffer(one.tobytes(), np.float64) for q, one in replies.items()} | {self.part.part: mine}
        return np.sum([sums[q] for q in sorted(sums)], axis=0)


class _Worker:
    """The local side of a program whose values spread; satisfies ``comm.rounds.Worker``."""

    def __init__(self, engine: Spread) -> None:
        self._engine = engine
        self._counts_rounds = engine.program.rounds is not None

    @property
    def values(self) -> np.ndarray:
        return self._engine.values

    def compute(self) -> bool:
        """One round; whether more can be done before the others are heard.

        A program that counts rounds does one even with nothing to do, so that all parts have done as many; a program
        with priority ends with the bucket, as the others may have better to offer than the next one.
        """
        engine = self._engine
        if self._counts_rounds:
            if engine.round < (engine.program.rounds or 0):
                engine.step()
            return False
        if engine.over:
            return False
        engine.step()
        return engine.in_bucket if engine.program.priority is not None else not engine.over

    def activate(self, local_ids: np.ndarray, peer: int) -> None:
        self._engine.activate(local_ids)

    def idle(self) -> bool:
        return self._engine.over

    def outside(self) -> list[Message]:
        return []

    def from_outside(self, message: Message) -> None:
        raise AssertionError("nothing comes from outside")


def run_on_parts(
    program: VertexProgram,
    parts: Sequence[Part],
    *,
    start: Any = None,
    sync: str = "bsp",
    strategy: str | None = None,
    threads: int | None = None,
    chooser: Callable[[int], int] | None = None,
    **parameters: Any,
) -> ProgramResult:
    """The program on all parts in this process, as ranks would run it; fields by internal id."""
    options: dict[str, Any] = {"sync": sync, "strategy": strategy, "threads": threads, **parameters}
    ranks = [ProgramOnRanks(program, part, **options) for part in parts]
    outcomes = run_loopback([one.run(start) for one in ranks], chooser)
    values = {one.name: np.empty(parts[0].n, one.dtype) for one in program.fields}
    for part, outcome in zip(parts, outcomes, strict=True):
        for name, array in outcome.values.items():
            values[name][part.internal_of[: part.masters]] = array
    steps = tuple(step for outcome in outcomes for step in outcome.steps)
    rounds = max(outcome.rounds for outcome in outcomes)
    return ProgramResult(values, rounds, sum(step.edges for step in steps), steps, outcomes[0].totals, 0.0)


def _total_degrees(part: Part) -> Generator[Any, Any, np.ndarray]:
    """The out-degree in the whole graph of every copy here, int64."""
    degree = np.diff(part.out_offsets).astype(np.float64)
    sync = Sync(
        part, Synchronised("degree", written="source", read="any"), phases=partial(ReducedListPhase, field=_DEGREE)
    )
    yield from _exchange(sync.phases, degree)
    return degree.astype(np.int64)


def _exchange(phases: Sequence[Phase], values: np.ndarray) -> Generator[Any, Any, None]:
    for phase in phases:
        arrived = yield Exchange(phase.tag, phase.messages(values), phase.receive_from)
        for peer in sorted(arrived):
            phase.apply(peer, arrived[peer], values)
