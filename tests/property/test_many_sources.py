"""Whatever the graph, the roots and the way each level is made: all levels equal the naive reference."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.many import engine as bfs_many
from cpu_engine.bfs.many.engine import STRATEGIES, ManyBfs, ManyResult, many_bfs
from cpu_engine.bfs.traversal import complete_parents
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from tests import naive
from tests.random_graphs import built

Pairs = list[tuple[int, int]]
HUGE = 10**9

graphs = st.integers(2, 30).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=90)
)
switches = st.fixed_dictionaries(
    {
        "ALPHA": st.sampled_from([0, 1, 4, HUGE]),
        "UNION_ALPHA": st.sampled_from([0, 1, 4, HUGE]),
        "LIST_EDGES": st.sampled_from([0, 1, HUGE]),
        "LIST_VERTICES": st.sampled_from([1, 2, 16]),
        "DEEP": st.sampled_from([1, 2, 32]),
        "FEW_ROOTS": st.sampled_from([0, 2, HUGE]),
    }
)


def check(graph: Graph, pairs: Pairs, directed: bool, roots: list[int], found: ManyResult) -> None:
    user = [int(one) for one in graph.user_ids[graph.user_position]]
    assert found.level.shape == (len(roots), graph.n)
    for i, root in enumerate(roots):
        level, parent = found.of(i)
        assert level.dtype == np.int32
        reached = {user[v]: int(level[v]) for v in range(graph.n) if level[v] >= 0}
        assert reached == naive.bfs_levels(pairs, directed, user[root])
        if parent is not None:
            tree = {user[v]: user[parent[v]] for v in range(graph.n) if parent[v] >= 0}
            assert naive.is_bfs_tree(pairs, directed, user[root], reached, tree)
            assert certify(graph, level, parent, root).holds


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(pairs=graphs, directed=st.booleans(), data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_root_is_exact(strategy: str, pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    roots = data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=8), label="roots, repeated or not")
    check(graph, pairs, directed, roots, many_bfs(graph, np.array(roots), parents=True, strategy=strategy))


@pytest.mark.jitless
@given(pairs=graphs, directed=st.booleans(), changed=switches, serial=st.sampled_from([-1, 0, 6]), data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_pushed_pulled_listed_or_settled(
    pairs: Pairs, directed: bool, changed: dict[str, int], serial: int, data: st.DataObject
) -> None:
    """The switch points decide how a level is made, never what it is."""
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    roots = data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=12))
    with mock.patch.multiple(bfs_many, **changed):
        found = ManyBfs(graph, serial_edges=serial).run(np.array(roots), parents=True)
    check(graph, pairs, directed, roots, found)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 63, 64, 65, 130])
def test_any_number_of_roots(count: int) -> None:
    edges = kronecker(9, 8, 3)
    graph = build_graph(edges)
    pairs = [(int(u), int(v)) for u, v in zip(edges.src, edges.dst, strict=True)]
    roots = np.random.default_rng(count).integers(0, graph.n, count).tolist()
    check(graph, pairs, False, roots, many_bfs(graph, np.array(roots), parents=True))


def test_no_roots_and_no_edges() -> None:
    empty = build_graph(EdgeList(np.empty(0, np.int64), np.empty(0, np.int64)), directed=False)
    assert many_bfs(empty, np.empty(0, np.int64)).level.shape == (0, 0)
    graph = built([(0, 1)], False)
    assert many_bfs(graph, np.empty(0, np.int64), parents=True).level.shape == (0, 2)


@pytest.mark.parametrize("bad", [[-1], [0, 2]])
def test_roots_must_be_vertices(bad: list[int]) -> None:
    with pytest.raises(ValueError, match=r"0\.\.1"):
        many_bfs(built([(0, 1)], False), np.array(bad))


def test_unknown_strategy_is_named() -> None:
    with pytest.raises(ValueError, match="sideways"):
        ManyBfs(built([(0, 1)], False), "sideways")


@pytest.mark.parametrize(("length", "width"), [(120, 1), (129, 2), (300, 2), (33000, 4)])
def test_levels_are_as_wide_as_the_depth_needs(length: int, width: int) -> None:
    """A path from its end; the second pass is shallow, and must not narrow what the first one needed."""
    path = [(v, v + 1) for v in range(length - 1)]
    graph = built(path, False)
    end, middle = graph.internal_id(0), graph.internal_id(length // 2)
    found = many_bfs(graph, np.array([end] + [middle] * 64))
    assert found.level.itemsize == width
    place = graph.user_ids[graph.user_position]
    assert np.array_equal(found.of(0)[0], place)
    assert np.array_equal(found.of(64)[0], abs(place - length // 2))
    assert found.levels_run >= length - 1


def test_one_engine_serves_many_runs() -> None:
    """Buffers are reused: nothing of one run may show in the next, not even of one that was interrupted."""
    graph = build_graph(grid(15, 17))
    engine = ManyBfs(graph, serial_edges=0)
    rng = np.random.default_rng(1)
    for count in (3, 64, 1, 40):
        roots = rng.integers(0, graph.n, count)
        with (
            mock.patch.object(bfs_many, "settle_step", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
            mock.patch.object(bfs_many, "LIST_EDGES", HUGE),
        ):
            engine.run(roots[::-1])
        assert np.array_equal(engine.run(roots).level, many_bfs(graph, roots).level)


@pytest.mark.parametrize(("shape", "alone"), [((60, 60), True), ((2, 400), True), ((9, 9), False)])
def test_searches_that_do_not_meet_go_alone(shape: tuple[int, int], alone: bool) -> None:
    """On a large grid the frontiers are different vertices: a word would carry one root's bit."""
    graph = build_graph(grid(*shape))
    roots = np.random.default_rng(3).integers(0, graph.n, 40)
    with mock.patch.object(bfs_many, "search_each_step", wraps=bfs_many.search_each_step) as went_alone:
        found = many_bfs(graph, roots, parents=True)
    assert went_alone.called == alone
    together = many_bfs(graph, roots, strategy="push")
    assert np.array_equal(found.level, together.level)
    assert found.levels_run >= together.level.max()
    for i, root in enumerate(roots.tolist()):
        level, parent = found.of(i)
        assert certify(graph, level, parent, root).holds


@pytest.mark.parametrize("directed", [False, True])
def test_large_enough_for_every_way(directed: bool) -> None:
    """All strategies agree, and each root's levels carry the proof, on a graph with hubs, leaves and components."""
    edges = kronecker(13, 8, 5)
    graph = build_graph(EdgeList(edges.src, edges.dst), directed=directed)
    roots = np.random.default_rng(7).permutation(graph.n)[:64]
    results = [many_bfs(graph, roots, strategy=strategy) for strategy in STRATEGIES]
    assert all(np.array_equal(results[0].level, other.level) for other in results)
    assert results[0].edges_looked_at < results[2].edges_looked_at
    for i in range(0, 64, 9):
        level, _ = results[0].of(i)
        parent = np.full(graph.n, -1, np.int32)
        complete_parents(graph, level, parent, int(roots[i]))
        assert certify(graph, level, parent, int(roots[i])).holds
