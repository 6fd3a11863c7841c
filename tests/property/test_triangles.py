"""Whatever the graph - directed, loops and parallel edges kept, any number of hubs: counts equal the naive ones."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.triangles import engine as module
from cpu_engine.triangles.check import check_clustering, check_triangles
from cpu_engine.triangles.clustering import local_clustering
from cpu_engine.triangles.engine import triangles
from tests.naive.triangles import clustering, triangles_at

Pairs = list[tuple[int, int]]
vertices = st.integers(0, 9) | st.integers(0, 90)
pair_lists = st.lists(st.tuples(vertices, vertices), max_size=160)
rules = st.sampled_from(["drop", "keep"])


def built(pairs: Pairs, directed: bool, loops: str = "drop", duplicates: str = "drop") -> Graph:
    src, dst = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    return build_graph(EdgeList(src, dst), directed=directed, self_loops=loops, duplicates=duplicates)


def by_user(graph: Graph, values: np.ndarray) -> dict[int, float]:
    return dict(zip(graph.user_ids[graph.user_position].tolist(), values.tolist(), strict=True))


@pytest.mark.jitless
@given(pairs=pair_lists, directed=st.booleans(), loops=rules, duplicates=rules, most=st.sampled_from([64, 8192]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equal_to_the_naive_counts(pairs: Pairs, directed: bool, loops: str, duplicates: str, most: int) -> None:
    graph = built(pairs, directed, loops, duplicates)
    with mock.patch.multiple(module, MOST_HUBS=most, PRIVATE=70):
        found, coefficients = triangles(graph), local_clustering(graph)
    expected = triangles_at(pairs)
    counts = by_user(graph, found.per_vertex)
    assert counts == {v: expected[v] for v in counts}
    assert not any(count for v, count in expected.items() if v not in counts)
    assert found.count == sum(expected.values()) // 3
    right = clustering(pairs, directed)
    assert by_user(graph, coefficients.coefficient) == {v: pytest.approx(float(right[v]), rel=1e-15) for v in counts}
    assert coefficients.average == pytest.approx(float(sum(right.values())) / max(1, graph.user_ids.size))
    assert check_triangles(graph, found.count, found.per_vertex, sample=None).holds
    assert check_clustering(graph, coefficients.coefficient, sample=None).holds


@given(pairs=pair_lists.filter(len), directed=st.booleans(), data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_check_finds_every_change(pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    found = triangles(graph)
    v = data.draw(st.integers(0, graph.n - 1))
    changed = found.per_vertex.copy()
    changed[v] += data.draw(st.sampled_from([-1, 1, 3]))
    check = check_triangles(graph, found.count, changed, sample=None)
    assert not check.holds
    assert str(int(graph.user_ids[graph.user_position[v]])) in check.explain(graph)


@pytest.mark.parametrize("directed", [False, True])
def test_any_number_of_hubs(directed: bool) -> None:
    """Hubs by bits or all by lists: the same counts, and those of the slow way."""
    edges = kronecker(11, 16, 4)
    graph = build_graph(EdgeList(edges.src, edges.dst), directed=directed)
    results = []
    for most in (64, 320, 8192):
        with mock.patch.multiple(module, MOST_HUBS=most, EDGES_PER_WORD=0, PRIVATE=100):
            results.append((triangles(graph), local_clustering(graph)))
    for found, coefficients in results:
        assert np.array_equal(found.per_vertex, results[0][0].per_vertex)
        assert np.array_equal(coefficients.arcs, results[0][1].arcs)
        assert check_triangles(graph, found.count, found.per_vertex, sample=None).holds
        assert check_clustering(graph, coefficients.coefficient, sample=None).holds
