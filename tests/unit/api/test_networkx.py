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
from cpu_engine.pagerank.check_weighted import check_pagerank_weighted  # noqa: E402
from cpu_engine.pagerank.weighted import pagerank_weighted  # noqa: E402
from cpu_engine.triangles.check_clustering_weighted import check_clustering_weighted  # noqa: E402
from cpu_engine.triangles.clustering_weighted import clustering_weighted  # noqa: E402
from hybrid.networkx_backend import dispatch, info  # noqa: E402
from hybrid.networkx_backend.conversion import convert_from_nx, convert_to_nx  # noqa: E402

OF_NETWORKX = {
    "paths": ["networkx.algorithms.shortest_paths", "networkx.algorithms.traversal.tests.test_bfs"],
    "scores": [
        "networkx.algorithms.link_analysis",
        *(
            f"networkx.algorithms.centrality.tests.test_{n}_centrality"
            for n in ("betweenness", "closeness", "harmonic")
        ),
        *(f"networkx.algorithms.tests.test_{n}" for n in ("cluster", "core")),
    ],
    "groups": [
        "networkx.algorithms.components",
        *(f"networkx.algorithms.tests.test_{n}" for n in ("dag", "distance_measures")),
    ],
}


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


@pytest.mark.heavy
@pytest.mark.parametrize("about", OF_NETWORKX)
def test_networkx_tests_pass(tmp_path: Path, about: str) -> None:
    env = {**os.environ, "NETWORKX_TEST_BACKEND": "tandem", "NETWORKX_FALLBACK_TO_NX": "True"}
    fewer = ["-k", "not use_bounds_on_off_consistency"]  # 500 tests of the same, for which there is no time
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *fewer, "--pyargs", *OF_NETWORKX[about]]
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
@pytest.mark.parametrize("weight", [None, "length"])
def test_ranks_and_clustering_take_weights_and_direction(directed: bool, weight: str | None) -> None:
    graph = sample(directed)
    graph.add_edge(3, 3, length=2)
    some = {3: 1, 7: 2.5, "alone": 0.5}
    for options in ({}, {"personalization": some}, {"dangling": some}, {"nstart": some}, {"alpha": 0.5}):
        asked = {"weight": weight, "tol": 1e-10, "max_iter": 500, **options}
        ours, theirs = (networkx.pagerank(graph, backend=b, **asked) for b in ("tandem", "networkx"))
        assert ours == pytest.approx(theirs, abs=1e-9)
    for nodes in (None, 3, [3, 4, "nobody"]):
        ours, theirs = (networkx.clustering(graph, nodes, weight, backend=b) for b in ("tandem", "networkx"))
        assert ours == pytest.approx(theirs, abs=1e-12)
    ours, theirs = (networkx.average_clustering(graph, weight=weight, backend=b) for b in ("tandem", "networkx"))
    assert ours == pytest.approx(theirs)


def test_their_checks_find_what_is_wrong() -> None:
    rows = convert_from_nx(sample(True), edge_attrs={"length": 1}).rows
    even = np.full(rows.user_ids.size, 1 / rows.user_ids.size)
    found = pagerank_weighted(rows, even, even, even, tolerance=1e-9)
    asked = {"damping": 0.85, "tolerance": 1e-9}
    assert check_pagerank_weighted(rows, found.rank, even, even, **asked).holds
    for wrong in (even, 2 * found.rank, -found.rank, np.roll(found.rank, 1)):
        checked = check_pagerank_weighted(rows, wrong, even, even, **asked)
        assert not checked.holds
        assert "ranks" in checked.explain(rows)
    score = clustering_weighted(rows).coefficient
    assert check_clustering_weighted(rows, score).holds
    checked = check_clustering_weighted(rows, score + 0.01)
    assert not checked.holds
    assert "for one" in checked.explain(rows)


@pytest.mark.parametrize("directed", [False, True])
def test_distances_of_all_are_those_of_networkx(directed: bool) -> None:
    graph = networkx.gnp_random_graph(90, 0.12, seed=5, directed=directed)
    for name in ("eccentricity", "diameter", "radius", "center", "periphery", "average_shortest_path_length"):
        function = getattr(networkx, name)
        assert function(graph, backend="tandem") == function(graph, backend="networkx"), name
    assert networkx.eccentricity(graph, 3, backend="tandem") == networkx.eccentricity(graph, 3, backend="networkx")
    graph.add_node("alone")
    weight = np.random.default_rng(1).integers(1, 9, graph.number_of_edges()).tolist()
    networkx.set_edge_attributes(graph, dict(zip(graph.edges, weight, strict=True)), "weight")
    for name, options in (
        ("all_pairs_shortest_path_length", {}), ("all_pairs_shortest_path_length", {"cutoff": 2}),
        ("all_pairs_dijkstra_path_length", {"cutoff": 7}),
    ):  # fmt: skip
        ours, theirs = (dict(getattr(networkx, name)(graph, backend=b, **options)) for b in ("tandem", "networkx"))
        assert ours == theirs
    for name in ("eccentricity", "average_shortest_path_length"):
        with pytest.raises(networkx.NetworkXError, match="connected"):
            getattr(networkx, name)(graph, backend="tandem")
    assert networkx.descendants_at_distance(graph, 0, 2, backend="tandem") == networkx.descendants_at_distance(
        graph, 0, 2, backend="networkx"
    )


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
        ("eccentricity", {"weight": "w"}, "weight is given"),
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
    negative, text = (networkx.Graph([(0, 1, {"weight": w}), (1, 2)]) for w in (-2, "far"))
    weight = {"weight": 1}
    with pytest.raises(NotImplementedError, match="0 or more"):
        dispatch.pagerank(convert_from_nx(negative, edge_attrs=weight))
    with pytest.raises(NotImplementedError, match="0 or more"):
        dispatch.dijkstra_path(convert_from_nx(negative, edge_attrs=weight), 0, 1)
    with pytest.raises(NotImplementedError, match="cannot take this graph"):
        convert_from_nx(text, edge_attrs=weight)
    with networkx.config.backend_priority(algos=["tandem"]):  # then NetworkX does it
        assert networkx.dijkstra_path_length(negative, 0, 0) == 0
        assert networkx.pagerank(negative) == networkx.pagerank(negative, backend="networkx")
    with pytest.raises(networkx.PowerIterationFailedConvergence):
        networkx.pagerank(networkx.star_graph(5), max_iter=1, backend="tandem")


def test_when_it_is_used_by_itself() -> None:
    small, large = networkx.path_graph(400), networkx.path_graph(25_000)
    name = "single_source_dijkstra_path_length"
    assert "pays from 20000 on" in str(dispatch.should_run(name, (small, 0), {}))
    assert "pays from 1000000 on" in str(dispatch.should_run("is_connected", (large,), {}))
    assert dispatch.should_run(name, (large, 0), {}) is True
    assert "one pair" in str(dispatch.should_run("has_path", (large, 0, 1), {}))
    dense = networkx.complete_graph(460)
    assert "dense" in str(dispatch.should_run("single_source_shortest_path_length", (dense, 0), {}))
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


@pytest.mark.parametrize("directed", [False, True])
def test_an_earlier_conversion_with_weights_does_not_count_where_none_are_asked_for(directed: bool) -> None:
    graph = sample(directed)
    for call in (
        lambda weight, b: networkx.single_source_dijkstra_path_length(graph, 0, weight=weight, backend=b),
        lambda weight, b: networkx.bellman_ford_path_length(graph, 0, 7, weight=weight, backend=b),
        lambda weight, b: dict(networkx.all_pairs_dijkstra_path_length(graph, weight=weight, backend=b)),
        lambda weight, b: networkx.bidirectional_dijkstra(graph, 0, 7, weight=weight, backend=b)[0],
    ):
        for weight in ("length", None):
            assert call(weight, "tandem") == call(weight, "networkx")
    for scores in (networkx.clustering, networkx.pagerank):
        for weight in ("length", None):
            wanted = scores(graph, weight=weight, backend="networkx")
            assert scores(graph, weight=weight, backend="tandem") == pytest.approx(wanted, abs=1e-4)
    shares = {0: 1.0, 5: 3.0}
    wanted = networkx.pagerank(graph, personalization=shares, weight=None, backend="networkx")
    found = networkx.pagerank(graph, personalization=shares, weight=None, backend="tandem")
    assert found == pytest.approx(wanted, abs=1e-4)


def test_corners_that_networkx_takes() -> None:
    graph = networkx.path_graph(4)
    for name in ("single_source_shortest_path_length", "single_source_shortest_path", "single_source_dijkstra"):
        function = getattr(networkx, name)
        assert function(graph, 1, cutoff=-1, backend="tandem") == function(graph, 1, cutoff=-1, backend="networkx")
    assert networkx.harmonic_centrality(graph, nbunch=[], backend="tandem") == {}
    with pytest.raises(networkx.NodeNotFound):
        networkx.closeness_centrality(graph, u="nobody", backend="tandem")


def test_a_refused_call_tells_why_where_the_docs_say(caplog: pytest.LogCaptureFixture) -> None:
    graph = networkx.path_graph(12)
    with caplog.at_level("DEBUG", "networkx"), pytest.raises(NotImplementedError):
        networkx.betweenness_centrality(graph, k=10, backend="tandem")
    assert "because: k is given, and the sample depends on NetworkX's order of nodes" in caplog.text
    networkx.set_edge_attributes(graph, -1, "weight")
    with pytest.raises(NotImplementedError) as caught:
        networkx.single_source_dijkstra(graph, 0, backend="tandem")
    reasons = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert any("weights" in str(reason) for reason in reasons)
