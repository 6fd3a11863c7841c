"""Whatever the graph, the roots and the way they are done: centralities equal the naive ones."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.centrality import betweenness as betweenness_module
from cpu_engine.centrality import closeness as closeness_module
from cpu_engine.centrality.betweenness import betweenness
from cpu_engine.centrality.check import check_betweenness, check_closeness
from cpu_engine.centrality.closeness import closeness
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from tests import naive
from tests.naive import centrality

Pairs = list[tuple[int, int]]
pair_lists = st.integers(2, 24).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=60)
)
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def built(pairs: Pairs, directed: bool, loops: bool) -> tuple[Graph, Pairs]:
    """The graph, and its edges once each."""
    src, dst = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    edges = EdgeList(src, dst, id_range=(0, 26))
    simple = {(u, v) if directed else (min(u, v), max(u, v)) for u, v in pairs if loops or u != v}
    return build_graph(edges, directed=directed, self_loops="keep" if loops else "drop"), sorted(simple)


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", ["together", "each"])
@given(pairs=pair_lists, directed=st.booleans(), loops=st.booleans(), push=st.sampled_from([0, 2, 999]), data=st.data())
@quick
def test_betweenness(strategy: str, pairs: Pairs, directed: bool, loops: bool, push: int, data: st.DataObject) -> None:
    graph, simple = built(pairs, directed, loops)
    user = graph.user_ids[graph.user_position].tolist()
    roots = data.draw(st.none() | st.lists(st.integers(0, graph.n - 1), max_size=20)) if graph.n else None
    given_roots = None if roots is None else np.array(roots, np.int64)
    with mock.patch.object(betweenness_module, "PUSH", push):
        found = betweenness(graph, roots=given_roots, normalised=None, strategy=strategy)
    right = centrality.betweenness(simple, directed, [user[r] for r in (range(graph.n) if roots is None else roots)])
    expected = [float(right.get(v, 0)) for v in user]
    assert found.score.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert check_betweenness(graph, found.score, roots=given_roots).holds
    everyone = set(range(graph.n) if roots is None else roots)
    assert found.searches <= len(everyone)


@pytest.mark.jitless
@given(pairs=pair_lists, directed=st.booleans(), loops=st.booleans(), deep=st.sampled_from([0, 1024]), data=st.data())
@quick
def test_closeness(pairs: Pairs, directed: bool, loops: bool, deep: int, data: st.DataObject) -> None:
    graph, simple = built(pairs, directed, loops)
    user = graph.user_ids[graph.user_position].tolist()
    roots = data.draw(st.none() | st.lists(st.integers(0, graph.n - 1), max_size=70)) if graph.n else None
    given_roots = None if roots is None else np.array(roots, np.int64)
    ends = [user[r] for r in (range(graph.n) if roots is None else roots)]
    improved = data.draw(st.booleans())
    with mock.patch.object(closeness_module, "DEEP", deep):
        found = closeness(graph, roots=given_roots, improved=improved)
        inverse = closeness(graph, roots=given_roots, harmonic=True)
    right = {v: centrality.closeness(simple, directed, v, 26, improved) for v in set(ends)}
    assert found.score.tolist() == pytest.approx([float(right[v]) for v in ends], rel=1e-12)
    right = {v: centrality.harmonic(simple, directed, v) for v in set(ends)}
    assert inverse.score.tolist() == pytest.approx([float(right[v]) for v in ends], rel=1e-12)
    backwards = [(v, u) for u, v in simple]
    assert found.reached.tolist() == [len(naive.bfs_levels(backwards, directed, v)) for v in ends]
    assert check_closeness(graph, found.roots, found.score, improved=improved, sample=None).holds
    assert check_closeness(graph, found.roots, inverse.score, harmonic=True, sample=None).holds


@given(pairs=pair_lists, directed=st.booleans(), change=st.sampled_from([-0.5, 1e-6, 2.0]), data=st.data())
@quick
def test_the_checks_find_a_change(pairs: Pairs, directed: bool, change: float, data: st.DataObject) -> None:
    graph, _ = built(pairs, directed, False)
    if graph.n == 0:
        return
    v = data.draw(st.integers(0, graph.n - 1))
    changed = betweenness(graph, normalised=False).score
    changed[v] += change
    assert not check_betweenness(graph, changed, scale=1.0 if directed else 0.5).holds
    found = closeness(graph)
    found.score[v] += change
    assert not check_closeness(graph, found.roots, found.score, sample=None).holds
