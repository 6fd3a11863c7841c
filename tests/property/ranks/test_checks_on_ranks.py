"""The checks on ranks find a false value exactly when those of one rank find it: algorithm by algorithm."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.comm.loopback import run_loopback
from cpu_engine.communities.check_labels import check_labels
from cpu_engine.communities.check_on_ranks import check_labels_on_ranks
from cpu_engine.components.check import check_components
from cpu_engine.components.check_on_ranks import check_components_on_ranks
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, Part, partition_graph
from cpu_engine.kcore.check import check_k_core
from cpu_engine.kcore.check_on_ranks import check_k_core_on_ranks
from cpu_engine.pagerank.check import check_pagerank
from cpu_engine.pagerank.check_on_ranks import Asked, check_pagerank_on_ranks
from cpu_engine.pagerank.engine import pagerank
from cpu_engine.repair.engine import plain_components, plain_core_numbers, plain_labels, plain_sssp
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.check_on_ranks import check_sssp_on_ranks

EXAMPLES = 8 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 40

graphs = st.integers(2, 20).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=60)
)


def build(
    pairs: list[tuple[int, int]], *, directed: bool, weight: list[float] | None = None, real: bool = False
) -> Graph:
    src, dst = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    weights = None if weight is None else np.array(weight, np.float64 if real else np.int64)
    return build_graph(EdgeList(src, dst, weights), directed=directed, self_loops="keep", duplicates="keep")


def on_parts(parts: list[Part], check: Callable[[Part, np.ndarray], Any]) -> Any:
    """What all parts together say; ``check``: a part's side, given the internal ids of its masters."""
    found = run_loopback([check(part, part.internal_of[: part.masters]) for part in parts])
    assert all(one == found[0] for one in found), "every rank comes to the same outcome"
    return found[0]


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), real=st.booleans(), ranks=st.integers(1, 6), data=st.data())
def test_shortest_paths(policy, pairs, directed, real, ranks, data):
    numbers = st.sampled_from([0.0, 1e-300, 0.5, 1.0, 1e20] if real else [0, 0, 1, 2, 5])
    weight = data.draw(st.lists(numbers, min_size=len(pairs), max_size=len(pairs)), label="weights")
    graph = build(pairs, directed=directed, weight=weight, real=real)
    parts = partition_graph(graph, policy, ranks, weighted=True)
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    distance, parent = plain_sssp(graph, root)

    def compare() -> bool:
        mine = on_parts(parts, lambda part, own: check_sssp_on_ranks(part, root, distance[own], parent[own]))
        right = check_sssp(graph, root, distance, parent)
        assert mine.findings[:4] == right.findings[:4]
        assert mine.holds == right.holds
        return mine.holds

    assert compare()
    for _ in range(data.draw(st.integers(1, 3), label="false values")):
        vertex = data.draw(st.integers(0, graph.n - 1), label="at vertex")
        if data.draw(st.booleans(), label="a distance"):
            false = [-2.0, np.nan, np.inf, 0.0, 0.5, 1e20] if real else [-2, -1, 0, 1, 3]
            distance[vertex] = data.draw(st.sampled_from(false), label="becomes")
        else:
            parent[vertex] = data.draw(st.integers(-2, graph.n + 1), label="becomes")
        compare()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_a_circle_of_parents_as_far_as_each_other_is_found(policy, ranks):
    """A ring of weights 0: every distance is right, and the parents lead round it."""
    n = 30
    graph = build([(0, 1), *((v, v % n + 1) for v in range(1, n + 1))], directed=True, weight=[1] + [0] * n)
    position = {int(graph.user_ids[graph.user_position[v]]): v for v in range(graph.n)}
    distance, parent = plain_sssp(graph, position[0])
    parts = partition_graph(graph, policy, ranks, weighted=True)

    def check() -> Any:
        return on_parts(parts, lambda part, own: check_sssp_on_ranks(part, position[0], distance[own], parent[own]))

    assert check().holds, "the chain of equal distances leads to the root, through every part"
    parent[position[1]] = position[n]
    found = check()
    assert found.findings == (0, 0, 0, 0, n)
    assert not check_sssp(graph, position[0], distance, parent).holds


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), ranks=st.integers(1, 6), data=st.data())
def test_components(policy, pairs, directed, ranks, data):
    graph = build(pairs, directed=directed)
    parts = partition_graph(graph, policy, ranks)
    label = plain_components(graph)

    def compare() -> bool:
        mine = on_parts(parts, lambda part, own: check_components_on_ranks(part, label[own]))
        assert mine.holds == check_components(graph, label).holds
        return mine.holds

    assert compare()
    for _ in range(data.draw(st.integers(1, 3), label="false values")):
        if data.draw(st.booleans(), label="a class renamed"):
            old, new = (data.draw(st.integers(0, graph.n - 1)) for _ in range(2))
            label[label == label[old]] = new
        else:
            label[data.draw(st.integers(0, graph.n - 1))] = data.draw(st.integers(-2, graph.n + 1))
        compare()


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), ranks=st.integers(1, 6), data=st.data())
def test_core_numbers(policy, pairs, directed, ranks, data):
    graph = build(pairs, directed=directed)
    parts = partition_graph(graph, policy, ranks, symmetric=True)
    core = plain_core_numbers(graph)

    def compare() -> bool:
        mine = on_parts(parts, lambda part, own: check_k_core_on_ranks(part, core[own]))
        assert mine.holds == check_k_core(graph, core).holds
        return mine.holds

    assert compare()
    for _ in range(data.draw(st.integers(1, 3), label="false values")):
        core[data.draw(st.integers(0, graph.n - 1))] += data.draw(st.sampled_from([-2, -1, 1, 2]))
        compare()


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), ranks=st.integers(1, 6), gap=st.booleans(), data=st.data())
def test_ranks_of_pages(policy, pairs, directed, ranks, gap, data):
    graph = build(pairs, directed=directed)
    parts = partition_graph(graph, policy, ranks)
    definition = "gap" if gap else "ldbc"
    found = pagerank(graph, definition=definition, iterations=300 if gap else 10)
    rank, asked = found.rank.astype(np.float64), Asked(definition)

    def compare() -> bool:
        mine = on_parts(parts, lambda part, own: check_pagerank_on_ranks(part, rank[own], found.isolated_rank, asked))
        right = check_pagerank(graph, rank, found.isolated_rank, definition)
        assert mine.impossible == right.impossible
        assert mine.residual == pytest.approx(right.residual, abs=1e-12)
        assert mine.mass == pytest.approx(right.mass, abs=1e-12)
        assert mine.holds == right.holds
        return mine.holds

    assert compare()
    for _ in range(data.draw(st.integers(1, 3), label="false values")):
        vertex = data.draw(st.integers(0, graph.n - 1), label="at vertex")
        rank[vertex] = data.draw(st.sampled_from([0.0, 0.001, 0.3, 1.5, -1.0, np.nan, np.inf]), label="becomes")
        compare()


@pytest.mark.jitless
@pytest.mark.parametrize("policy", ["iec", "oec"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), ranks=st.integers(1, 6), rounds=st.integers(0, 4), data=st.data())
def test_labels(policy, pairs, directed, ranks, rounds, data):
    graph = build([(7 * u, 7 * v) for u, v in pairs], directed=directed)
    parts = partition_graph(graph, policy, ranks, symmetric=True)
    names, label = graph.user_ids[graph.user_position], plain_labels(graph, rounds)

    def compare() -> bool:
        mine = on_parts(parts, lambda part, own: check_labels_on_ranks(part, label[own], names[own], iterations=rounds))
        assert mine.wrong == check_labels(graph, label, iterations=rounds).wrong
        return mine.holds

    assert compare()
    for _ in range(data.draw(st.integers(1, 3), label="false values")):
        label[data.draw(st.integers(0, graph.n - 1))] = data.draw(st.integers(0, 140))
        compare()


@pytest.mark.parametrize("ranks", [2, 5])
def test_medium_graphs(ranks):
    graph = build_graph(kronecker(11, 8))
    plain, both = partition_graph(graph, "2d", ranks), partition_graph(graph, "cvc", ranks, symmetric=True)
    label, core, rank = plain_components(graph), plain_core_numbers(graph), pagerank(graph)
    whole = on_parts(
        plain, lambda part, own: check_pagerank_on_ranks(part, rank.rank[own], rank.isolated_rank, Asked())
    )
    assert whole.holds
    for labels, cores, right in ((label, core, True), (label + (label == label[77]), core + (core == core[77]), False)):
        assert _components_hold(plain, labels) == right
        assert _cores_hold(both, cores) == right


def _components_hold(parts: list[Part], label: np.ndarray) -> bool:
    return bool(on_parts(parts, lambda part, own: check_components_on_ranks(part, label[own])).holds)


def _cores_hold(parts: list[Part], core: np.ndarray) -> bool:
    return bool(on_parts(parts, lambda part, own: check_k_core_on_ranks(part, core[own])).holds)
