"""Whatever the graph, the policy, the number of parts and the order of messages: every algorithm is exact."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from cpu_engine.comm.loopback import run_loopback
from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph
from cpu_engine.ranks.algorithms import NAMES, rank_algorithm
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.ranks import SsspOnRanks
from tests.naive import ranks as naive

Pairs = list[tuple[int, int]]
JITLESS = os.environ.get("NUMBA_DISABLE_JIT") == "1"
EXAMPLES = 4 if JITLESS else 25

graphs = st.integers(2, 24).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=80)
)
orders = st.none() | st.integers(0, 1 << 32).map(random.Random)
WEIGHTS = {
    "short": st.integers(0, 5),
    "long": st.integers(0, 1 << 40),
    "real": st.floats(0, 10) | st.sampled_from([0.0, 0.1, 5e-324, 1e300]),
}
COMBINATIONS = [(name, sync) for name in NAMES for sync in rank_algorithm(name).syncs]


def built(pairs: Pairs, directed: bool, weight: np.ndarray | None = None, loops: bool = False) -> Graph:
    src, dst = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    keep = {"self_loops": "keep", "duplicates": "keep"} if loops else {}
    return build_graph(EdgeList(src, dst, weight), directed=directed, **keep)


def arcs_of(graph: Graph) -> Pairs:
    row = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    return list(zip(row.tolist(), graph.out_targets.tolist(), strict=True))


class Ranks:
    """An algorithm on all parts of a graph, in one process."""

    def __init__(self, graph: Graph, name: str, policy: str, parts: int, sync: str, **options: Any) -> None:
        self.graph, self.algorithm, self.options = graph, rank_algorithm(name), options
        chosen = self.algorithm
        self.parts = partition_graph(graph, policy, parts, weighted=chosen.weighted, symmetric=chosen.symmetric)
        self.made = [chosen.make(part, graph, sync, options) for part in self.parts]

    def run(self, root: int = -1, order: random.Random | None = None) -> dict[str, Any]:
        """Arrays over the whole graph, and the counters, on which all parts must agree."""
        drivers = [self.algorithm.drive(one, root, self.options) for one in self.made]
        found = run_loopback(drivers, None if order is None else order.randrange)
        whole: dict[str, Any] = {}
        for part, one in zip(self.parts, found, strict=True):
            for key, values in one.arrays.items():
                into = whole.setdefault(key, np.empty(self.graph.n, values.dtype))
                into[part.internal_of[: part.masters]] = values
            if self.algorithm.name != "sssp":  # whose rounds differ between ranks under basp
                assert one.counters == found[0].counters
            assert one.isolated == found[0].isolated
        return {**whole, **found[0].counters, "isolated": found[0].isolated}


@pytest.mark.jitless
@pytest.mark.parametrize("sync", ["bsp", "basp"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), pairs=graphs, directed=st.booleans(), parts=st.integers(1, 5), order=orders)
def test_shortest_paths(policy, sync, data, pairs, directed, parts, order):
    """Whole weights of both widths and real ones, zero among them: distances, and parents that lead to the root."""
    kind = data.draw(st.sampled_from(sorted(WEIGHTS)))
    drawn = data.draw(st.lists(WEIGHTS[kind], min_size=len(pairs), max_size=len(pairs)))
    weight = np.array(drawn, np.float64 if kind == "real" else np.int64)
    graph = built(pairs, directed, weight, loops=True)
    delta = data.draw(st.none() | st.sampled_from([0.01, 1.0, 7.0, 1e12]))
    ranks = Ranks(graph, "sssp", policy, parts, sync, delta=delta)
    arcs = [(u, v, one) for (u, v), one in zip(arcs_of(graph), graph.weight.tolist(), strict=True)]
    for root in data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=2)):
        found = ranks.run(root, order)
        right = naive.shortest_paths(graph.n, arcs, root)
        unreached = float("inf") if kind == "real" else -1
        assert found["distance"].tolist() == [unreached if one is None else one for one in right]
        assert naive.is_shortest_path_tree(arcs, root, right, found["parent"].tolist())


@pytest.mark.jitless
@pytest.mark.parametrize("sync", ["bsp", "basp"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), parts=st.integers(1, 5), order=orders)
def test_components(policy, sync, pairs, directed, parts, order):
    graph = built(pairs, directed, loops=True)
    right = naive.components(graph.n, arcs_of(graph))
    ranks = Ranks(graph, "wcc", policy, parts, sync)
    for _ in range(2):
        found = ranks.run(order=order)
        assert found["component"].tolist() == right
        assert found["components"] == len(set(right))


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), parts=st.integers(1, 5), order=orders, rounds=st.integers(0, 6))
def test_pagerank(policy, pairs, directed, parts, order, rounds):
    graph = built(pairs, directed, loops=True)
    isolated, arcs = graph.user_ids.size - graph.n, arcs_of(graph)
    for definition in ("ldbc", "gap"):
        options = {"definition": definition, "iterations": rounds, "tolerance": 1e9}
        asked = options if definition == "gap" else {"definition": definition, "iterations": rounds}
        ranks = Ranks(graph, "pagerank", policy, parts, "bsp", **asked)
        if definition == "gap" and rounds:
            rounds = 1  # the tolerance is met at once
        found = ranks.run(order=order) if definition == "ldbc" or rounds else None
        if found is not None:
            right = naive.pagerank(graph.n, isolated, arcs, rounds, spread=definition == "ldbc")
            assert found["rank"] == pytest.approx(right, rel=1e-12)
            assert np.array_equal(found["rank"], ranks.run(order=order)["rank"]), "the same in every run"


@pytest.mark.jitless
@pytest.mark.parametrize("policy", ["iec", "oec"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), parts=st.integers(1, 5), order=orders, rounds=st.integers(0, 6))
def test_labels(policy, pairs, directed, parts, order, rounds):
    graph = built([(7 * u, 7 * v) for u, v in pairs], directed, loops=True)
    own = graph.user_ids[graph.user_position].tolist()
    right = naive.labels(own, arcs_of(graph), directed, rounds)
    ranks = Ranks(graph, "cdlp", policy, parts, "bsp", iterations=rounds)
    for _ in range(2):
        assert ranks.run(order=order)["community"].tolist() == right


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs=graphs, directed=st.booleans(), parts=st.integers(1, 5), order=orders)
def test_core_numbers(policy, pairs, directed, parts, order):
    graph = built(pairs, directed, loops=True)
    ranks = Ranks(graph, "kcore", policy, parts, "bsp")
    for _ in range(2):
        assert ranks.run(order=order)["core"].tolist() == naive.core_numbers(graph.n, arcs_of(graph))


def test_what_cannot_serve_is_refused() -> None:
    graph = built([(0, 1), (1, 2)], False)
    with pytest.raises(InputError, match=r"most frequent label.*iec or oec"):
        rank_algorithm("cdlp").choose_policy("cvc")
    with pytest.raises(InputError, match="does not run on several ranks"):
        rank_algorithm("louvain")
    with pytest.raises(InputError, match="has no weights"):
        partition_graph(graph, "iec", 2, weighted=True)
    negative = built([(0, 1), (1, 2)], True, np.array([1, -1]))
    with pytest.raises(InputError, match="not negative"):
        Ranks(negative, "sssp", "iec", 2, "bsp").run(0)
    assert rank_algorithm("pagerank").choose_sync("basp") == "bsp"
    assert rank_algorithm("sssp").choose_sync("basp") == "basp"


def weighted(edges: EdgeList, most: int = 255) -> EdgeList:
    weight = np.random.default_rng(3).integers(1, most + 1, len(edges.src))
    return EdgeList(edges.src, edges.dst, weight)


MEDIUM = {
    "kronecker": lambda: build_graph(weighted(kronecker(11, 8)), directed=False),
    "kronecker, directed": lambda: build_graph(weighted(kronecker(9, 4)), directed=True),
    "grid": lambda: build_graph(weighted(grid(40, 30)), directed=False),
    "path": lambda: build_graph(weighted(EdgeList(np.arange(300), np.arange(1, 301))), directed=False),
}


def real_graph(shared_data: Path, name: str) -> Graph:
    edges = read_graph(shared_data / name)
    return build_graph(edges if edges.weight is not None else weighted(edges), directed=None)


@pytest.mark.skipif(JITLESS, reason="too long without the compiler")
@pytest.mark.parametrize("name", ["wiki-Vote/wiki-Vote.txt", "roads-rome/roads-rome.wel.gz"])
def test_real_graphs_on_three_parts(name: str, shared_data: Path) -> None:
    """Against scipy, which shares nothing with us."""
    graph = real_graph(shared_data, name)
    assert graph.weight is not None
    shape = (graph.n, graph.n)
    arcs = csr_matrix((graph.weight.astype(float), graph.out_targets, graph.out_offsets), shape)
    expected = dijkstra(arcs, indices=0)
    count, label = connected_components(arcs, connection="weak")
    for policy, sync in (("iec", "bsp"), ("oec", "basp"), ("2d", "basp")):
        distance = Ranks(graph, "sssp", policy, 3, sync).run(0)["distance"].astype(float)
        assert np.allclose(np.where(distance < 0, np.inf, distance), expected)
        found = Ranks(graph, "wcc", policy, 3, sync).run()
        assert found["components"] == count
        assert np.unique(np.stack([found["component"], label]), axis=1).shape[1] == count
    core = Ranks(graph, "kcore", "iec", 3, "bsp").run()["core"]
    near = ((arcs + arcs.T) > 0).astype(int).tolil()
    near.setdiag(0)
    inside = np.asarray(near.tocsr()[core == core.max()][:, core == core.max()].sum(axis=1)).ravel()
    assert inside.min() >= core.max(), "everybody in the innermost core has as many neighbours there"
    rank = Ranks(graph, "pagerank", "cvc", 3, "bsp").run()["rank"]
    assert rank.sum() + (graph.user_ids.size - graph.n) * rank.min() >= 1 - 1e-9


@pytest.mark.skipif(JITLESS, reason="too long without the compiler")
@pytest.mark.parametrize("name", MEDIUM)
def test_one_part_or_many_parts(name: str) -> None:
    """Large enough that lists overflow to vectors; what one part finds, all policies and numbers of parts find."""
    graph = MEDIUM[name]()
    roots = (0, graph.n // 2)
    expected: dict[Any, dict[str, Any]] = {}
    for algorithm, sync in COMBINATIONS:
        chosen = rank_algorithm(algorithm)
        for policy in chosen.policies:
            for parts in (1, 3, 4):
                ranks = Ranks(graph, algorithm, policy, parts, sync)
                for root in roots if chosen.sourced else (-1,):
                    found = ranks.run(root)
                    right = expected.setdefault((algorithm, root), found)
                    for key in ("distance", "component", "community", "core"):
                        assert np.array_equal(found.get(key, 0), right.get(key, 0)), (algorithm, policy, parts, sync)
                    if algorithm == "pagerank":
                        assert np.allclose(found["rank"], right["rank"], rtol=1e-12, atol=0)
    distance = expected["sssp", 0]["distance"]
    arcs = np.repeat(distance, np.diff(graph.out_offsets))
    assert np.all((arcs < 0) | (distance[graph.out_targets] <= arcs + graph.weight))
    assert np.all(expected["wcc", -1]["component"][graph.out_targets] == np.repeat(
        expected["wcc", -1]["component"], np.diff(graph.out_offsets)))  # fmt: skip


@pytest.mark.parametrize("sync", ["bsp", "basp"])
@pytest.mark.parametrize("policy", POLICIES)
def test_parents_along_arcs_without_weight_form_a_tree(policy: str, sync: str) -> None:
    """Two parts may lower both ends of an arc of weight 0 in opposite order; the masters must not take a circle."""
    for seed in range(40):
        random_numbers = np.random.default_rng(seed)
        source = (60 * random_numbers.random(100) ** 3).astype(np.int64)
        weight = np.where(random_numbers.random(100) < 0.85, 0, random_numbers.integers(1, 5, 100))
        graph = build_graph(EdgeList(source, random_numbers.integers(0, 60, 100), weight), directed=False)
        parts = partition_graph(graph, policy, 4 + seed % 5, weighted=True)
        root, order = graph.n - 1, random.Random(seed)
        found = run_loopback([SsspOnRanks(part, sync=sync).search(root) for part in parts], order.randrange)
        distance, parent = np.empty(graph.n, np.int64), np.empty(graph.n, np.int32)
        for part, one in zip(parts, found, strict=True):
            masters = part.internal_of[: part.masters]
            distance[masters], parent[masters] = one.distance, one.parents
        check = check_sssp(graph, root, distance, parent)
        assert check.holds, check.explain(graph)
