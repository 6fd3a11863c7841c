"""Shortest paths by way of a skeleton, on graphs of chains, rings and dead ends: the same as without."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.rows import WeightedRows
from cpu_engine.sssp.skeleton import SkeletonSearch, find_skeleton
from tests.naive import sssp as naive

JITLESS = os.environ.get("NUMBA_DISABLE_JIT") == "1"
EXAMPLES = 20 if JITLESS else 150
Edges = list[tuple[int, int, int]]

weights = st.integers(1, 4) | st.sampled_from([1, 250, 2**20, 2**29])


@st.composite
def road_maps(draw: st.DrawFn) -> Edges:
    """Junctions joined by chains - some to themselves, some twice - with rings and trees on them, or all alone."""
    junctions = draw(st.integers(1, 7))
    ends = st.integers(0, junctions - 1)
    edges: Edges = []
    used = junctions
    for a, b, lengths in draw(
        st.lists(st.tuples(ends, ends, st.lists(weights, min_size=1, max_size=5)), min_size=1, max_size=10)
    ):
        at = a
        for length in lengths[:-1]:
            edges.append((at, used, length))
            at, used = used, used + 1
        edges.append((at, b, lengths[-1]))
    for turn, length in draw(st.lists(st.tuples(st.integers(0, 99), weights), max_size=12)):
        edges.append((turn % used, used, length))
        used += 1
    names = draw(st.permutations(range(used)))
    return [(names[u], names[v], length) for u, v, length in edges]


@pytest.mark.jitless
@pytest.mark.shipped_thresholds  # which tell when there is no skeleton; test_engines.py has others
@given(edges=road_maps(), rule=st.sampled_from(["drop", "keep"]), width=st.sampled_from([1, 8, 2**12]), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_skeleton_is_exact(edges: Edges, rule: str, width: int, data: st.DataObject) -> None:
    src, dst, weight = (np.array(column, np.int64) for column in zip(*edges, strict=True))
    graph = build_graph(EdgeList(src, dst, weight), directed=False, self_loops=rule, duplicates=rule)  # type: ignore[arg-type]
    skeleton = find_skeleton(WeightedRows(graph), min_share=0)
    if skeleton is None:
        assert graph.n == 0 or weight.sum() >= 2**31
        return
    search = SkeletonSearch(skeleton, width)
    user = [int(one) for one in graph.user_ids[graph.user_position]]
    for root in data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=3), label="roots"):
        distance, parent = np.full(graph.n, -7, np.int64), np.full(graph.n, -7, np.int32)
        search.run(root, distance, parent)
        certificate = check_sssp(graph, root, distance, parent)
        assert certificate.holds, certificate.explain(graph)
        found = {user[v]: int(distance[v]) for v in range(graph.n) if distance[v] >= 0}
        assert found == naive.distances(edges, False, user[root], 0)
        parents = {user[v]: user[parent[v]] for v in range(graph.n) if parent[v] >= 0}
        assert naive.is_tree(edges, False, user[root], found, parents)


@pytest.mark.jitless
@given(edges=road_maps())
@settings(max_examples=EXAMPLES // 2, deadline=None)
def test_a_skeleton_keeps_nobody_it_need_not(edges: Edges) -> None:
    src, dst, weight = (np.array(column, np.int64) for column in zip(*edges, strict=True))
    graph = build_graph(EdgeList(src, dst, weight), directed=False)
    skeleton = find_skeleton(WeightedRows(graph), min_share=0)
    if skeleton is None:
        return
    assert sorted([*skeleton.members.tolist(), *skeleton.others.tolist()]) == list(range(graph.n))
    degree = np.diff(graph.out_offsets)
    lone = {int(v) for v in skeleton.members if degree[v] <= 2}
    # Only the last of a tree or a ring may stay though it has so few neighbours: one per component.
    reached = {
        v: frozenset(naive.distances(edges, False, int(graph.user_ids[graph.user_position[v]]), 0)) for v in lone
    }
    assert len(set(reached.values())) == len(lone)
