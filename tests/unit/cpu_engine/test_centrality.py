"""Centralities of graphs whose values are known, networkx's conventions, and real graphs against their checks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from cpu_engine.centrality.betweenness import STRATEGIES, betweenness
from cpu_engine.centrality.check import check_betweenness, check_closeness
from cpu_engine.centrality.closeness import closeness
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph

needs_compiler = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too long without the compiler")


def graph_of(*pairs: tuple[int, int], directed: bool = False, count: int | None = None, **rules: str) -> Graph:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    space = None if count is None else (0, count)
    return build_graph(EdgeList(table[:, 0].copy(), table[:, 1].copy(), id_range=space), directed=directed, **rules)


def by_user(graph: Graph, values: np.ndarray) -> dict[int, float]:
    return dict(zip(graph.user_ids[graph.user_position].tolist(), values.tolist(), strict=True))


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_betweenness_as_networkx_scales_it(strategy: str) -> None:
    """A path of five, by networkx's formulas."""
    path = [(0, 1), (1, 2), (2, 3), (3, 4)]
    graph = graph_of(*path)
    plain = betweenness(graph, normalised=False, strategy=strategy)
    assert by_user(graph, plain.score) == {0: 0, 1: 3, 2: 4, 3: 3, 4: 0}
    share = betweenness(graph, strategy=strategy)
    assert by_user(graph, share.score) == pytest.approx({0: 0, 1: 0.5, 2: 2 / 3, 3: 0.5, 4: 0})
    assert (share.roots, share.searches) == (5, 3)  # the two ends are folded
    directed = graph_of(*path, directed=True)
    assert by_user(directed, betweenness(directed, normalised=False, strategy=strategy).score)[2] == 4
    wider = graph_of(*path, count=7)  # isolated vertices count in N
    assert by_user(wider, betweenness(wider, strategy=strategy).score)[2] == pytest.approx(8 / 30)
    sample = betweenness(graph, roots=np.array([graph.internal_id(0)]), normalised=False, strategy=strategy)
    assert by_user(graph, sample.score)[1] == pytest.approx(3 * 5 / 1 / 2)


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_betweenness_of_small_graphs(strategy: str) -> None:
    assert betweenness(graph_of(), strategy=strategy).score.size == 0
    assert betweenness(graph_of((0, 1)), strategy=strategy).score.tolist() == [0, 0]
    loop = graph_of((0, 0), (0, 1), self_loops="keep")
    assert betweenness(loop, strategy=strategy).score.tolist() == [0, 0]
    star = graph_of(*[(0, v) for v in range(1, 9)])
    found = betweenness(star, normalised=False, strategy=strategy)
    assert by_user(star, found.score)[0] == 8 * 7 / 2
    assert found.searches == 1
    twins = graph_of((0, 1), (0, 1), (1, 2), (0, 3), (3, 2), duplicates="keep")  # a parallel edge is a path of its own
    assert by_user(twins, betweenness(twins, normalised=False, strategy=strategy).score)[1] == pytest.approx(2 / 3)
    assert betweenness(star, roots=np.empty(0, np.int64), strategy=strategy).score.sum() == 0


@pytest.mark.parametrize("strategy", ["together", "each"])
def test_path_counts_beyond_all_numbers(strategy: str) -> None:
    """Each diamond doubles the paths: 1,100 of them are too many to count, 900 are not."""

    def chain(length: int) -> Graph:
        pairs = [(3 * i, 3 * i + j) for i in range(length) for j in (1, 2)]
        return graph_of(*pairs, *[(3 * i + j, 3 * i + 3) for i in range(length) for j in (1, 2)])

    graph = chain(900)
    root = np.array([graph.internal_id(0)])
    found = betweenness(graph, roots=root, normalised=None, strategy=strategy)
    assert check_betweenness(graph, found.score, roots=root).holds
    graph = chain(1100)
    with pytest.raises(OverflowError, match="more shortest paths"):
        betweenness(graph, roots=np.array([graph.internal_id(0)]), strategy=strategy)


@pytest.mark.heavy
@needs_compiler
@pytest.mark.parametrize("directed", [False, True])
def test_betweenness_of_wiki_vote(directed: bool, shared_data: Path) -> None:
    graph = build_graph(read_graph(shared_data / "wiki-Vote/wiki-Vote.txt"), directed=directed)
    roots = np.random.default_rng(1).choice(graph.n, 70, replace=False)
    found = [betweenness(graph, roots=roots, normalised=None, strategy=strategy) for strategy in ("auto", "each")]
    assert np.allclose(found[0].score, found[1].score, rtol=1e-9)
    check = check_betweenness(graph, found[0].score, roots=roots)
    assert check.holds, check.explain(graph)
    exact = betweenness(graph)
    check = check_betweenness(graph, exact.score, scale=exact.scale)
    assert check.holds, check.explain(graph)


@needs_compiler
def test_betweenness_of_a_road_map(shared_data: Path) -> None:
    """Deep: done root by root by itself."""
    graph = build_graph(read_graph(shared_data / "luxembourg_osm/luxembourg_osm.mtx.gz"), directed=False)
    roots = np.random.default_rng(1).choice(graph.n, 5, replace=False)
    found = betweenness(graph, roots=roots, normalised=None)
    check = check_betweenness(graph, found.score, roots=roots)
    assert check.holds, check.explain(graph)


def test_closeness_as_networkx_has_it() -> None:
    """Incoming distances, by networkx's formulas."""
    graph = graph_of((0, 1), (1, 2), directed=True)
    assert by_user(graph, closeness(graph).score) == pytest.approx({0: 0, 1: 1 / 2, 2: 2 / 3})
    assert by_user(graph, closeness(graph, improved=False).score) == pytest.approx({0: 0, 1: 1, 2: 2 / 3})
    assert by_user(graph, closeness(graph, harmonic=True).score) == pytest.approx({0: 0, 1: 1, 2: 1.5})
    apart = graph_of((0, 1), (2, 3), (3, 4), count=6)
    assert by_user(apart, closeness(apart).score)[3] == pytest.approx(2 / 2 * 2 / 5)
    assert by_user(apart, closeness(apart).score)[0] == pytest.approx(1 / 5)
    assert closeness(graph_of()).score.size == 0
    assert closeness(apart, roots=np.empty(0, np.int64)).score.size == 0


def test_hanging_vertices_are_not_searched() -> None:
    star = graph_of(*[(0, v) for v in range(1, 100)])
    found = closeness(star)
    assert found.searches == 1
    assert set(found.farness.tolist()) == {99, 1 + 2 * 98}


@needs_compiler
@pytest.mark.parametrize("directed", [False, True])
def test_closeness_of_wiki_vote(directed: bool, shared_data: Path) -> None:
    """All vertices; sums of distances against scipy's for some."""
    graph = build_graph(read_graph(shared_data / "wiki-Vote/wiki-Vote.txt"), directed=directed)
    found = closeness(graph)
    some = np.arange(0, graph.n, 97)
    reverse = csr_matrix((np.ones(graph.m), graph.in_sources, graph.in_offsets), (graph.n, graph.n))
    distance = dijkstra(reverse, indices=some, unweighted=True)
    assert found.farness[some].tolist() == np.where(np.isinf(distance), 0, distance).sum(axis=1).tolist()
    check = check_closeness(graph, found.roots, found.score)
    assert check.holds, check.explain(graph)


@needs_compiler
def test_closeness_on_a_deep_graph() -> None:
    graph = build_graph(grid(2, 1500))
    roots = np.arange(0, graph.n, 50)
    for harmonic in (False, True):
        found = closeness(graph, roots=roots, harmonic=harmonic)
        assert check_closeness(graph, roots, found.score, harmonic=harmonic, sample=None).holds


def test_bad_arguments_are_named() -> None:
    graph = graph_of((0, 1))
    for call in (betweenness, closeness):
        with pytest.raises(ValueError, match=r"0\.\.1"):
            call(graph, roots=np.array([2]))
    with pytest.raises(ValueError, match="sideways"):
        betweenness(graph, strategy="sideways")


@needs_compiler
def test_checks_name_what_is_wrong() -> None:
    graph = build_graph(kronecker(8, 8, 1))
    exact = betweenness(graph, normalised=None)
    assert "weigh" in check_betweenness(graph, exact.score).explain(graph)
    assert "scores sum to" in check_betweenness(graph, exact.score * 1.001).explain(graph)
    assert f"vertex {graph.user_id_of[0]} for one" in check_betweenness(graph, -1 - exact.score).explain(graph)
    assert "below 0" in check_betweenness(graph, np.full(graph.n, np.nan)).explain()
    assert "scores for" in check_betweenness(graph, exact.score[1:]).explain()
    near = closeness(graph)
    assert "16 vertices searched again" in check_closeness(graph, near.roots, near.score).explain(graph)
    wrong = check_closeness(graph, near.roots, near.score * 1.001, sample=None)
    assert f"vertex {graph.user_id_of[0]} for one" in wrong.explain(graph)
    assert "below 0" in check_closeness(graph, near.roots, near.score - 9).explain(graph)
    assert "scores for" in check_closeness(graph, near.roots, near.score[1:]).explain(graph)
