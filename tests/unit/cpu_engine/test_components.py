"""Components against outputs that nobody here wrote, scipy on real graphs, and graphs with a shape."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from cpu_engine.components.check import check_components, check_strong_components
from cpu_engine.components.strong import strong_components
from cpu_engine.components.weak import components
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker, uniform
from cpu_engine.graph.graph import Graph

with_compiler = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="large graphs take minutes without the compiler"
)
REAL = {
    "wiki-Vote/wiki-Vote.txt": True,
    "soc-Epinions1/soc-Epinions1.txt.gz": True,
    "email-Enron/email-Enron.txt.gz": False,
    "luxembourg_osm/luxembourg_osm.mtx.gz": False,
}
LDBC = ("example-directed", "example-undirected", "test-wcc-directed", "test-wcc-undirected")


def smallest_of(numbers: np.ndarray) -> np.ndarray:
    """Each class's smallest vertex, for each vertex."""
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    smallest: np.ndarray = first[inverse]
    return smallest


def expect(graph: Graph, found: np.ndarray, connection: str) -> None:
    matrix = sparse.csr_matrix((np.ones(graph.m, np.int8), graph.out_targets, graph.out_offsets), (graph.n, graph.n))
    _, numbers = connected_components(matrix, directed=True, connection=connection)
    assert np.array_equal(found, smallest_of(numbers))


@pytest.mark.jitless
@pytest.mark.parametrize("name", LDBC)
def test_ldbc_expected_output(name: str, shared_data: Path) -> None:
    """LDBC's labels are some number per component: the same vertices must share one."""
    folder = shared_data / "ldbc-validation" / "example-data-sets"
    graph = build_graph(read_graph(folder / f"{name}.e"))
    lines = [line.split() for line in (folder / f"{name}-WCC").read_text().splitlines()]
    expected = {int(v): int(label) for v, label in lines}
    user = graph.user_ids[graph.user_position].tolist()
    assert sorted(expected) == sorted(user)  # nobody is isolated here
    label = components(graph).label
    pairs = {(int(label[v]), expected[user[v]]) for v in range(graph.n)}
    assert len(pairs) == len(set(expected.values())) == len(set(label.tolist()))


@with_compiler
@pytest.mark.parametrize("name", REAL)
def test_real_graphs(name: str, shared_data: Path) -> None:
    graph = build_graph(read_graph(shared_data / name), directed=REAL[name])
    for find, check, connection in (
        (components, check_components, "weak"),
        (strong_components, check_strong_components, "strong"),
    ):
        found = find(graph)
        expect(graph, found.label, connection)
        assert found.count == np.unique(found.label).size
        assert check(graph, found.label).holds


@with_compiler
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("edges", [kronecker(13, 2, 3), uniform(13, 1, 3), uniform(13, 16, 3), grid(90, 90)])
def test_generated_graphs(edges: EdgeList, directed: bool) -> None:
    graph = build_graph(edges, directed=directed)
    expect(graph, components(graph).label, "weak")
    expect(graph, strong_components(graph).label, "strong")


@with_compiler
@pytest.mark.parametrize("closed", [False, True])
def test_a_path_is_not_too_deep(closed: bool) -> None:
    """A hundred thousand vertices in a row: no recursion, and no path walked again and again."""
    length = 100_000
    end = length if closed else length - 1
    for shuffled in (False, True):
        name = np.random.default_rng(1).permutation(length) if shuffled else np.arange(length)
        edges = EdgeList(name[np.arange(end)], name[(np.arange(end) + 1) % length])
        graph = build_graph(edges, directed=True)
        assert components(graph).count == 1
        strong = strong_components(graph)
        assert strong.count == (1 if closed else length)
        assert check_strong_components(graph, strong.label).holds


@pytest.mark.jitless
@pytest.mark.parametrize("directed", [False, True])
def test_small_shapes(directed: bool) -> None:
    nobody = np.empty(0, np.int64)
    empty = build_graph(EdgeList(nobody, nobody), directed=directed)
    alone = build_graph(EdgeList(np.array([3]), np.array([3])), directed=directed, self_loops="keep")
    pair = build_graph(EdgeList(np.array([0]), np.array([5])), directed=directed)
    for graph, weak, strong in ((empty, 0, 0), (alone, 1, 1), (pair, 1, 2 if directed else 1)):
        assert components(graph).count == weak
        assert strong_components(graph).count == strong
        assert check_components(graph, components(graph).label).holds


@pytest.mark.jitless
def test_what_is_wrong_is_said() -> None:
    """0 -> 1 -> 2 -> 0 and 3 -> 4, by internal ids."""
    graph = build_graph(EdgeList(np.array([0, 1, 2, 3]), np.array([1, 2, 0, 4])), directed=True)
    assert "between" in check_components(graph, np.array([0, 0, 2, 3, 3], np.int32)).explain(graph)
    assert "not connected" in check_components(graph, np.array([0, 0, 0, 0, 0], np.int32)).explain(graph)
    assert "smallest" in check_components(graph, np.array([2, 2, 2, 3, 3], np.int32)).explain(graph)
    assert "cycle" in check_strong_components(graph, np.array([0, 1, 2, 3, 4], np.int32)).explain(graph)
    assert "not connected" in check_strong_components(graph, np.array([0, 0, 0, 3, 3], np.int32)).explain(graph)
    assert "no two" in check_strong_components(graph, np.array([0, 0, 0, 3, 4], np.int32)).explain(graph)
