"""Clustering coefficients equal LDBC's expected outputs, and scipy's products of matrices on real graphs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.graph import Graph
from cpu_engine.triangles.check import check_clustering
from cpu_engine.triangles.check_clustering_weighted import check_clustering_weighted
from cpu_engine.triangles.clustering import local_clustering
from cpu_engine.triangles.clustering_weighted import clustering_weighted

needs_compiler = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too long without the compiler")


def ldbc_cases(shared: Path) -> list[tuple[Path, Path, bool]]:
    """(graph, expected output, directed) of every LDBC graph with an LCC output."""
    folder = shared / "ldbc-validation"
    cases = [
        (expected.with_name(expected.name.removesuffix("-LCC") + ".properties"), expected)
        for expected in sorted(folder.glob("example-data-sets/*-LCC"))
    ]
    cases += [(path.with_name(path.name.replace("output", "input")), path)
              for path in sorted(folder.glob("validation-graphs/lcc/*-output"))]  # fmt: skip
    return [(graph, path, not ("undir" in graph.name or "undirected" in graph.name)) for graph, path in cases]


@pytest.mark.jitless
def test_ldbc_outputs(shared_data: Path) -> None:
    cases = ldbc_cases(shared_data)
    assert len(cases) >= 6
    for path, output, directed in cases:
        graph = build_graph(read_graph(path), directed=directed)
        found = local_clustering(graph)
        values = np.zeros(graph.user_ids.size)
        values[graph.user_position] = found.coefficient
        expected = {int(line.split()[0]): float(line.split()[1]) for line in output.read_text().splitlines() if line}
        assert dict(zip(graph.user_ids.tolist(), values.tolist(), strict=True)) == pytest.approx(expected, rel=1e-11)
        assert found.average == pytest.approx(sum(expected.values()) / len(expected))
        assert check_clustering(graph, found.coefficient).holds


def by_matrices(graph: Graph) -> np.ndarray:
    """diag(S A S) / (d (d - 1)) with S the symmetric 0/1 matrix of A."""
    ones = np.ones(graph.m, np.int64)
    arcs = csr_matrix((ones, graph.out_targets, graph.out_offsets), (graph.n, graph.n))
    either = ((arcs + arcs.T) > 0).astype(np.int64)
    degree = np.asarray(either.sum(axis=1)).ravel()
    closed = np.asarray((either @ arcs).multiply(either).sum(axis=1)).ravel()
    return closed / np.maximum(degree * (degree - 1), 1)


@needs_compiler
@pytest.mark.parametrize("directed", [False, True])
def test_wiki_vote_equals_scipy(directed: bool, shared_data: Path) -> None:
    graph = build_graph(read_graph(shared_data / "wiki-Vote/wiki-Vote.txt"), directed=directed)
    found = local_clustering(graph)
    assert np.allclose(found.coefficient, by_matrices(graph), rtol=1e-14, atol=0)
    check = check_clustering(graph, found.coefficient)
    assert check.holds, check.explain(graph)


@pytest.mark.jitless
def test_check_names_what_is_wrong() -> None:
    src, dst = np.array([5, 6, 7, 7]), np.array([6, 7, 5, 8])
    graph = build_graph(EdgeList(src, dst), directed=False)
    found = local_clustering(graph).coefficient
    assert check_clustering(graph, found).holds
    for v in range(graph.n):
        changed = found.copy()
        changed[v] += 0.01
        check = check_clustering(graph, changed)
        assert f"vertex {graph.user_ids[graph.user_position[v]]} for one" in check.explain(graph)
    assert "outside" in check_clustering(graph, found + 1).explain(graph)
    assert "outside" in check_clustering(graph, np.full(graph.n, np.nan)).explain(graph)
    assert "coefficients for 4" in check_clustering(graph, found[:2]).explain(graph)


def test_empty_graph() -> None:
    none = np.empty(0, np.int64)
    found = local_clustering(build_graph(EdgeList(none, none), directed=True))
    assert (found.coefficient.size, found.average) == (0, 0.0)


def test_weights_that_are_all_0() -> None:
    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = build_graph(EdgeList(*ends, np.zeros(3)), directed=False)
    found = clustering_weighted(graph)
    assert found.coefficient.tolist() == [0, 0, 0]
    assert check_clustering_weighted(graph, found.coefficient).holds
