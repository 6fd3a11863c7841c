"""NetworkX's dicts as rows: compiled code reads what Python reads, and leaves to it what it cannot."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

networkx = pytest.importorskip("networkx")

import numba  # noqa: E402

import hybrid  # noqa: E402
from cpu_engine.errors import InputError  # noqa: E402
from cpu_engine.graph.kernels import adjacency as kernels  # noqa: E402
from hybrid.api import adjacency  # noqa: E402
from hybrid.errors import ConfigError  # noqa: E402
from hybrid.networkx_backend.conversion import convert_from_nx  # noqa: E402

compiled = pytest.mark.skipif(bool(getattr(numba.config, "DISABLE_JIT", False)), reason="needs the JIT")
NAMES: dict[str, Any] = {
    "in order": int,
    "scattered": lambda i: (i * 7919) % 10_007,
    "negative": lambda i: i - 5,
    "large": lambda i: 2**40 + i,
    "beyond 64 bits": lambda i: 2**70 + i,
    "texts": "node {}".format,
    "reals": lambda i: i + 0.5,
    "tuples": lambda i: (i // 4, f"x{i % 4}"),
    "deep tuples": lambda i: (i, (i, 1)),
    "mixed": lambda i: i if i % 2 else str(i),
    "objects": lambda i: frozenset([i]),
    "numpy's": np.int64,
    "booleans": lambda i: bool(i) if i < 2 else i,
}
READ_BY_PYTHON = {"large", "deep tuples", "objects", "numpy's", "booleans", "negative"}  # -1 and -2 hash alike


def random_graph(kind: Any, name: Any, seed: int) -> Any:
    draw, graph = np.random.default_rng(seed), kind()
    graph.add_nodes_from(name(i) for i in draw.permutation(40).tolist())
    graph.add_edges_from((name(u), name(v)) for u, v in draw.integers(0, 40, (90, 2)).tolist())
    return graph


def named_rows(rows: adjacency.Rows) -> list[list[Any]]:
    called = (lambda i: i) if rows.nodes is None else rows.nodes.__getitem__
    begin = rows.offsets.tolist()
    return [
        [called(own), *map(called, rows.target[begin[r] : begin[r + 1]].tolist())]
        for r, own in enumerate(rows.own.tolist())
    ]


@compiled
@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph, networkx.MultiGraph])
@pytest.mark.parametrize("names", NAMES)
def test_both_ways_read_the_same(names: str, kind: Any) -> None:
    graph = random_graph(kind, NAMES[names], seed=1)
    wanted = [[node, *neighbours] for node, neighbours in graph._adj.items()]
    by_python, by_kernels = adjacency._interpreted(graph._adj), adjacency._compiled(graph._adj)
    at_once = adjacency._compiled_at_once(graph._adj)
    assert named_rows(by_python) == wanted
    assert (at_once is None) == (by_kernels is None)
    assert at_once is None or named_rows(at_once) == wanted
    assert (by_kernels is None) == (names in READ_BY_PYTHON)
    if by_kernels is not None:
        assert named_rows(by_kernels) == wanted
        assert by_kernels.dense == by_python.dense
        if by_kernels.numbers is not None:
            assert by_kernels.nodes is not None
            assert [by_kernels.numbers[node] for node in by_kernels.nodes] == list(range(40))
            for absent in ("nobody", ("nobody", 1), 10**6):
                with pytest.raises(KeyError):
                    by_kernels.numbers[absent]


@compiled
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1), st.booleans())
def test_half_of_the_arcs_is_the_graph(pairs: list[tuple[int, int]], text: bool) -> None:
    graph = networkx.Graph([(str(u), str(v)) for u, v in pairs] if text else pairs)
    for rows in (adjacency._compiled(graph._adj), adjacency._interpreted(graph._adj)):
        assert rows is not None
        source, target = rows.half()
        assert (source <= target).all()
        ends = zip(source.tolist(), target.tolist(), strict=True)
        called = (lambda i: i) if rows.nodes is None else rows.nodes.__getitem__
        assert {frozenset((called(u), called(v))) for u, v in ends} == {frozenset(edge) for edge in graph.edges}
        assert source.size == graph.number_of_edges()


@compiled
def test_large_graphs_are_read_by_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjacency, "_interpreted", lambda _: pytest.fail("read by Python"))
    for name in (int, str, lambda i: (i, i)):
        pairs = np.random.default_rng(2).integers(0, 3000, (9000, 2)).tolist()
        graph = networkx.Graph([(name(u), name(v)) for u, v in pairs])
        root = next(iter(graph))
        wanted = networkx.single_source_shortest_path_length(graph, root, backend="networkx")
        found = hybrid.bfs(convert_from_nx(graph), root).to_dict()
        assert found == wanted


@compiled
@pytest.mark.parametrize("name", [int, str])
def test_beside_other_threads_rows_are_read_at_once(name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = networkx.Graph([(name(i), name(i * 7 % 3000)) for i in range(3000)])
    monkeypatch.setattr(adjacency, "_compiled", lambda _: pytest.fail("read without the interpreter's lock"))
    monkeypatch.setattr(adjacency, "_interpreted", lambda _: pytest.fail("read by Python"))
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        rows = adjacency.rows_of(graph._adj)
    finally:
        done.set()
        other.join()
    assert named_rows(rows) == [[node, *neighbours] for node, neighbours in graph._adj.items()]


@compiled
def test_a_graph_that_changed_meanwhile_is_not_read_at_once() -> None:
    graph, kinds = networkx.path_graph(9), np.array([id(int), id(float), id(str), id(tuple)])
    nodes = list(graph)
    node, mark, offsets = np.array([id(one) for one in nodes]), np.empty(9, np.int64), np.zeros(10, np.int64)
    graph.remove_node(3)
    for late in ((), (3,), (9,)):  # fewer, the same in another order, more
        graph.add_nodes_from(late)
        read, _ = kernels.read_at_once_step(
            id(graph._adj), node, id(dict), kinds, True, mark, offsets, np.empty(0, np.int64), np.empty(0, np.int32)
        )
        assert not read


@compiled
def test_not_a_number_is_found_as_itself() -> None:
    nan = float("nan")
    graph = networkx.Graph([(nan, 1), (1, "a")])
    numbers = adjacency._compiled(graph._adj).numbers  # type: ignore[union-attr]
    assert numbers is not None
    assert numbers[nan] == 0
    with pytest.raises(KeyError):
        numbers[float("nan")]


@compiled
def test_a_one_sided_edge_is_refused() -> None:
    graph = networkx.cycle_graph(3000)
    del graph._adj[7][8]
    with pytest.raises(InputError, match="one of its ends only"):
        adjacency.rows_of(graph._adj).half()
    del graph._adj[1][0]  # as many up as down, but not the same
    graph._adj[8].pop(9)
    with pytest.raises(InputError, match="one of its ends only"):
        adjacency.rows_of(graph._adj).half()
    with pytest.raises(NotImplementedError, match="cannot take this graph"):
        convert_from_nx(graph)


@compiled
def test_rows_that_are_no_dicts_and_neighbours_that_are_no_nodes() -> None:
    graph = networkx.path_graph(10)
    graph._adj[3] = networkx.classes.coreviews.AtlasView(graph._adj[3])
    assert adjacency._compiled(graph._adj) is None
    texts = networkx.relabel_nodes(networkx.path_graph(10), str)
    del texts._adj["4"]
    assert adjacency._compiled(texts._adj) is None


@pytest.mark.jitless
def test_small_graphs_are_read_by_python() -> None:
    graph = random_graph(networkx.Graph, str, seed=4)
    rows = adjacency.rows_of(graph._adj)
    assert named_rows(rows) == [[node, *neighbours] for node, neighbours in graph._adj.items()]
    source, _ = rows.half()
    assert source.size == graph.number_of_edges()


@pytest.mark.heavy
@compiled
def test_the_benchmark_measures_every_way_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    import argparse

    from benchmarks.options import add_benchmarks
    from benchmarks.suites import networkx_backend

    monkeypatch.setattr(networkx_backend, "_compile", lambda *_: None)
    parser = argparse.ArgumentParser()
    add_benchmarks(parser)
    options = parser.parse_args(["networkx", "--nodes", "40", "--edges", "90", "--rounds", "1"])
    report = networkx_backend.execute(options)
    assert {row["way"] for row in report.data["ways"]} == set(networkx_backend.ways(networkx))
    assert "Tandem, again" in report.lines[1]


def test_the_benchmark_refuses_a_way_that_it_does_not_know() -> None:
    import argparse

    from benchmarks.options import add_benchmarks
    from benchmarks.suites import networkx_backend

    parser = argparse.ArgumentParser()
    add_benchmarks(parser)
    with pytest.raises(ConfigError, match="no such way"):
        networkx_backend.execute(parser.parse_args(["networkx", "--only", "gnm"]))
