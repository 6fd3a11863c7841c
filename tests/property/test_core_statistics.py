"""Edges inside and touching [0, k), for every k, against counting them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from hybrid.planning.core_statistics import core_spread, core_statistics, looks_per_vertex
from hybrid.planning.plan import count_core_edges

pairs = st.integers(1, 14).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=60)
)


def arcs_of(graph: Graph) -> list[tuple[int, int]]:
    rows = zip(graph.out_offsets[:-1], graph.out_offsets[1:], strict=True)
    return [(u, int(v)) for u, (begin, end) in enumerate(rows) for v in graph.out_targets[begin:end]]


def naive_cut(degrees: list[int], edges: int) -> float:
    """The shortest whole length, by trying each."""
    return next(cut for cut in range(max(degrees) + 1) if sum(min(one, cut) for one in degrees) >= edges)


@pytest.mark.jitless
@settings(max_examples=60, deadline=None)
@given(
    pairs,
    st.booleans(),
    st.sampled_from(["drop", "keep"]),
    st.sampled_from(["drop", "keep"]),
    st.sampled_from([0, 1 << 16]),
)
def test_every_core_at_once(
    chosen: list[tuple[int, int]], directed: bool, self_loops: str, duplicates: str, few: int
) -> None:
    src, dst = (np.array(column, np.int64) for column in zip(*chosen, strict=True))
    graph = build_graph(EdgeList(src, dst), directed=directed, self_loops=self_loops, duplicates=duplicates)
    found = core_statistics(graph, few_rows=few)  # by all threads, and by one
    arcs = arcs_of(graph)
    assert found.inside.tolist() == [sum(u < k and v < k for u, v in arcs) for k in range(graph.n + 1)]
    assert found.touching.tolist() == [sum(u < k or v < k for u, v in arcs) for k in range(graph.n + 1)]
    assert found.degree.tolist() == graph.degree().tolist()
    assert found.in_degree.tolist() == [sum(v == w for _, w in arcs) for v in range(graph.n)]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 100, 10**9])
def test_a_limit_changes_no_count(directed: bool, limit: int) -> None:
    graph = build_graph(kronecker(9, 8, 3), directed=directed)
    found, whole = core_statistics(graph, limit), core_statistics(graph)
    assert found.limit == min(limit, graph.n)
    assert found.inside.tolist() == whole.inside[: found.limit + 1].tolist()
    assert found.touching.tolist() == whole.touching[: found.limit + 1].tolist()
    assert int(whole.inside[-1]) == int(whole.touching[-1]) == graph.m
    for k in (1, 7, 64):
        assert int(whole.inside[k]) == count_core_edges(CoreSplit(graph, k))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(0, 120))
def test_lists_cut_to_the_looks_hold_the_edges(degrees: list[int], edges: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    edges = min(edges, sum(degrees))
    looks = looks_per_vertex(offsets, edges)
    if not edges:
        assert looks == 0
        return
    assert looks == 1 or naive_cut(degrees, edges) - 1 < looks <= naive_cut(degrees, edges)
    if looks > 1:
        assert sum(min(one, looks) for one in degrees) == pytest.approx(edges)


@given(st.lists(st.integers(-1, 6), max_size=12), st.integers(0, 14))
def test_spread_of_the_levels_in_the_core(levels: list[int], limit: int) -> None:
    found = core_spread(np.array(levels, np.int32), limit)
    for k in range(min(limit, len(levels)) + 1):
        reached = [one for one in levels[:k] if one >= 0]
        assert found[k] == (max(reached) - min(reached) if reached else 0)
