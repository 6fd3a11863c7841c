"""Whatever the graph and its ids: labels equal the naive ones after any number of rounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.communities.check_labels import check_labels
from cpu_engine.communities.label_propagation import label_propagation
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from tests.naive.labels import propagate

Pairs = list[tuple[int, int]]
vertices = st.integers(0, 12) | st.integers(0, 10**12)
pair_lists = st.lists(st.tuples(vertices, vertices), max_size=120)


def kept(pairs: Pairs, directed: bool, loops: bool, duplicates: bool) -> Pairs:
    """The edges that a graph built by these rules has."""
    left = [(u, v) for u, v in pairs if loops or u != v]
    if duplicates:
        return left
    return list({(u, v) if directed else (min(u, v), max(u, v)) for u, v in left})


@pytest.mark.jitless
@given(
    pairs=pair_lists, directed=st.booleans(), loops=st.booleans(), duplicates=st.booleans(), rounds=st.integers(0, 6)
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equal_to_the_naive_labels(pairs: Pairs, directed: bool, loops: bool, duplicates: bool, rounds: int) -> None:
    src, dst = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    rule = {True: "keep", False: "drop"}
    graph = build_graph(EdgeList(src, dst), directed=directed, self_loops=rule[loops], duplicates=rule[duplicates])
    found = label_propagation(graph, iterations=rounds)
    expected = propagate(kept(pairs, directed, loops, duplicates), directed, rounds)
    assert dict(zip(graph.user_ids[graph.user_position].tolist(), found.label.tolist(), strict=True)) == expected
    assert found.count == len(set(expected.values()))
    assert found.iterations <= rounds
    assert check_labels(graph, found.label, iterations=rounds).holds
