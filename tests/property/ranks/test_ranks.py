"""Whatever the graph, the policy, the number of parts and the order of messages: levels are the naive reference's."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.ranks.engine import RankEngine, SearchOutcome
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph
from hybrid.offload.on_ranks import CoreOnRanks
from tests import naive
from tests.core_solvers import ScriptedCoreSolver, closing_word
from tests.random_graphs import built, pairs_of_edges

ENGINES = [("async", "basp"), ("async", "bsp"), ("level", "bsp")]
EXAMPLES = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 40


def joined(engines: list[RankEngine], outcomes: list[SearchOutcome], n: int) -> tuple[np.ndarray, np.ndarray]:
    """The parts' results as one."""
    level, parent = np.full(n, -7, np.int32), np.full(n, -7, np.int32)
    for engine, outcome in zip(engines, outcomes, strict=True):
        mine = engine.part.internal_of[: engine.part.masters]
        level[mine], parent[mine] = outcome.levels, outcome.parents
    return level, parent


def check(graph: Graph, engines: list[RankEngine], root: int, chooser=None, drivers=None) -> None:
    """Search once, and compare with the reference."""
    outcomes = run_loopback(drivers or [engine.search(root) for engine in engines], chooser)
    level, parent = joined(engines, outcomes, graph.n)
    sources = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets)).tolist()
    right = naive.bfs_levels(zip(sources, graph.out_targets.tolist(), strict=True), True, root)
    assert level.tolist() == [right.get(v, -1) for v in range(graph.n)]
    assert certify(graph, level, parent, root).holds


@pytest.mark.jitless
@pytest.mark.parametrize(("engine", "sync"), ENGINES)
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=pairs_of_edges, directed=st.booleans(), parts=st.integers(1, 6), data=st.data())
def test_levels_are_exact_in_any_order(policy, engine, sync, pairs, directed, parts, data):
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    engines = [RankEngine(part, engine=engine, sync=sync) for part in partition_graph(graph, policy, parts)]
    order = data.draw(st.lists(st.integers(0, 1 << 16), max_size=60))
    draws = iter(order)
    for root in data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=2)):
        check(graph, engines, root, lambda choices: next(draws, 0) % choices)


@pytest.mark.jitless
@pytest.mark.parametrize("sync", ["basp", "bsp"])
@pytest.mark.parametrize("mode", ["race", "share"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=pairs_of_edges, directed=st.booleans(), policy=st.sampled_from(POLICIES), data=st.data())
def test_workers_beside_ranks(mode, sync, pairs, directed, policy, data):
    """One worker per machine, honest but late or dying at any moment: exact, without the certificate's help."""
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    hosts = tuple(data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), label="machine of each rank"))
    k = data.draw(st.integers(0, graph.n), label="core size")
    sources = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets)).tolist()
    core = [(u, v) for u, v in zip(sources, graph.out_targets.tolist(), strict=True) if u < k and v < k]
    engines = [RankEngine(part, sync=sync, core_size=k) for part in partition_graph(graph, policy, len(hosts))]
    sides = []
    for rank, engine in enumerate(engines):
        solver = None
        if hosts.index(hosts[rank]) == rank:
            delays = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5), label="looks until each answer")
            lifetime = data.draw(st.none() | st.integers(0, 30), label="looks until death")
            solver = ScriptedCoreSolver(closing_word(core), itertools.cycle(delays), lifetime)
        sides.append(CoreOnRanks(RankInfo(rank, len(hosts), hosts), engine.part, sync, k, solver))
    order = data.draw(st.lists(st.integers(0, 1 << 16), max_size=60), label="choices")
    draws = iter(order)
    for root in data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=2), label="roots"):
        for side in sides:
            side.begin(withhold_core=mode == "share")
        pairs_of_both = zip(engines, sides, strict=True)
        drivers = [engine.search(root, side, withhold_core=mode == "share") for engine, side in pairs_of_both]
        check(graph, engines, root, lambda choices: next(draws, 0) % choices, drivers)
        for side in sides:
            side.end()


MEDIUM = {
    "kronecker": lambda: (kronecker(10, 8), False),
    "kronecker, directed": lambda: (kronecker(9, 4), True),
    "grid": lambda: (grid(40, 40), False),
    "path": lambda: (EdgeList(np.arange(300), np.arange(1, 301)), False),
}


@pytest.mark.parametrize(("engine", "sync"), ENGINES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", MEDIUM)
def test_larger_graphs_on_up_to_six_parts(name, policy, engine, sync):
    """Large enough that levels are pulled, messages are bits, and deep graphs are leapt over."""
    edges, directed = MEDIUM[name]()
    graph = build_graph(edges, directed=directed)
    for parts in range(1, 7):
        engines = [RankEngine(part, engine=engine, sync=sync) for part in partition_graph(graph, policy, parts)]
        for root in (0, graph.n // 2, graph.n - 1):
            check(graph, engines, root)


@pytest.mark.parametrize("parts", range(1, 7))
def test_real_graphs_on_parts(parts, shared_data):
    file = "wiki-Vote/wiki-Vote.txt" if parts != 4 else "luxembourg_osm/luxembourg_osm.mtx.gz"
    graph = build_graph(read_graph(shared_data / file), directed=None)
    expected = {}
    for policy, (engine, sync) in itertools.product(POLICIES, ENGINES):
        engines = [RankEngine(part, engine=engine, sync=sync) for part in partition_graph(graph, policy, parts)]
        for root in (0, graph.n - 1):
            level, parent = joined(engines, run_loopback([one.search(root) for one in engines]), graph.n)
            assert certify(graph, level, parent, root).holds
            assert np.array_equal(level, expected.setdefault(root, level)), (policy, engine, sync)
