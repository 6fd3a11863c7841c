"""Whatever the graph, its loops and its parallel edges: ranks equal the naive reference, core split or not."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank import engine as driver
from cpu_engine.pagerank.check import check_pagerank
from cpu_engine.pagerank.engine import PageRankEngine, pagerank
from cpu_engine.pagerank.personalised import ManyRanksEngine, personalised_pagerank
from tests.naive import pagerank as naive

Pairs = list[tuple[int, int]]
SPAN = 20  # vertices 0..19, many of them isolated

pairs_of_edges = st.integers(2, SPAN).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=60)
)
few = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def built(pairs: Pairs, directed: bool) -> Graph:
    """All is kept: loops, parallel edges, isolated vertices."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    edges = EdgeList(ends[:, 0].copy(), ends[:, 1].copy(), id_range=(0, SPAN))
    return build_graph(edges, directed=directed, self_loops="keep", duplicates="keep")


def by_user(graph: Graph, rank: np.ndarray, isolated: float) -> list[float]:
    found = [isolated] * SPAN
    for v in range(graph.n):
        found[int(graph.user_ids[graph.user_position[v]])] = float(rank[v])
    return found


@pytest.mark.jitless
@given(
    pairs=pairs_of_edges,
    directed=st.booleans(),
    iterations=st.integers(0, 12),
    damping=st.sampled_from([0.0, 0.5, 0.85]),
)
@few
def test_ldbc_is_the_definition(pairs: Pairs, directed: bool, iterations: int, damping: float) -> None:
    graph = built(pairs, directed)
    found = pagerank(graph, iterations=iterations, damping=damping)
    expected = naive.pagerank(list(range(SPAN)), pairs, directed, iterations, spread=True, damping=damping)
    assert by_user(graph, found.rank, found.isolated_rank) == pytest.approx(
        [expected[v] for v in range(SPAN)], rel=1e-9
    )
    assert found.iterations == iterations
    assert found.rank.dtype == np.float64
    check = check_pagerank(graph, found.rank, found.isolated_rank, "ldbc", damping, iterations=iterations)
    assert check.holds, check.explain(graph)


@pytest.mark.jitless
@given(pairs=pairs_of_edges, directed=st.booleans(), block=st.sampled_from([1, 3, 1 << 16]))
@few
def test_gap_is_the_fixpoint(pairs: Pairs, directed: bool, block: int) -> None:
    """Relaxed in one block or many, the ranks are those that one more iteration leaves as they are."""
    graph = built(pairs, directed)
    with mock.patch.object(driver, "MIN_BLOCK_ARCS", block):
        found = pagerank(graph, definition="gap", tolerance=1e-6, iterations=200)
    expected = naive.pagerank(list(range(SPAN)), pairs, directed, 150, spread=False)
    assert by_user(graph, found.rank, found.isolated_rank) == pytest.approx(
        [expected[v] for v in range(SPAN)], rel=1e-4
    )
    assert found.converged
    check = check_pagerank(graph, found.rank, found.isolated_rank, "gap", tolerance=1e-5)
    assert check.holds, check.explain(graph)


@pytest.mark.jitless
@pytest.mark.parametrize("definition", ["ldbc", "gap"])
@given(pairs=pairs_of_edges, directed=st.booleans(), data=st.data())
@few
def test_the_core_may_be_somebody_elses(definition: str, pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    """A solver with the dense matrix of the core's arcs, and one who is gone every other time."""
    graph = built(pairs, directed)
    k = data.draw(st.integers(0, graph.n), label="core")
    engine = PageRankEngine(graph, core_size=k, definition=definition)
    dense = core_matrix(graph, k)
    for gone in data.draw(st.lists(st.booleans(), min_size=3, max_size=3), label="solver gone"):
        given_away = engine.core_contributions()
        assert given_away.dtype == np.float32
        engine.sweep_outside()
        if gone and k:
            engine.sum_core()
        elif k:
            engine.add_core_sums(dense @ given_away)
        engine.finish_iteration()
    expected = naive.pagerank(list(range(SPAN)), pairs, directed, 3, spread=definition == "ldbc")
    assert by_user(graph, engine.rank(), engine.isolated_rank) == pytest.approx(
        [expected[v] for v in range(SPAN)], rel=1e-5
    )


@pytest.mark.jitless
@given(pairs=pairs_of_edges, directed=st.booleans(), data=st.data())
@few
def test_many_restarts_at_once(pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    sources = data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=5), label="sources")
    k = data.draw(st.integers(0, graph.n), label="core")
    engine = ManyRanksEngine(graph, len(sources), core_size=k)
    engine.begin(np.array(sources))
    dense, before, rounds = core_matrix(graph, k), engine.rank(), 4
    for i in range(rounds):
        engine.sweep_outside()
        if i % 2 and k:
            engine.sum_core()
        elif k:
            engine.add_core_sums(dense @ engine.core_contributions())
        change = engine.finish_iteration()
        assert change == pytest.approx(abs(engine.rank() - before).sum(axis=0), abs=1e-5)
        before = engine.rank()
    for j, source in enumerate(sources):
        user = int(graph.user_ids[graph.user_position[source]])
        expected = naive.personalised(list(range(SPAN)), pairs, directed, user, rounds)
        assert by_user(graph, before[:, j], 0.0) == pytest.approx([expected[v] for v in range(SPAN)], abs=1e-6)


@pytest.mark.parametrize("columns", [1, 16, 17, 64, 80])
@pytest.mark.parametrize("directed", [False, True])
def test_columns_do_not_mix(columns: int, directed: bool) -> None:
    rng = np.random.default_rng(columns)
    pairs = [(int(u), int(v)) for u, v in rng.integers(0, SPAN, (50, 2))]
    graph = built(pairs, directed)
    sources = rng.integers(0, graph.n, columns)
    together = personalised_pagerank(graph, sources)
    assert together.converged
    assert together.rank.shape == (graph.n, columns)
    assert together.rank.sum(axis=0) == pytest.approx(np.ones(columns), abs=1e-5)
    for j in range(0, columns, 7):
        alone = personalised_pagerank(graph, sources[j : j + 1], iterations=together.iterations, tolerance=0)
        assert together.rank[:, j] == pytest.approx(alone.rank[:, 0], abs=1e-6)


def core_matrix(graph: Graph, k: int) -> np.ndarray:
    """dense[v, u] = how many arcs lead from core vertex u to core vertex v."""
    dense = np.zeros((k, k), np.float32)
    for v in range(k):
        for u in graph.in_sources[graph.in_offsets[v] : graph.in_offsets[v + 1]]:
            if u < k:
                dense[v, u] += 1
    return dense
