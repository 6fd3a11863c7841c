"""Whatever the graph, its weights and the seed: labels are consistent and the modularity is the definition's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.communities.check_modularity import check_modularity
from cpu_engine.communities.louvain import louvain
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from tests.naive.louvain import modularity

vertices = st.integers(0, 6) | st.integers(0, 40)
weights = st.integers(0, 9) | st.floats(0.001, 8)
edge_lists = st.lists(st.tuples(vertices, vertices, weights), max_size=70)


@pytest.mark.jitless
@given(
    edges=edge_lists,
    weighted=st.booleans(),
    directed=st.booleans(),
    resolution=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    seed=st.integers(0, 5),
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_consistent_and_as_defined(
    edges: list[tuple[int, int, float]], weighted: bool, directed: bool, resolution: float, seed: int
) -> None:
    src, dst = (np.array([edge[i] for edge in edges], np.int64) for i in (0, 1))
    weight = np.array([edge[2] for edge in edges], np.float64) if weighted else None
    graph = build_graph(EdgeList(src, dst, weight), directed=directed, self_loops="keep", duplicates="keep")
    found = louvain(graph, resolution=resolution, seed=seed)
    check = check_modularity(graph, found.label, found.count, found.modularity, resolution=resolution)
    assert check.holds, check.explain(graph)
    user = graph.user_ids[graph.user_position]
    label = dict(zip(user.tolist(), user[found.label].tolist(), strict=True))
    plain = [(u, v, w if weighted else 1) for u, v, w in edges]
    assert found.modularity == pytest.approx(modularity(plain, label, resolution), abs=1e-9)
    alone = modularity(plain, {v: v for v in label}, resolution)
    assert found.modularity >= alone - 1e-9
    again = louvain(graph, resolution=resolution, seed=seed)
    assert np.array_equal(again.label, found.label)
    assert again.modularity == found.modularity
