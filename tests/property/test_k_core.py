"""Whatever the graph, its directions, loops and parallel edges: core numbers equal the naive reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.kcore.check import check_k_core
from cpu_engine.kcore.engine import k_core
from tests.naive.k_core import core_numbers

Pairs = list[tuple[int, int]]

pairs_of_edges = st.integers(1, 16).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=80)
)
rules = st.sampled_from(["keep", "drop"])
some = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def built(pairs: Pairs, directed: bool, loops: str, duplicates: str) -> Graph:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    edges = EdgeList(ends[:, 0].copy(), ends[:, 1].copy())
    return build_graph(edges, directed=directed, self_loops=loops, duplicates=duplicates)


@pytest.mark.jitless
@given(pairs=pairs_of_edges, directed=st.booleans(), loops=rules, duplicates=rules, data=st.data())
@some
def test_core_numbers(pairs: Pairs, directed: bool, loops: str, duplicates: str, data: st.DataObject) -> None:
    graph = built(pairs, directed, loops, duplicates)
    found = k_core(graph)
    user = graph.user_ids[graph.user_position].tolist()
    expected = core_numbers(user, [(u, v) for u, v in pairs if u in user and v in user])
    assert found.core.tolist() == [expected[v] for v in user]
    assert found.core.dtype == np.int32
    assert found.largest == max(expected.values(), default=0)
    verdict = check_k_core(graph, found.core)
    assert verdict.holds, verdict.explain(graph)
    if graph.n:
        wrong = found.core.copy()
        for _ in range(data.draw(st.integers(1, 3), label="changes")):
            wrong[data.draw(st.integers(0, graph.n - 1))] = data.draw(st.integers(-1, 8))
        verdict = check_k_core(graph, wrong)
        assert verdict.holds == np.array_equal(wrong, found.core)
        assert ("vertex" in verdict.explain(graph)) != verdict.holds
