"""Compile, or load from numba's cache, what a job on ranks uses: one rank per machine first, then the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.collectives import RankInfo, barrier
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.rehearsal import rehearse_messages
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import partition_graph
from cpu_engine.ranks.algorithms import RankAlgorithm
from cpu_engine.ranks.split import PartSplit
from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.algorithms.proof import restore
from hybrid.config.schema import Config
from hybrid.job.warm_up import (
    REHEARSED_ARCS,
    VARIANTS,
    exercise_engine,
    exercise_steps,
    sample_tasks,
    say_if_slow,
    star_with_tail,
    warm_up_certificate,
)
from hybrid.ranks.algorithms import layout_on_ranks, options_of, scatter, with_weights
from hybrid.ranks.workers import RankCore

_PARTS = 4  # a grid of 2 x 2, so that every phase has peers


def warm_up_on_ranks(
    info: RankInfo, algorithm: Algorithm, chosen: RankAlgorithm, config: Config, like: Graph, policy: str, sync: str
) -> Driver[None]:
    """The first rank of each machine compiles for the others there, who then find it in the cache."""
    with say_if_slow() if info.rank == 0 else nullcontext():
        if info.rank == info.first_here:
            _exercise(algorithm, chosen, config, like, policy, sync, check=info.rank == 0)
        yield from barrier()
    if info.rank != info.first_here:
        _exercise(algorithm, chosen, config, like, policy, sync, check=False)
    yield from barrier()


def _exercise(
    algorithm: Algorithm, chosen: RankAlgorithm, config: Config, like: Graph, policy: str, sync: str, *, check: bool
) -> None:
    if chosen.name == "bfs":
        search_in_loopback(config.engine, sync, policy)
        if check:
            warm_up_certificate(deep=False)
        return
    for task in sample_tasks(algorithm, config, like):  # few and many values to a message have different kernels
        found = _run_sample(chosen, task, policy, sync)
        if check:
            algorithm.check(task, found)
            restore(algorithm, task, found)


def _run_sample(chosen: RankAlgorithm, task: Task, policy: str, sync: str) -> Found:
    """A small graph in a few parts, within this process."""
    rehearse_messages()
    graph, options = task.graph, options_of(task.config)
    layout = layout_on_ranks(graph, chosen, policy, _PARTS)
    parts = [
        with_weights(part, chosen)
        for part in partition_graph(graph, policy, _PARTS, weighted=layout.weighted, symmetric=chosen.symmetric)
    ]
    made = [chosen.make(part, graph, sync, options) for part in parts]
    found = run_loopback([chosen.drive(one, 0, options) for one in made])
    own = [part.internal_of[: part.masters] for part in parts]
    whole = {
        name: scatter([np.ascontiguousarray(one.arrays[name]).view(np.uint8) for one in found], own, values.dtype)
        for name, values in found[0].arrays.items()
    }
    return Found(whole, found[0].counters, found[0].isolated)


def rehearse(
    drive: Callable[[Sequence[Task], dict[str, Any]], Driver[Any]],
    arcs: int,
    unit: Sequence[Task],
    core: RankCore,
    config: Config,
) -> Driver[None]:
    """A run that does not count: it loads the kernels that only a graph of this size and shape needs.

    With workers another one: in mode share it waits for their start, which no clock of a run should contain.
    """
    if not unit or arcs > REHEARSED_ARCS:
        return
    yield from drive(unit, {})
    if core.mode != "off" and config.npu.mode != "auto":  # which does not wait for any start
        options = yield from core.begin()
        yield from barrier()
        yield from drive(unit, options)
        yield from barrier()
        yield from core.end()


def search_in_loopback(engine: str, sync: str, policy: str) -> None:
    """A graph of 40 vertices in a few parts, searched within this process."""
    if engine == LevelBfs.name:
        exercise_engine(engine, deep=False)  # a rank's parallel steps, for which the graph below is too small
    rehearse_messages()
    graph = star_with_tail()
    parts = partition_graph(graph, policy, _PARTS)
    engines = [RankEngine(part, engine=engine, sync=sync, core_size=0) for part in parts]
    for root in (graph.n - 1, 0):
        run_loopback([one.search(root) for one in engines])
    if engine == "async":  # what a part does, and beside a worker, is a matter of when messages come
        split = PartSplit(partition_graph(graph, policy, 1)[0], 2)
        for make in VARIANTS[engine]:
            exercise_steps(make(split), 0)  # type: ignore[arg-type]
