"""The NetworkX backend: found by entry points, answers as NetworkX does, says why it does not; NetworkX's own tests."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

networkx = pytest.importorskip("networkx")

import hybrid  # noqa: E402
from hybrid.networkx_backend import dispatch, info  # noqa: E402
from hybrid.networkx_backend.conversion import convert_from_nx, convert_to_nx  # noqa: E402

OF_NETWORKX = [
    "networkx.algorithms.shortest_paths",
    "networkx.algorithms.components",
    "networkx.algorithms.link_analysis",
    *(f"networkx.algorithms.centrality.tests.test_{n}_centrality" for n in ("betweenness", "closeness", "harmonic")),
    *(f"networkx.algorithms.tests.test_{n}" for n in ("cluster", "core", "dag")),
]


@pytest.fixture(autouse=True)
def no_cache_warnings() -> Iterator[None]:
    """NetworkX warns whenever it uses a conversion that it kept."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Note: conversions to backend graphs are saved")
        yield


def sample(directed: bool) -> Any:
    graph = networkx.gnp_random_graph(60, 0.04, seed=3, directed=directed)
    graph.add_node("alone")
    weight = np.random.default_rng(1).integers(1, 9, graph.number_of_edges()).tolist()
    networkx.set_edge_attributes(graph, dict(zip(graph.edges, weight, strict=True)), "length")
    return graph


def test_networkx_finds_it() -> None:
    assert "tandem" in networkx.utils.backends.backends
    assert set(info.get_info()["functions"]) == set(info.FUNCTIONS)
    others = {"convert_from_nx", "convert_to_nx", "can_run", "should_run"}
    assert set(info.FUNCTIONS) | others == set(dispatch.__all__)
    for name in info.FUNCTIONS:
        assert hasattr(networkx, name), name
    assert "tandem" in networkx.pagerank.__doc__


def test_networkx_tests_pass(tmp_path: Path) -> None:
    env = {**os.environ, "NETWORKX_TEST_BACKEND": "tandem", "NETWORKX_FALLBACK_TO_NX": "True"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", *OF_NETWORKX]
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert " passed" in ended.stdout


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "name",
    ["pagerank", "closeness_centrality", "betweenness_centrality", "harmonic_centrality", "clustering", "triangles"],
)
def test_scores_are_those_of_networkx(name: str, directed: bool) -> None:
    graph, function = sample(directed), getattr(networkx, name)
    if dispatch.can_run(name, (graph,), {}) is not True:
        assert directed
        return
    assert function(graph, backend="tandem") == pytest.approx(function(graph, backend="networkx"), abs=1e-9)


@pytest.mark.parametrize("directed", [False, True])
def test_lengths_and_paths_are_those_of_networkx(directed: bool) -> None:
    graph = sample(directed)
    for name, options in (
        ("single_source_shortest_path_length", {}),
        ("single_source_shortest_path_length", {"cutoff": 2}),
        ("single_source_dijkstra_path_length", {"weight": "length"}),
        ("single_source_dijkstra_path_length", {"weight": "length", "cutoff": 9}),
        ("single_target_shortest_path_length", {}),
    ):
        function = getattr(networkx, name)
        ours, theirs = (function(graph, 5, backend=b, **options) for b in ("tandem", "networkx"))
        assert ours == theirs
        assert list(ours.values()) == sorted(ours.values())
    lengths, paths = networkx.single_source_dijkstra(graph, 5, weight="length", backend="tandem")
    for target, path in paths.items():
        assert (path[0], path[-1]) == (5, target)
        assert networkx.path_weight(graph, path, "length") == lengths[target]
    for node in ("alone", 999):
        with pytest.raises((networkx.NetworkXNoPath, networkx.NodeNotFound)):
            networkx.shortest_path(graph, 5, node, backend="tandem")
    with pytest.raises(networkx.NodeNotFound):
        networkx.single_source_dijkstra(graph, 999, backend="tandem")


def test_edges_without_length_and_of_no_length() -> None:
    graph = networkx.Graph()
    graph.add_edge("a", "b", weight=0)
    graph.add_edge("b", "c", weight=0)
    graph.add_edge("c", "d")
    paths = networkx.single_source_dijkstra_path(graph, "a", backend="tandem")
    assert paths == {"a": ["a"], "b": ["a", "b"], "c": ["a", "b", "c"], "d": ["a", "b", "c", "d"]}


def test_strong_components_come_sinks_first() -> None:
    graph = networkx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 3), (3, 2), (3, 4), (5, 0)])
    graph.add_node(9)
    found = list(networkx.strongly_connected_components(graph, backend="tandem"))
    assert sorted(map(sorted, found)) == [[0, 1], [2, 3], [4], [5], [9]]
    place = {node: at for at, group in enumerate(found) for node in group}
    assert all(place[u] >= place[v] for u, v in graph.edges)


def test_reasons() -> None:
    graph, directed = networkx.path_graph(3), networkx.DiGraph([(0, 1)])
    refused = [
        ("pagerank", {"personalization": {0: 1}}, "personalization is given"),
        ("betweenness_centrality", {"k": 2}, "k is given"),
        ("single_source_dijkstra_path_length", {"source": 0, "weight": max}, "no attribute's name"),
        ("shortest_path", {}, "no source is given"),
        ("shortest_path_length", {"source": 0, "weight": "w", "method": "bellman-ford"}, "bellman-ford"),
        ("pagerank", {"nobody": 1}, "unexpected keyword"),
    ]
    for name, asked, reason in refused:
        assert reason in str(dispatch.can_run(name, (graph,), asked))
    assert "directed" in str(dispatch.can_run("core_number", (directed,), {}))
    assert dispatch.can_run("core_number", (graph,), {}) is True
    unequal, negative, text = (networkx.Graph([(0, 1, {"weight": w}), (1, 2)]) for w in (2, -2, "far"))
    weight = {"weight": 1}
    with pytest.raises(NotImplementedError, match="weights, and these differ"):
        dispatch.pagerank(convert_from_nx(unequal, edge_attrs=weight))
    with pytest.raises(NotImplementedError, match="0 or more"):
        dispatch.dijkstra_path(convert_from_nx(negative, edge_attrs=weight), 0, 1)
    with pytest.raises(NotImplementedError, match="cannot take this graph"):
        convert_from_nx(text, edge_attrs=weight)
    with networkx.config.backend_priority(algos=["tandem"]):  # then NetworkX does it
        assert networkx.dijkstra_path_length(negative, 0, 0) == 0
        assert networkx.pagerank(unequal) == networkx.pagerank(unequal, backend="networkx")
    with pytest.raises(networkx.PowerIterationFailedConvergence):
        networkx.pagerank(networkx.star_graph(5), max_iter=1, backend="tandem")


def test_when_it_is_used_by_itself() -> None:
    small, large = networkx.path_graph(400), networkx.path_graph(25_000)
    name = "single_source_dijkstra_path_length"
    assert "pays from 20000 on" in str(dispatch.should_run(name, (small, 0), {}))
    assert "pays from 1000000 on" in str(dispatch.should_run("is_connected", (large,), {}))
    assert dispatch.should_run(name, (large, 0), {}) is True
    assert "one pair" in str(dispatch.should_run("has_path", (large, 0, 1), {}))
    with networkx.config.backend_priority(algos=["tandem"]):
        assert networkx.single_source_dijkstra_path_length(large, 0)[24_999] == 24_999
    kept = large.__networkx_cache__["backends"]["tandem"]
    assert kept
    assert dispatch.should_run("has_path", (large, 0, 1), {}) is True
    before = {id(graph) for graph in kept.values()}
    networkx.single_source_dijkstra_path_length(large, 1, backend="tandem")
    assert {id(graph) for graph in kept.values()} == before  # converted once
    large.add_edge(0, 24_999)
    assert networkx.single_source_dijkstra_path_length(large, 0, backend="tandem")[24_999] == 1


def test_graphs_go_there_and_back() -> None:
    for graph in (sample(False), sample(True)):
        back = convert_to_nx(convert_from_nx(graph, edge_attrs={"length": 1}))
        assert set(back) == set(graph)
        ends = {(u, v): data["weight"] for u, v, data in back.edges(data=True)}
        for u, v, data in graph.edges(data=True):
            assert data["length"] in (ends.get((u, v)), None if graph.is_directed() else ends.get((v, u)))
    assert convert_to_nx("anything") == "anything"


def test_a_graph_of_tandem_is_taken_as_it_is() -> None:
    graph = hybrid.generate("grid", rows=3, cols=3)
    assert networkx.single_source_shortest_path_length(graph, 0)[8] == 4
    assert networkx.is_connected(graph)


def test_keys_that_equal_integers_but_are_none() -> None:
    graph = networkx.Graph()
    graph.add_nodes_from([0, 1, 2])
    graph.add_edge(0, 1.0)
    graph.add_edge(np.int64(1), 2)
    assert networkx.single_source_shortest_path_length(graph, 0, backend="tandem") == {0: 0, 1: 1, 2: 2}
