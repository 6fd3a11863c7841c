"""Triangles of graphs whose count is known, and of real ones whose count their sources publish."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.triangles.check import check_triangles
from cpu_engine.triangles.engine import choose_hubs, triangles

needs_compiler = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too long without the compiler")


def edges(*pairs: tuple[int, int]) -> EdgeList:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return EdgeList(table[:, 0].copy(), table[:, 1].copy())


@pytest.mark.jitless
@pytest.mark.parametrize("directed", [False, True])
def test_small_graphs(directed: bool) -> None:
    assert triangles(build_graph(edges(), directed=directed)).count == 0
    assert triangles(build_graph(edges((3, 3)), directed=directed)).count == 0
    assert triangles(build_graph(edges((0, 1)), directed=directed)).per_vertex.tolist() == [0, 0]
    two = build_graph(edges((0, 1), (1, 2), (2, 0), (7, 8), (8, 9), (9, 7)), directed=directed)
    assert triangles(two).per_vertex.tolist() == [1] * 6


@pytest.mark.parametrize("size", [3, 63, 64, 65, 130, 200])
def test_complete_graph(size: int) -> None:
    """Around a word's length; each vertex has (n-1)(n-2)/2."""
    pairs = [(u, v) for u in range(size) for v in range(u)]
    found = triangles(build_graph(edges(*pairs), directed=False))
    assert set(found.per_vertex.tolist()) == {(size - 1) * (size - 2) // 2}
    assert found.count == size * (size - 1) * (size - 2) // 6


def test_loops_parallel_edges_and_pairs_count_once() -> None:
    pairs = [(0, 1), (1, 0), (0, 1), (1, 1), (1, 2), (2, 0), (0, 2), (2, 2)]
    for directed in (False, True):
        graph = build_graph(edges(*pairs), directed=directed, self_loops="keep", duplicates="keep")
        found = triangles(graph)
        assert (found.count, found.per_vertex.tolist()) == (1, [1, 1, 1])
        assert check_triangles(graph, 1, found.per_vertex, sample=None).holds


def test_hubs_are_those_whose_bits_pay() -> None:
    assert choose_hubs(np.array([3, 2, 1])) == 3
    assert choose_hubs(np.full(100_000, 4)) == 128
    assert choose_hubs(np.full(100_000, 1)) == 64
    assert choose_hubs(np.full(100_000, 10**6)) == 8192


@pytest.mark.jitless
def test_check_names_what_is_wrong() -> None:
    graph = build_graph(edges((5, 6), (6, 7), (7, 5)), directed=False)
    assert check_triangles(graph, 1, np.array([1, 1, 1])).holds
    assert "3 vertices counted again" in check_triangles(graph, 1, np.array([1, 1, 1])).explain(graph)
    assert "not three for each of 2" in check_triangles(graph, 2, np.array([1, 1, 1])).explain(graph)
    assert "negative" in check_triangles(graph, 1, np.array([-1, 2, 2])).explain(graph)
    assert "degree allows" in check_triangles(graph, 1, np.array([3, 0, 0])).explain(graph)
    assert "vertex 6 for one" in check_triangles(graph, 1, np.array([1, 2, 0])).explain(graph)
    assert "counts for 3 vertices" in check_triangles(graph, 1, np.array([3])).explain(graph)


@needs_compiler
@pytest.mark.parametrize(
    ("name", "count"),
    [  # as SNAP publishes them
        ("wiki-Vote/wiki-Vote.txt", 608_389),
        ("email-Enron/email-Enron.txt.gz", 727_044),
        ("soc-Epinions1/soc-Epinions1.txt.gz", 1_624_481),
        ("amazon0601/amazon0601.el.gz", 3_986_507),
    ],
)
def test_real_graphs(name: str, count: int, shared_data: Path) -> None:
    graph = build_graph(read_graph(shared_data / name))
    found = triangles(graph)
    assert found.count == count
    check = check_triangles(graph, found.count, found.per_vertex)
    assert check.holds, check.explain(graph)
