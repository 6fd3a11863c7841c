"""Whatever the graph: the plain paths, which replace results that failed their check, equal the naive references."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cpu_engine.communities.check_modularity import recompute_modularity
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.repair import engine as plain
from cpu_engine.sssp.check import check_sssp
from cpu_engine.triangles.check_clustering_weighted import check_clustering_weighted
from tests.naive import bfs_levels, centrality, components, is_bfs_tree, k_core, labels, louvain, triangles
from tests.naive import pagerank as ranks
from tests.naive import ranks as over_arcs

some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WEIGHTS = {
    "none": None,
    "zeros": st.sampled_from([0, 0, 0, 1, 5]),
    "whole": st.integers(0, 255),
    "big": st.integers(2**40, 2**52),
    "real": st.floats(0, 100, allow_nan=False).map(lambda one: round(one, 3)),
}


@st.composite
def graphs(draw: st.DrawFn, kinds: tuple[str, ...] = ("none",), keep: bool = True) -> Graph:
    """Loops and duplicates kept or not, vertices without edges, unreachable ones."""
    n = draw(st.integers(1, 16))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=45))
    kind, weight = draw(st.sampled_from(kinds)), None
    if kind != "none":
        drawn = draw(st.lists(WEIGHTS[kind], min_size=len(pairs), max_size=len(pairs)))
        weight = np.array(drawn, np.float64 if kind == "real" else np.int64)
    ends = 3 * np.array(pairs, np.int64)
    rule = st.sampled_from(["keep", "drop"] if keep else ["drop"])
    edges = EdgeList(ends[:, 0].copy(), ends[:, 1].copy(), weight, vertices=3 * np.arange(n + 2))
    return build_graph(edges, directed=draw(st.booleans()), self_loops=draw(rule), duplicates=draw(rule))


def arcs_of(graph: Graph) -> list[tuple[int, int]]:
    rows = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    return list(zip(rows.tolist(), graph.out_targets.tolist(), strict=True))


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    """Each edge once, as the naive references want them."""
    return [(u, v) for u, v in arcs_of(graph) if graph.directed or u <= v]


@pytest.mark.jitless
@given(graph=graphs(), root=st.integers(0, 99))
@some
def test_bfs(graph: Graph, root: int) -> None:
    assume(graph.n > 0)
    root %= graph.n
    level, parent = plain.plain_bfs(graph, root)
    expected = bfs_levels(arcs_of(graph), True, root)
    assert {v: one for v, one in enumerate(level.tolist()) if one >= 0} == expected
    tree = {v: one for v, one in enumerate(parent.tolist()) if one >= 0}
    assert is_bfs_tree(arcs_of(graph), True, root, expected, tree)
    assert level.dtype == parent.dtype == np.int32


@pytest.mark.jitless
@given(graph=graphs(tuple(WEIGHTS)), root=st.integers(0, 99))
@some
def test_sssp(graph: Graph, root: int) -> None:
    assume(graph.n > 0)
    root %= graph.n
    distance, parent = plain.plain_sssp(graph, root)
    weight = [1] * graph.m if graph.weight is None else graph.weight.tolist()
    arcs = [(u, v, w) for (u, v), w in zip(arcs_of(graph), weight, strict=True)]
    expected = over_arcs.shortest_paths(graph.n, arcs, root)
    reached = np.isfinite(distance) if distance.dtype.kind == "f" else distance >= 0
    found = [one if there else None for one, there in zip(distance.tolist(), reached.tolist(), strict=True)]
    assert found == expected
    assert over_arcs.is_shortest_path_tree(arcs, root, expected, parent.tolist())
    assert check_sssp(graph, root, distance, parent).holds


@pytest.mark.jitless
@given(graph=graphs())
@some
def test_components(graph: Graph) -> None:
    vertices, arcs = list(range(graph.n)), arcs_of(graph)
    weak, strong = components.weak(vertices, arcs), components.strong(vertices, arcs)
    assert plain.plain_components(graph).tolist() == [weak[v] for v in vertices]
    assert plain.plain_strong_components(graph).tolist() == [strong[v] for v in vertices]


@pytest.mark.jitless
@given(graph=graphs(), rounds=st.integers(0, 6))
@some
def test_labels(graph: Graph, rounds: int) -> None:
    ids = graph.user_id_of.tolist()
    expected = labels.propagate([(ids[u], ids[v]) for u, v in edges_of(graph)], graph.directed, rounds)
    assert plain.plain_labels(graph, rounds).tolist() == [expected[one] for one in ids]


@pytest.mark.jitless
@given(graph=graphs(tuple(WEIGHTS)), resolution=st.sampled_from([0.5, 1.0, 2.0]))
@some
def test_louvain(graph: Graph, resolution: float) -> None:
    """Named by the smallest vertex, nothing gained by a further move, and about as good as the naive one."""
    label = plain.plain_louvain(graph, resolution)
    assert label.dtype == np.int32
    for name in np.unique(label).tolist():
        assert np.flatnonzero(label == name)[0] == name
    value = recompute_modularity(graph, label, resolution)
    for v in range(graph.n):
        for other in np.unique(label[[u for a, u in arcs_of(graph) if a == v] or [v]]).tolist():
            moved = label.copy()
            moved[v] = other
            if np.unique(label).size == graph.n:  # no level was merged: each single move was tried
                assert recompute_modularity(graph, moved, resolution) <= value + 1e-9
    if resolution == 1.0 and graph.weight is None:
        naive = louvain.louvain([(u, v, 1.0) for u, v in edges_of(graph)])
        assert value >= recompute_modularity(graph, np.array([naive[v] for v in range(graph.n)]), 1.0) - 0.15


@pytest.mark.jitless
@given(graph=graphs())
@some
def test_core_numbers_and_triangles(graph: Graph) -> None:
    vertices, arcs = list(range(graph.n)), arcs_of(graph)
    core = k_core.core_numbers(vertices, arcs)
    assert plain.plain_core_numbers(graph).tolist() == [core[v] for v in vertices]
    corners = triangles.triangles_at(arcs)
    assert plain.plain_triangles(graph).tolist() == [corners[v] for v in vertices]
    share = triangles.clustering(arcs, True)
    assert plain.plain_clustering(graph).tolist() == pytest.approx([float(share[v]) for v in vertices])


@pytest.mark.jitless
@given(graph=graphs(("none", "whole", "real"), keep=False))
@some
def test_weighted_clustering(graph: Graph) -> None:
    if graph.weight is not None and not graph.weight.max(initial=0) > 0:
        return  # refused before anything is computed
    assert check_clustering_weighted(graph, plain.plain_clustering_weighted(graph), count=10_000).holds


@pytest.mark.jitless
@given(graph=graphs(), every=st.integers(1, 3))
@some
def test_centrality(graph: Graph, every: int) -> None:
    edges, roots = arcs_of(graph), np.arange(0, graph.n, every)
    score = centrality.betweenness(edges, True, roots.tolist())
    expected = [float(score.get(v, Fraction(0))) for v in range(graph.n)]
    assert plain.plain_betweenness(graph, roots).tolist() == pytest.approx(expected)
    count = graph.user_ids.size
    near = [float(centrality.closeness(edges, True, root, count, True)) for root in roots.tolist()]
    assert plain.plain_closeness(graph, roots, harmonic=False).tolist() == pytest.approx(near)
    near = [float(centrality.harmonic(edges, True, root)) for root in roots.tolist()]
    assert plain.plain_closeness(graph, roots, harmonic=True).tolist() == pytest.approx(near)


@pytest.mark.jitless
@given(graph=graphs(), rounds=st.integers(0, 8), spread=st.booleans())
@some
def test_ranks(graph: Graph, rounds: int, spread: bool) -> None:
    ids, count = graph.user_ids.tolist(), graph.user_ids.size
    inner = graph.user_id_of.tolist()
    edges = [(inner[u], inner[v]) for u, v in edges_of(graph)]
    even = np.full(count, 1 / count)
    found = plain.plain_ranks(graph, even, even, even * spread, damping=0.85, iterations=rounds)
    expected = ranks.pagerank(ids, edges, graph.directed, rounds, spread=spread)
    assert found.rank.tolist() == pytest.approx([expected[v] for v in ids])
    alone = graph.internal_of_position < 0
    assert found.rank[alone].tolist() == pytest.approx(found.base[alone].tolist())
    start = np.zeros(count)
    start[0] = 1.0
    seen = plain.plain_ranks(graph, start, start, start, damping=0.85, iterations=rounds)
    walk = ranks.personalised(ids, edges, graph.directed, ids[0], rounds)
    assert seen.rank.tolist() == pytest.approx([walk[v] for v in ids])
