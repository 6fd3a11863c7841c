"""Louvain on graphs whose communities are plain to see, and on real ones against a plain reference."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.communities.check_modularity import check_modularity
from cpu_engine.communities.louvain import louvain
from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.graph import Graph
from tests.naive import louvain as naive

needs_compiler = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too long without the compiler")


def graph_of(pairs: list[tuple[int, int]], weight: list[float] | None = None, directed: bool = False) -> Graph:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    weights = None if weight is None else np.array(weight)
    return build_graph(EdgeList(table[:, 0].copy(), table[:, 1].copy(), weights), directed=directed)


@pytest.mark.jitless
@pytest.mark.parametrize("directed", [False, True])
def test_ring_of_cliques(directed: bool) -> None:
    """Ten cliques of five in a ring: each is a community."""
    cliques = [(5 * c + i, 5 * c + j) for c in range(10) for i in range(5) for j in range(i)]
    ring = [(5 * c, (5 * c + 6) % 50) for c in range(10)]
    graph = graph_of(cliques + ring, directed=directed)
    found = louvain(graph)
    assert found.count == 10
    user = graph.user_ids[graph.user_position]
    assert all(np.unique(found.label[user // 5 == c]).size == 1 for c in range(10))
    assert found.modularity == pytest.approx(100 / 110 - 10 * (22 / 220) ** 2)
    assert found.levels >= 1


@pytest.mark.jitless
def test_weights_decide() -> None:
    """A path of four whose middle edge is heavy, then light."""
    path = [(0, 1), (1, 2), (2, 3)]
    light = louvain(graph_of(path, [5.0, 0.1, 5.0]))
    assert light.count == 2
    heavy = graph_of(path, [1, 50, 1])
    found = louvain(heavy)
    assert found.label[heavy.internal_id(1)] == found.label[heavy.internal_id(2)]


@pytest.mark.jitless
def test_small_graphs() -> None:
    empty = louvain(graph_of([]))
    assert (empty.label.size, empty.count, empty.modularity) == (0, 0, 0.0)
    pair = louvain(graph_of([(3, 9)]))
    assert (pair.label.tolist(), pair.count, pair.modularity) == ([0, 0], 1, 0.0)
    apart = louvain(graph_of([(0, 1), (2, 3)]))
    assert (apart.count, apart.modularity) == (2, 0.5)
    weightless = louvain(graph_of([(0, 1)], [0.0]))
    assert (weightless.count, weightless.modularity) == (2, 0.0)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="weights from 0 up"):
        louvain(graph_of([(0, 1)], [-1.0]))
    spoiled = graph_of([(0, 1), (1, 2)], [1.5, 2.5])
    assert spoiled.weight is not None
    spoiled.weight[spoiled.weight == 2.5] = np.inf  # as in a store from elsewhere: no reader lets it pass
    with pytest.raises(InputError, match="value inf"):
        louvain(spoiled)
    with pytest.raises(ValueError, match="resolution"):
        louvain(graph_of([(0, 1)]), resolution=float("nan"))


def test_resolution_makes_communities_smaller() -> None:
    rng = np.random.default_rng(2)
    graph = graph_of(rng.integers(0, 60, (300, 2)).tolist())
    counts = [louvain(graph, resolution=resolution).count for resolution in (0.0, 1.0, 5.0, 200.0)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == graph.n


@needs_compiler
@pytest.mark.parametrize(
    ("name", "directed"), [("wiki-Vote/wiki-Vote.txt", True), ("email-Enron/email-Enron.txt.gz", False)]
)
def test_as_good_as_a_plain_reference(name: str, directed: bool, shared_data: Path) -> None:
    graph = build_graph(read_graph(shared_data / name), directed=directed)
    rows = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    edges = [(u, v, 1) for u, v in zip(rows.tolist(), graph.out_targets.tolist(), strict=True) if directed or u < v]
    found = naive.louvain(edges)
    plain = np.unique([found[v] for v in range(graph.n)], return_inverse=True)[1]
    reference = check_modularity(graph, plain, 0, 0.0).modularity
    for seed in range(3):
        ours = louvain(graph, seed=seed)
        assert ours.modularity >= 0.98 * reference
        check = check_modularity(graph, ours.label, ours.count, ours.modularity)
        assert check.holds, check.explain(graph)


@needs_compiler
def test_weighted_road_map(shared_data: Path) -> None:
    graph = build_graph(read_graph(shared_data / "roads-rome/roads-rome.wel.gz"), directed=False)
    found = louvain(graph)
    assert found.modularity > 0.95
    assert check_modularity(graph, found.label, found.count, found.modularity).holds


@pytest.mark.jitless
def test_check_names_what_is_wrong() -> None:
    graph = graph_of([(5, 6), (6, 7), (7, 5), (7, 8)])
    right = louvain(graph)
    check = check_modularity(graph, right.label, right.count, right.modularity)
    assert "consistent" in check.explain(graph)
    assert "not 7" in check_modularity(graph, right.label, 7, right.modularity).explain(graph)
    assert "modularity is" in check_modularity(graph, right.label, right.count, 0.9).explain(graph)
    assert not check_modularity(graph, right.label, right.count, float("nan")).holds
    assert "for one" in check_modularity(graph, np.array([3, 3, 3, 3]), 1, 0.0).explain(graph)
    assert "outside" in check_modularity(graph, np.array([0, 0, 0, 4]), 1, 0.0).explain(graph)
    assert "labels for 4" in check_modularity(graph, right.label[1:], 1, 0.0).explain(graph)
