"""Whatever the graph: weak and strong components equal the naive reference, and the check knows right from wrong."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.components import strong as strong_driver
from cpu_engine.components import weak as weak_driver
from cpu_engine.components.check import check_components, check_strong_components
from cpu_engine.components.strong import strong_components
from cpu_engine.components.weak import ComponentsResult, components
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from tests.naive import components as naive

Pairs = list[tuple[int, int]]

pairs_of_edges = st.integers(1, 30).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=50)
)
rules = st.sampled_from(["keep", "drop"])
some = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def built(pairs: Pairs, directed: bool, loops: str = "keep", duplicates: str = "keep") -> Graph:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    edges = EdgeList(ends[:, 0].copy(), ends[:, 1].copy())
    return build_graph(edges, directed=directed, self_loops=loops, duplicates=duplicates)


def internal_pairs(graph: Graph) -> Pairs:
    rows = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    return list(zip(rows.tolist(), graph.out_targets.tolist(), strict=True))


def assert_exact(graph: Graph, found: ComponentsResult, expected: dict[int, int]) -> None:
    assert found.label.tolist() == [expected[v] for v in range(graph.n)]
    assert found.label.dtype == np.int32
    assert found.count == len(set(expected.values()))


@pytest.mark.jitless
@given(
    pairs=pairs_of_edges, directed=st.booleans(), loops=rules, duplicates=rules, large=st.sampled_from([0.0, 0.5, 2.0])
)
@some
def test_weak_components(pairs: Pairs, directed: bool, loops: str, duplicates: str, large: float) -> None:
    """However many neighbours are linked before the largest tree is left alone."""
    graph = built(pairs, directed, loops, duplicates)
    with mock.patch.object(weak_driver, "LARGE", large):
        found = components(graph)
    assert_exact(graph, found, naive.weak(list(range(graph.n)), internal_pairs(graph)))
    assert check_components(graph, found.label).holds


@pytest.mark.jitless
@given(pairs=pairs_of_edges, directed=st.booleans(), loops=rules, pivot_first=st.booleans())
@some
def test_strong_components(pairs: Pairs, directed: bool, loops: str, pivot_first: bool) -> None:
    graph = built(pairs, directed, loops)
    with mock.patch.object(strong_driver, "MIN_ARCS", 1 if pivot_first else 1 << 16):
        found = strong_components(graph)
    assert_exact(graph, found, naive.strong(list(range(graph.n)), internal_pairs(graph)))
    assert check_strong_components(graph, found.label).holds


@pytest.mark.jitless
@given(pairs=pairs_of_edges, directed=st.booleans(), data=st.data())
@some
def test_the_check_accepts_nothing_else(pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    """Any other labels are refused: some are changed, or two components are made one."""
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    for find, check in ((components, check_components), (strong_components, check_strong_components)):
        right = find(graph).label
        wrong = right.copy()
        if data.draw(st.booleans(), label="merge"):
            one, other = (right[data.draw(st.integers(0, graph.n - 1))] for _ in range(2))
            wrong[(right == one) | (right == other)] = min(one, other)
        else:
            for _ in range(data.draw(st.integers(1, 3))):
                wrong[data.draw(st.integers(0, graph.n - 1))] = data.draw(st.integers(-1, graph.n + 1))
        verdict = check(graph, wrong)
        assert verdict.holds == np.array_equal(wrong, right)
        assert ("vertex" in verdict.explain(graph)) != verdict.holds
