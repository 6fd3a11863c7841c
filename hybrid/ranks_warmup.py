"""Compile, or load from numba's cache, what a job on ranks uses: one rank per machine first, then the others."""

from __future__ import annotations

from collections.abc import Sequence

from cpu_engine.algorithms.ranks_engine import RankEngine
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.partition import partition_graph
from cpu_engine.graph.partition.part import Part
from hybrid.ranks_gather import Seat, barrier
from hybrid.warmup import say_if_slow, star_with_tail

_PARTS = 4  # a grid of 2 x 2, so that every phase has partners
_REHEARSED_ARCS = 1 << 28  # a search of more takes longer than loading any kernel


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


def rehearse(engine: RankEngine, part: Part, roots: Sequence[int]) -> Driver[None]:
    """One search that does not count: it loads the kernels that only a graph of this size and shape needs."""
    root = next((root for root in roots if root >= 0), None)
    if root is not None and part.m <= _REHEARSED_ARCS:
        yield from engine.search(root)


def search_in_loopback(engine: str, sync: str, policy: str) -> None:
    """A graph of 40 vertices in a few parts, searched within this process."""
    graph = star_with_tail(40)
    parts = partition_graph(graph, policy, _PARTS)
    engines = [RankEngine(part, engine=engine, sync=sync, core_size=0) for part in parts]
    for root in (graph.n - 1, 0):
        run_loopback([one.search(root) for one in engines])
