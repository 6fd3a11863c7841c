"""Core solvers beside ranks, for every algorithm that shares its core: late, dying or lost at any moment, exact.

All ranks run in this process. BFS from one source is tested in test_ranks.py, over real MPI in tests/mpi.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.ranks.many import ManyBfsOnRanks
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.components.ranks import ComponentsOnRanks
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, Part, partition_graph
from cpu_engine.pagerank.ranks import PageRankOnRanks
from cpu_engine.ranks.split import PartSplit
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.ranks import SsspOnRanks
from hybrid.offload.on_ranks import CoreOnRanks, LevelsOnRanks, SumsOnRanks
from tests.core_solvers import ScriptedCoreSolver, Word, closing_word

EXAMPLES = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 40
Arc = tuple[int, int, int]

weighted = st.integers(2, 24).flatmap(
    lambda n: st.lists(
        st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, 9)), min_size=1, max_size=80
    )
)


def built(arcs: list[Arc], directed: bool) -> Graph:
    src, dst, weight = (np.array(column, np.int64) for column in zip(*arcs, strict=True))
    return build_graph(EdgeList(src, dst, weight), directed=directed)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    graph = built(draw(weighted), draw(st.booleans()))
    assume(graph.n > 0)
    return graph


def on_any_graph(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on random graphs, divided by any policy."""
    drawn = given(graph=graphs(), policy=st.sampled_from(POLICIES), data=st.data())(test)
    return pytest.mark.jitless(settings(max_examples=EXAMPLES, deadline=None)(drawn))


def core_arcs(graph: Graph, k: int) -> list[Arc]:
    sources = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets)).tolist()
    assert graph.weight is not None
    every = zip(sources, graph.out_targets.tolist(), graph.weight.tolist(), strict=True)
    return [(u, v, w) for u, v, w in every if u < k and v < k]


def falling_word(arcs: list[Arc], step: Callable[[int, int], int]) -> Word:
    """Values closed under ``value[v] <= step(value[u], weight)``; -1 is none."""

    def close(values: np.ndarray) -> np.ndarray:
        known = [int(value) if value >= 0 else 1 << 40 for value in values]
        changed = True
        while changed:
            changed = False
            for u, v, w in arcs:
                if step(known[u], w) < known[v]:
                    known[v], changed = step(known[u], w), True
        return np.array([value if value < 1 << 40 else -1 for value in known], values.dtype)

    return close


def summing_word(arcs: list[Arc]) -> Word:
    def add_up(values: np.ndarray) -> np.ndarray:
        sums = np.zeros_like(values)
        for u, v, _ in arcs:
            sums[v] += values[u]
        return sums

    return add_up


class Case:
    """A graph in parts, a core, and a solver on the ranks that lead."""

    def __init__(self, data: st.DataObject, graph: Graph, policy: str, *, weighted: bool, one: bool) -> None:
        self.data, self.graph, self.one = data, graph, one
        self.hosts = tuple(data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), label="machines"))
        self.k = data.draw(st.integers(0, graph.n), label="core size")
        self.arcs = core_arcs(graph, self.k)
        self.parts = partition_graph(graph, policy, len(self.hosts), weighted=weighted)
        self.mode = data.draw(st.sampled_from(["race", "share"]), label="mode")
        self.largest_batch = data.draw(st.sampled_from([1, 2, 1024]), label="rows in a round")

    def sides(self, word: Word, make: Callable[[RankInfo, Part, Any], Any]) -> list[Any]:
        found = []
        for rank, part in enumerate(self.parts):
            solver = None
            if rank == (0 if self.one else self.hosts.index(self.hosts[rank])):
                delays = self.data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5), label="looks to an answer")
                lifetime = self.data.draw(st.none() | st.integers(0, 30), label="looks until death")
                solver = ScriptedCoreSolver(word, itertools.cycle(delays), lifetime)
                solver.largest_batch = self.largest_batch
            found.append(make(RankInfo(rank, len(self.hosts), self.hosts), part, solver))
        return found

    def run(self, sides: list[Any], drive: Callable[[int, Any, bool], Any]) -> list[Any]:
        solver = sides[0].solver
        withheld = self.mode == "share" and solver is not None and any(
            side.solver is not None and side.solver.usable for side in sides
        )  # fmt: skip
        for side in sides:
            side.begin(withhold_core=withheld)
        draws = iter(self.data.draw(st.lists(st.integers(0, 1 << 16), max_size=60), label="choices"))
        found = run_loopback(
            [drive(rank, side, withheld) for rank, side in enumerate(sides)],
            lambda choices: next(draws, 0) % choices,
        )
        for side in sides:
            side.end()
        return found

    def whole(self, by_part: list[np.ndarray]) -> np.ndarray:
        whole = np.empty((*by_part[0].shape[:-1], self.graph.n), by_part[0].dtype)
        for part, values in zip(self.parts, by_part, strict=True):
            whole[..., part.internal_of[: part.masters]] = values
        return whole


@pytest.mark.parametrize("sync", ["basp", "bsp"])
@on_any_graph
def test_components(sync, graph, policy, data):
    case = Case(data, graph, policy, weighted=False, one=False)
    both = case.arcs + [(v, u, w) for u, v, w in case.arcs]
    sides = case.sides(
        falling_word(both, lambda value, _: value),
        lambda info, part, solver: CoreOnRanks(info, part, sync, case.k, solver, complete=True),
    )
    engines = [ComponentsOnRanks(part, sync=sync, core_size=case.k) for part in case.parts]
    right = case.whole([one.labels for one in run_loopback([engine.run() for engine in engines])])
    for _ in range(2):
        found = case.run(sides, lambda rank, side, held: engines[rank].run(side, withhold_core=held))
        assert np.array_equal(case.whole([one.labels for one in found]), right)


@pytest.mark.parametrize("sync", ["basp", "bsp"])
@on_any_graph
def test_shortest_paths(sync, graph, policy, data):
    case = Case(data, graph, policy, weighted=True, one=False)
    sides = case.sides(
        falling_word(case.arcs, lambda value, weight: value + weight),
        lambda info, part, solver: CoreOnRanks(info, part, sync, case.k, solver),
    )
    engines = [SsspOnRanks(part, sync=sync, core_size=case.k) for part in case.parts]
    for root in data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=2), label="roots"):
        found = case.run(sides, lambda rank, side, held: engines[rank].search(root, side, withhold_core=held))  # noqa: B023
        distance, parent = (case.whole([getattr(one, name) for one in found]) for name in ("distance", "parents"))
        certificate = check_sssp(graph, root, distance, parent)
        assert certificate.holds, certificate.explain(graph)


@on_any_graph
def test_pagerank(graph, policy, data):
    case = Case(data, graph, policy, weighted=False, one=True)
    sides = case.sides(
        summing_word(case.arcs), lambda info, part, solver: SumsOnRanks(info, part, case.k, solver, float("inf"))
    )
    engines = [PageRankOnRanks(part, case.k) for part in case.parts]
    right = run_loopback([engine.run() for engine in engines])
    found = case.run(sides, lambda rank, side, _: engines[rank].run(outside=side))
    ranks, expected = (case.whole([one.ranks for one in outcomes]) for outcomes in (found, right))
    assert np.allclose(ranks, expected, rtol=1e-5)
    assert found[0].iterations == right[0].iterations


@on_any_graph
def test_batches(graph, policy, data):
    case = Case(data, graph, policy, weighted=False, one=True)
    close = closing_word([(u, v) for u, v, _ in case.arcs])
    sides = case.sides(
        lambda values: np.stack([close(row) for row in values]),
        lambda info, part, solver: LevelsOnRanks(info, part, case.k, solver, 1000),
    )
    engines = [ManyBfsOnRanks(PartSplit(part, case.k)) for part in case.parts]
    roots = np.array(data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=70), label="roots"))
    right = case.whole([one.levels for one in run_loopback([engine.search(roots) for engine in engines])])
    for _ in range(2):
        found = case.run(sides, lambda rank, side, held: engines[rank].search(roots, side, withhold_core=held))
        assert np.array_equal(case.whole([one.levels for one in found]), right)


def test_a_word_against_final_levels_ends_a_batch_solvers_part():
    graph = build_graph(kronecker(7, 8))
    parts = partition_graph(graph, "iec", 2)
    lie = ScriptedCoreSolver(lambda values: np.zeros_like(values), itertools.cycle([1]))
    infos = [RankInfo(rank, 2, ("a", "a")) for rank in range(2)]
    sides = [LevelsOnRanks(info, parts[info.rank], 30, lie if info.rank == 0 else None, 100) for info in infos]
    engines = [ManyBfsOnRanks(PartSplit(part, 30)) for part in parts]
    roots = np.array([0, 5, graph.n - 1])
    right = run_loopback([engine.search(roots) for engine in engines])
    for side in sides:
        side.begin(withhold_core=True)
    found = run_loopback([e.search(roots, side, withhold_core=True) for e, side in zip(engines, sides, strict=True)])
    assert not lie.usable
    assert "against levels that are final" in lie.failure
    for one, other in zip(found, right, strict=True):
        assert np.array_equal(one.levels, other.levels)
