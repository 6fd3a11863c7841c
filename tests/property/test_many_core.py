"""Many searches beside a solver: exact whenever it answers, whatever it says, and if it dies in between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.many import core as bfs_many_core
from cpu_engine.bfs.many.check import check_levels
from cpu_engine.bfs.many.core import CoreManyBfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from hybrid.job.proof import prove_or_repair_many
from hybrid.offload.many_sources import ManyEngine
from hybrid.results.trace import Trace
from tests import naive
from tests.core_solvers import ScriptedCoreSolver, Word, closing_word
from tests.random_graphs import built

Pairs = list[tuple[int, int]]

graphs = st.integers(2, 24).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=70)
)
quick = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def core_edges(graph: Graph, k: int) -> Pairs:
    found = []
    for u in range(k):
        for v in graph.out_targets[graph.out_offsets[u] : graph.out_offsets[u + 1]].tolist():
            if v < k:
                found.append((u, v))
    return found


def for_rows(word: Word) -> Word:
    """What answers one search, for each of a batch."""
    return lambda values: np.stack([word(row) for row in values]) if values.size else values.copy()


def honest(graph: Graph, k: int) -> Word:
    return for_rows(closing_word(core_edges(graph, k)))


def levels_by_root(graph: Graph, pairs: Pairs, directed: bool, roots: list[int]) -> np.ndarray:
    user = [int(one) for one in graph.user_ids[graph.user_position]]
    expected = np.full((len(roots), graph.n), -1, np.int64)
    for i, root in enumerate(roots):
        known = naive.bfs_levels(pairs, directed, user[root])
        expected[i] = [known.get(one, -1) for one in user]
    return expected


@st.composite
def cases(draw: st.DrawFn) -> tuple[Pairs, bool, Graph, int, list[int]]:
    pairs, directed = draw(graphs), draw(st.booleans())
    graph = built([*pairs, (0, 1)], directed)
    k = draw(st.integers(1, graph.n))
    roots = draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=70))
    return [*pairs, (0, 1)], directed, graph, k, roots


@pytest.mark.jitless
@pytest.mark.parametrize("mode", ["share", "race"])
@given(case=cases(), delays=st.lists(st.integers(1, 5), min_size=1))
@quick
def test_an_honest_solver(mode: str, case: tuple[Pairs, bool, Graph, int, list[int]], delays: list[int]) -> None:
    pairs, directed, graph, k, roots = case
    engine = ManyEngine(CoreSplit(graph, k))
    solver = ScriptedCoreSolver(honest(graph, k), iter([*delays, *repeat(2, 1000)]))
    for _ in range(2):  # buffers are left clean
        done = engine.together(np.array(roots), mode, solver, Trace(), parents=True)
        assert solver.usable, solver.failure
        assert not solver.busy
        assert np.array_equal(done.found.level, levels_by_root(graph, pairs, directed, roots))
        assert done.npu.values_rejected == 0
        assert not prove_or_repair_many(graph, done, k, Trace()).any()
        user = [int(one) for one in graph.user_ids[graph.user_position]]
        level, parent = done.found.of(0)
        assert parent is not None
        tree = {user[v]: user[parent[v]] for v in range(graph.n) if parent[v] >= 0}
        reached = {user[v]: int(level[v]) for v in range(graph.n) if level[v] >= 0}
        assert naive.is_bfs_tree(pairs, directed, user[roots[0]], reached, tree)


@given(
    case=cases(), mode=st.sampled_from(["share", "race"]), lifetime=st.integers(0, 6), last=st.integers(0, 3),
    room=st.sampled_from([1, 16, 10**9]),
)  # fmt: skip
@quick
def test_a_solver_that_dies(
    case: tuple[Pairs, bool, Graph, int, list[int]], mode: str, lifetime: int, last: int, room: int
) -> None:
    pairs, directed, graph, k, roots = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bfs_many_core, "LIST_VERTICES", room)  # frontiers put aside as lists, or as whole words
        solver = ScriptedCoreSolver(honest(graph, k), repeat(3), lifetime, last)
        done = ManyEngine(CoreSplit(graph, k)).together(np.array(roots), mode, solver, Trace())
    assert np.array_equal(done.found.level, levels_by_root(graph, pairs, directed, roots))


@given(case=cases(), mode=st.sampled_from(["share", "race"]), data=st.data())
@quick
def test_a_solver_that_lies(case: tuple[Pairs, bool, Graph, int, list[int]], mode: str, data: st.DataObject) -> None:
    pairs, directed, graph, k, roots = case
    shape_too = data.draw(st.booleans())

    def lie(values: np.ndarray) -> np.ndarray:
        if shape_too:
            return values[:, :-1]
        some = st.lists(st.integers(-3, 9), min_size=values.size, max_size=values.size)
        return np.array(data.draw(some), np.int32).reshape(values.shape)

    solver = ScriptedCoreSolver(lie, repeat(1))
    done = ManyEngine(CoreSplit(graph, k)).together(np.array(roots), mode, solver, Trace(), max_rounds=20)
    prove_or_repair_many(graph, done, k, Trace())
    assert np.array_equal(done.found.level, levels_by_root(graph, pairs, directed, roots))


@pytest.mark.parametrize("mode", ["share", "race"])
def test_more_groups_than_one(mode: str) -> None:
    graph = build_graph(kronecker(9, 8, 1), directed=False)
    roots = np.random.default_rng(3).integers(0, graph.n, 150)
    k = 60
    solver = ScriptedCoreSolver(honest(graph, k), repeat(1))
    trace = Trace()
    done = ManyEngine(CoreSplit(graph, k)).together(roots, mode, solver, trace, parents=True)
    alone = ManyEngine(CoreSplit(graph, k)).alone(roots, parents=True)
    assert np.array_equal(done.found.level, alone.found.level)
    assert check_levels(graph, roots, done.found.level).holds
    rounds = [event for event in trace.events if event["kind"] == "round"]
    assert len(rounds) == done.npu.rounds_sent
    if mode == "share":
        assert rounds[0]["sources"] > 64, "all groups go out together"
        assert done.npu.rounds_merged <= 4, "roots wait for each other"


def test_deep_graphs_have_room_for_their_levels() -> None:
    graph = build_graph(grid(2, 400), directed=False)
    roots = np.arange(0, graph.n, 7)[:64]
    done = ManyEngine(CoreSplit(graph, 30)).together(
        roots, "share", ScriptedCoreSolver(honest(graph, 30), repeat(1)), Trace(), max_rounds=10_000
    )
    assert check_levels(graph, roots, done.found.level).holds
    assert int(done.found.level.max()) > 255


def test_a_batch_that_never_ends_is_ended() -> None:
    graph = build_graph(kronecker(7, 8, 1), directed=False)
    word: Iterator[int] = repeat(1)
    solver = ScriptedCoreSolver(lambda values: values, word)  # says: closed as it is
    done = ManyEngine(CoreSplit(graph, 20)).together(np.arange(30, 60), "share", solver, Trace(), max_rounds=3)
    prove_or_repair_many(graph, done, 20, Trace())
    assert check_levels(graph, np.arange(30, 60), done.found.level).holds


def test_one_to_64_roots() -> None:
    graph = build_graph(kronecker(6, 8, 1), directed=False)
    for roots in (np.empty(0, np.int64), np.zeros(65, np.int64)):
        with pytest.raises(ValueError, match="1 to 64 roots"):
            CoreManyBfs(CoreSplit(graph, 4)).start(roots, withhold_core=True)


# ------------------------------------------------------------------------------------------ the levels' certificate


@pytest.mark.jitless
@given(case=cases(), data=st.data())
@quick
def test_exact_levels_and_no_others_are_certified(
    case: tuple[Pairs, bool, Graph, int, list[int]], data: st.DataObject
) -> None:
    pairs, directed, graph, _, roots = case
    level = levels_by_root(graph, pairs, directed, roots).astype(data.draw(st.sampled_from([np.int8, np.int32])))
    assert check_levels(graph, np.array(roots), level).holds
    root, vertex = data.draw(st.integers(0, len(roots) - 1)), data.draw(st.integers(0, graph.n - 1))
    false = data.draw(st.integers(-1, 30).filter(lambda value: value != level[root, vertex]))
    level[root, vertex] = false
    certificate = check_levels(graph, np.array(roots), level)
    assert not certificate.holds
    assert certificate.wrong.tolist() == [root]
    assert "in 1 of" in certificate.explain(graph)


def test_no_roots_are_certified() -> None:
    graph = build_graph(kronecker(6, 8, 1), directed=False)
    assert check_levels(graph, np.empty(0, np.int64), np.empty((0, graph.n), np.int8)).holds
