"""Compile, or load from numba's cache, what a job on ranks uses: one rank per machine first, then the others."""

from __future__ import annotations

from collections.abc import Sequence

from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.rehearsal import rehearse_messages
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.partition import partition_graph
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.split import PartSplit
from hybrid.job.sample_graphs import star_with_tail
from hybrid.job.warm_up import REHEARSED_ARCS, VARIANTS, exercise_engine, exercise_steps, say_if_slow
from hybrid.ranks.collectives import Seat, barrier
from hybrid.ranks.workers import RankNpu

_PARTS = 4  # a grid of 2 x 2, so that every phase has partners


def warm_up_on_ranks(seat: Seat, engine: str, sync: str, policy: str) -> Driver[None]:
    """The first rank of each machine compiles for the others there, who then find it in the cache."""
    if seat.rank == seat.first_here:
        if seat.rank == 0:
            with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
                search_in_loopback(engine, sync, policy)
        else:
            search_in_loopback(engine, sync, policy)
    yield from barrier()
    if seat.rank != seat.first_here:
        search_in_loopback(engine, sync, policy)
    yield from barrier()


def rehearse(engine: RankEngine, part: Part, roots: Sequence[int], npu: RankNpu) -> Driver[None]:
    """A search that does not count: it loads the kernels that only a graph of this size and shape needs.

    With workers another one: in mode share it waits for their start, which no clock of a search should contain.
    """
    root = next((root for root in roots if root >= 0), None)
    if root is None or part.m > REHEARSED_ARCS:
        return
    yield from engine.search(root)
    if npu.mode != "off":
        withheld = yield from npu.begin()
        yield from barrier()
        yield from engine.search(root, npu.outside, withhold_core=withheld)
        yield from barrier()
        yield from npu.end()


def search_in_loopback(engine: str, sync: str, policy: str) -> None:
    """A graph of 40 vertices in a few parts, searched within this process."""
    if engine == LevelBfs.name:
        exercise_engine(engine, deep=False)  # a rank's parallel steps, for which the graph below is too small
    rehearse_messages()
    graph = star_with_tail(40)
    parts = partition_graph(graph, policy, _PARTS)
    engines = [RankEngine(part, engine=engine, sync=sync, core_size=0) for part in parts]
    for root in (graph.n - 1, 0):
        run_loopback([one.search(root) for one in engines])
    if engine == "async":  # what a part does, and beside a worker, is a matter of when messages come
        split = PartSplit(partition_graph(graph, policy, 1)[0], 2)
        for make in VARIANTS[engine]:
            exercise_steps(make(split), 0)  # type: ignore[arg-type]
