"""Whatever the graph, the core, the moment of delivery and the worker's honesty: levels equal the naive reference."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.strategies.auto import AutoExpander
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from hybrid.offload.traverse import Traversed, traverse_alone, traverse_together
from hybrid.results.trace import Trace
from tests import naive
from tests.core_solvers import ScriptedCoreSolver, closing_word
from tests.proving import prove_or_repair
from tests.random_graphs import Drawn, Pairs, built, graphs


def parallel_level(split: CoreSplit) -> LevelBfs:
    """The level engine with its parallel kernels, however small the graph."""
    return LevelBfs(split, partial(AutoExpander, serial_edges=0, serial_vertices=0))


ENGINES = {
    "async": lambda split: AsyncBfs(split, quantum_edges=3),
    "async-free": lambda split: AsyncBfs(split, quantum_edges=3, spread=-1),
    "async-shared": lambda split: AsyncBfs(split, quantum_edges=3, thin_edges=0, pull_share=1.0, spread=-1),
    "async-pulling": lambda split: AsyncBfs(split, quantum_edges=3, pull_share=0.0),
    "async-nearest": lambda split: AsyncBfs(split, quantum_edges=3, pull_share=0.3),
    "async-leaping": lambda split: AsyncBfs(split, quantum_edges=3, pull_share=1.0, deep=0),
    "level": LevelBfs,
    "level-parallel": parallel_level,
}
EXAMPLES = 15 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 60


def inner_pairs(graph: Graph) -> Pairs:
    """The graph's arcs in internal ids."""
    return [
        (u, int(v)) for u in range(graph.n) for v in graph.out_targets[graph.out_offsets[u] : graph.out_offsets[u + 1]]
    ]


def check(drawn: Drawn, root: int, found: Traversed) -> None:
    graph, pairs, directed = drawn
    user = [int(one) for one in graph.user_ids[graph.user_position]]
    expected = naive.bfs_levels(pairs, directed, user[root])
    level = {user[v]: int(found.level[v]) for v in range(graph.n) if found.level[v] >= 0}
    parent = {user[v]: user[found.parent[v]] for v in range(graph.n) if found.parent[v] >= 0}
    assert level == expected
    assert naive.is_bfs_tree(pairs, directed, user[root], level, parent)


@pytest.mark.jitless
@pytest.mark.parametrize("engine", ENGINES)
@given(drawn=graphs(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_cpu_alone_is_exact(engine: str, drawn: Drawn, data: st.DataObject) -> None:
    graph = drawn.graph
    root = data.draw(st.integers(0, graph.n - 1))
    found = traverse_alone(ENGINES[engine](CoreSplit(graph)), root)
    assert prove_or_repair(graph, found, root, 0, Trace()) == 0
    check(drawn, root, found)


def with_each_solver(test: Callable[..., None]) -> Any:
    """Run a test with each engine in each mode, on random graphs."""
    drawn = given(drawn=graphs(), data=st.data())(settings(max_examples=EXAMPLES, deadline=None)(test))
    each = pytest.mark.parametrize("engine", ENGINES)(pytest.mark.parametrize("mode", ["race", "share"])(drawn))
    return pytest.mark.jitless(each)


def draw_run(data: st.DataObject, graph: Graph, smallest_core: int) -> tuple[int, int, Iterator[int]]:
    """A core's size, a root, and how often the solver is asked until each of its answers is there."""
    k = data.draw(st.integers(smallest_core, graph.n), label="core size")
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    delays = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5), label="looks until each answer")
    return k, root, itertools.cycle(delays)


@with_each_solver
def test_honest_solver_at_any_moment(engine: str, mode: str, drawn: Drawn, data: st.DataObject) -> None:
    graph = drawn.graph
    k, root, delays = draw_run(data, graph, smallest_core=0)
    lifetime = data.draw(st.none() | st.integers(0, 12), label="looks until death")
    last = data.draw(st.none() | st.integers(0, 3), label="submissions that can be written")
    core = [(u, v) for u, v in inner_pairs(graph) if u < k and v < k]
    solver = ScriptedCoreSolver(closing_word(core), delays, lifetime, last)
    found = traverse_together(ENGINES[engine](CoreSplit(graph, k)), root, mode, solver, Trace())
    assert prove_or_repair(graph, found, root, k, Trace()) == 0, "an honest worker never needs repair, dead or alive"
    assert found.npu.values_rejected == 0
    assert not solver.busy
    check(drawn, root, found)


@with_each_solver
def test_garbage_changes_nothing(engine: str, mode: str, drawn: Drawn, data: st.DataObject) -> None:
    """Values too small, missing, or just sent back: what passes the reader's checks is undone by the certificate."""
    graph = drawn.graph
    k, root, delays = draw_run(data, graph, smallest_core=1)

    def lie(values: np.ndarray) -> np.ndarray:
        invented = np.array(data.draw(st.lists(st.integers(-1, graph.n), min_size=k, max_size=k)), np.int32)
        both = (values >= 0) & (invented > values)  # a larger value than the one sent is refused by the reader
        return np.where(both | ((values >= 0) & (invented < 0)), values, invented).astype(np.int32)

    solver = ScriptedCoreSolver(lie, delays)
    found = traverse_together(ENGINES[engine](CoreSplit(graph, k)), root, mode, solver, Trace())
    prove_or_repair(graph, found, root, k, Trace())
    check(drawn, root, found)


def path_then_clique(length: int, clique: int) -> Pairs:
    """Deep first, then suddenly wide."""
    members = range(length, length + clique)
    return [(v, v + 1) for v in range(length)] + [(u, v) for u in members for v in members if u < v]


DEEP_GRAPHS = {
    "path": [(v, v + 1) for v in range(300)],
    "grid": [(40 * r + c, 40 * r + c + 1) for r in range(40) for c in range(39)]
    + [(40 * r + c, 40 * r + c + 40) for r in range(39) for c in range(40)],
    "path then clique": path_then_clique(60, 50),
}


@pytest.mark.parametrize("mode", ["off", "race", "share"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DEEP_GRAPHS)
def test_deep_graphs(name: str, engine: str, mode: str) -> None:
    """Beyond depth 16 the level engine leaps over thin levels; values may come at any moment all the same."""
    pairs = DEEP_GRAPHS[name]
    graph = built(pairs, directed=False)
    k = graph.n // 3
    core = [(u, v) for u, v in inner_pairs(graph) if u < k and v < k]
    bfs = ENGINES[engine](CoreSplit(graph, k))
    for root in (0, graph.n // 2, graph.n - 1):
        if mode == "off":
            found = traverse_alone(bfs, root)
        else:
            solver = ScriptedCoreSolver(closing_word(core), itertools.cycle([1, 5, 40]))
            found = traverse_together(bfs, root, mode, solver, Trace())
        assert prove_or_repair(graph, found, root, k, Trace()) == 0
        check(Drawn(graph, pairs, False), root, found)


def test_values_that_come_between_leaps() -> None:
    """A wide grid: levels are run many at a time by the team, and then one by one, once a value has been merged."""
    side = 300
    pairs = [(side * r + c, side * r + c + 1) for r in range(side) for c in range(side - 1)]
    pairs += [(side * r + c, side * r + c + side) for r in range(side - 1) for c in range(side)]
    graph = built(pairs, directed=False)
    bfs = LevelBfs(CoreSplit(graph, 4))
    for delay in range(15, 24):
        solver = ScriptedCoreSolver(closing_word([]), itertools.repeat(delay))
        found = traverse_together(bfs, 0, "race", solver, Trace())
        assert prove_or_repair(graph, found, 0, 4, Trace()) == 0


@pytest.mark.parametrize("mode", ["race", "share"])
def test_an_answer_of_another_shape_is_refused(mode: str) -> None:
    graph = built([(v, v + 1) for v in range(60)], directed=False)
    solver = ScriptedCoreSolver(lambda values: values[:-1], itertools.repeat(1))
    found = traverse_together(LevelBfs(CoreSplit(graph, 4)), 0, mode, solver, Trace())
    assert prove_or_repair(graph, found, 0, 4, Trace()) == 0
    assert found.npu.outcome.endswith("its answer is (3,), the round was (4,)")
    assert found.npu.rounds_merged == 0


@pytest.mark.parametrize("spread", [1, -1])
@pytest.mark.parametrize("seed", range(6))
def test_values_that_come_between_pulls_and_quanta(seed: int, spread: int) -> None:
    """Two dense clusters, a ladder between them: pulls, lists of mixed distances and pulls over the rest take turns."""
    rng = np.random.default_rng(seed)
    near, ladder, far = 300, 200, 2000
    rungs = np.arange(near, near + ladder)
    ends = [
        (rng.integers(0, near, 5000), rng.integers(0, near, 5000)),
        (rng.integers(0, near, 40), rungs[:40]),
        (rungs[:-1], rungs[1:]),
        (rng.integers(near + ladder - 40, near + ladder, 60), rng.integers(near + ladder, near + ladder + far, 60)),
        tuple(rng.integers(near + ladder, near + ladder + far, (2, 20000))),
    ]
    src, dst = (np.concatenate([one[side] for one in ends]).astype(np.int64) for side in (0, 1))
    graph = build_graph(EdgeList(src, dst), directed=False)
    split = CoreSplit(graph)
    level = LevelBfs(split)
    bfs = AsyncBfs(split, quantum_edges=64, thin_edges=1, pull_share=1 / 16, deep=1000, spread=spread)
    for root in rng.integers(0, graph.n, 15).tolist():
        truth = traverse_alone(level, root).level.copy()
        bfs.start(root, withhold_core=False)
        while bfs.can_step():
            bfs.step()
            known = bfs.distance
            could_gain = np.flatnonzero((truth > 0) & (known > truth.view(np.uint32)))
            if could_gain.size and rng.random() < 0.5:
                nearest = could_gain[truth[could_gain] <= truth[could_gain].min() + int(rng.integers(0, 6))]
                told = np.unique(rng.choice(nearest, 5)).astype(np.int32)
                known[told] = truth[told]
                bfs.notice(told)
        found, parent = bfs.finish()
        assert np.array_equal(found, truth)
        assert certify(graph, found, parent, root).holds
