"""Compile, or load, what a job of any algorithm uses: alone, beside a core solver, and in batches."""

from __future__ import annotations

import numpy as np

from cpu_engine.bfs.many.engine import warm_up_many
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.algorithms.proof import restore
from hybrid.config.schema import Config
from hybrid.job.engines import BatchEngine, PlainEngine, engine_for
from hybrid.job.sample_graphs import samples_like, star_with_tail
from hybrid.job.sources import Source
from hybrid.job.warm_up import looks_deep, say_if_slow, warm_up
from hybrid.planning.device_profiles import fixed_delay
from hybrid.results.trace import Trace
from hybrid.worker.simulated import SimulatedSolver


def warm_up_job(algorithm: Algorithm, config: Config, like: Graph) -> None:
    """What a run and its check on a graph like this one use."""
    if algorithm.name == "bfs":
        warm_up(config.engine, config.bfs.strategy, deep=looks_deep(like))
        return
    engine = PlainEngine(algorithm)
    with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
        for sample in samples_like(like):
            task = Task(sample, algorithm.for_warm_up(config), Source(0, 0) if algorithm.sourced else None)
            ((found, _),) = engine.prove([task], engine.alone([task], Trace()), Trace())
            algorithm.facts(task, restore(algorithm, task, found))


def warm_up_hybrid(algorithm: Algorithm, config: Config, like: Graph, batch: int = 1) -> None:
    """What it uses beside a core solver, with the CPU's own values in the solver's place; and in batches."""
    if batch > 1:
        warm_up_batches()
    elif algorithm.name != "bfs":
        for sample in samples_like(like):
            task = Task(sample, algorithm.for_warm_up(config))
            engine_for(algorithm, task, CoreSplit(sample, 2), mode="share").warm_up()


def warm_up_batches() -> None:
    """What many sources at once use."""
    with say_if_slow("compiling the kernels for batches: this happens once, and is kept for the next run"):
        warm_up_many()
        graph = star_with_tail(40)
        engine, solver = BatchEngine(CoreSplit(graph, 2)), SimulatedSolver(fixed_delay("oracle", 0.0))
        engine.publish(solver)
        for roots in (np.arange(graph.n), np.array([graph.n - 1])):
            unit = [Task(graph, Config(), Source(root, root)) for root in roots.tolist()]
            for mode in ("share", "race"):
                done = engine.together(unit, solver, mode, Trace())
            engine.prove(unit, done, Trace())
