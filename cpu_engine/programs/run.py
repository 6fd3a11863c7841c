"""Running a vertex program in one process, and what comes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.programs.launch import Launch, Step
from cpu_engine.programs.program import VertexProgram
from cpu_engine.programs.rows import Rows
from cpu_engine.programs.spread import Spread
from cpu_engine.programs.sweep import Sweep
from cpu_engine.schedule.errors import OperatorError
from cpu_engine.schedule.report import Trace
from cpu_engine.threads import is_small


@dataclass(frozen=True)
class ProgramResult:
    """The fields by internal id, and how the program went."""

    values: dict[str, np.ndarray]
    rounds: int
    edges: int  # looked at
    steps: tuple[Step, ...]
    totals: dict[str, float]
    seconds: float
    program: str = ""
    launches: tuple[Launch, ...] = ()  # thread by thread; empty on parts

    def __getitem__(self, field: str) -> np.ndarray:
        return self.values[field]

    def trace(self, trace: Trace) -> None:
        """Add the run to a trace: for each launch what every thread did, and how long it then waited."""
        for launch in self.launches:
            launch.trace(trace, self.program)


class Runner:
    """A program made ready for one graph: operators compiled, buffers made. Each ``run`` begins anew."""

    def __init__(
        self,
        program: VertexProgram,
        graph: Graph,
        *,
        strategy: str | None = None,
        threads: int | None = None,
        **parameters: Any,
    ) -> None:
        if not isinstance(graph, Graph):
            raise OperatorError(
                f"a program runs on a graph's rows, not on {type(graph).__name__}",
                fix="pass graph.rows of a hybrid.Graph: hybrid.load(...).rows",
            )
        check_strategy(program, strategy)
        program.check_parameters(parameters)
        for field in program.fields:
            if isinstance(field.initial, np.ndarray) and field.initial.shape != (graph.n,):
                raise OperatorError(
                    f"field {field.name!r}: the initial values have the shape {field.initial.shape}",
                    fix=f"give one for each of the graph's {graph.n} vertices that have edges",
                )
        make: Any = Sweep if program.update is not None else Spread
        given = {name: np.asarray(value)[()] for name, value in parameters.items()}
        threads = 1 if threads is None and is_small(graph.n + graph.m) else threads
        self._engine = make(program, Rows.of_graph(graph), given, strategy=strategy, threads=threads)
        self._program, self._n = program, graph.n

    def run(self, start: Any = None) -> ProgramResult:
        """From these vertices (internal ids), or from all."""
        began = time.perf_counter()
        engine = self._engine
        engine.start(None if start is None else _checked_start(start, self._n))
        while not engine.over:
            engine.advance()
        values = engine.results()
        steps = tuple(engine.steps)
        edges = sum(step.edges for step in steps)
        seconds = time.perf_counter() - began
        return ProgramResult(
            values, engine.round, edges, steps, engine.totals(), seconds, self._program.name, tuple(engine.launches)
        )


def run(
    program: VertexProgram,
    graph: Graph,
    *,
    start: Any = None,
    strategy: str | None = None,
    threads: int | None = None,
    **parameters: Any,
) -> ProgramResult:
    """Run ``program`` on ``graph`` from ``start`` (internal ids; all by default), with its parameters."""
    return Runner(program, graph, strategy=strategy, threads=threads, **parameters).run(start)


def _checked_start(start: Any, n: int) -> np.ndarray:
    given = np.atleast_1d(np.asarray(start))
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= n):
        raise OperatorError(
            "start must be internal ids of vertices",
            value=start,
            fix=f"use ids from 0 to {n - 1}: graph.internal_id(vertex)",
        )
    return given.astype(np.int64)


def check_strategy(program: VertexProgram, strategy: str | None) -> None:
    """OperatorError unless the program has the operator that the strategy wants."""
    if strategy not in (None, "push", "pull"):
        raise OperatorError(f"strategy is {strategy!r}", fix="use push, pull, or None to let the runtime choose")
    if strategy is not None and getattr(program, strategy) is None:
        raise OperatorError(f"program {program.name!r} has no {strategy} operator", fix=f"give it one: {strategy}=...")
