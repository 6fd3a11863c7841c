"""Corners of shortest paths: what is refused, what just fits, ties without length, and graphs that others solved."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.csgraph import dijkstra

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.delta import Buckets
from cpu_engine.sssp.engine import STRATEGIES, SsspEngine, choose_delta, choose_spans, sssp
from cpu_engine.sssp.rows import WeightedRows, prepare_rows
from cpu_engine.sssp.skeleton import find_skeleton, prepare_skeleton

LARGEST = 2**63 - 1


def weighted(edges: list[tuple], directed: bool = True, rule: str = "keep") -> Graph:
    src, dst, weight = (np.array(column) for column in zip(*edges, strict=True))
    return build_graph(EdgeList(src, dst, weight), directed=directed, self_loops=rule, duplicates=rule)  # type: ignore[arg-type]


def by_user(graph: Graph, root: int, strategy: str) -> dict[int, float]:
    """Certified distances of the reached, by the user's ids."""
    inner = graph.internal_id(root)
    result = sssp(graph, inner, strategy=strategy)
    certificate = check_sssp(graph, inner, result.distance, result.parent)
    assert certificate.holds, certificate.explain(graph)
    user = graph.user_ids[graph.user_position]
    return {int(user[v]): d.item() for v, d in enumerate(result.distance) if 0 <= d < np.inf}


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("edges", "directed", "root", "expected"),
    [
        ([(7, 9, 4)], True, 7, {7: 0, 9: 4}),
        ([(7, 9, 4)], True, 9, {9: 0}),
        ([(7, 9, 4)], False, 9, {9: 0, 7: 4}),
        ([(1, 1, 3), (1, 2, 5)], True, 1, {1: 0, 2: 5}),
        ([(1, 2, 9), (1, 2, 2), (1, 2, 5)], True, 1, {1: 0, 2: 2}),
        ([(1, 2, 1), (2, 3, 0), (3, 4, 0), (4, 2, 0)], True, 1, {1: 0, 2: 1, 3: 1, 4: 1}),
        ([(1, 2, 0), (2, 1, 0)], True, 1, {1: 0, 2: 0}),
        ([(1, 2, 1), (5, 6, 1)], False, 1, {1: 0, 2: 1}),
        ([(1, 2, 0.5), (2, 3, 0.25), (1, 3, 1.0)], True, 1, {1: 0.0, 2: 0.5, 3: 0.75}),
        ([(1, 2, -0.0), (2, 3, 1.5)], True, 1, {1: 0.0, 2: 0.0, 3: 1.5}),
        ([(1, 2, 2**31 - 1), (2, 3, 2**31 - 1)], True, 1, {1: 0, 2: 2**31 - 1, 3: 2**32 - 2}),
        ([(1, 2, 2**30), (2, 3, 2**30), (3, 4, 5)], True, 1, {1: 0, 2: 2**30, 3: 2**31, 4: 2**31 + 5}),
        ([(1, 2, LARGEST - 1)], True, 1, {1: 0, 2: LARGEST - 1}),
        ([(1, 2, LARGEST - 5), (2, 3, 4), (2, 1, 7)], True, 1, {1: 0, 2: LARGEST - 5, 3: LARGEST - 1}),
        # The way over 2 overflows, but nobody needs it.
        ([(1, 2, LARGEST - 1), (2, 3, 9), (1, 3, 5)], True, 1, {1: 0, 2: LARGEST - 1, 3: 5}),
    ],
)  # fmt: skip
def test_corners(strategy: str, edges: list[tuple], directed: bool, root: int, expected: dict[int, float]) -> None:
    assert by_user(weighted(edges, directed), root, strategy) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("last", [(LARGEST - 1, 1), (LARGEST - 1, LARGEST - 1), (1e308, 1e308)])
def test_a_distance_that_does_not_fit_is_refused(strategy: str, last: tuple) -> None:
    graph = weighted([(11, 12, last[0]), (12, 13, last[1])])
    with pytest.raises(InputError, match=r"distance to vertex 13 does not fit .* Fix: divide"):
        sssp(graph, graph.internal_id(11), strategy=strategy)


@pytest.mark.parametrize(
    ("weight", "what"), [(-3, "negative"), (-0.5, "negative"), (float("nan"), "not a fin"), (float("inf"), "not a fin")]
)
def test_weights_that_are_refused(weight: float, what: str) -> None:
    graph = weighted([(4, 5, type(weight)(1)), (70, 80, type(weight)(2))])
    assert graph.weight is not None
    graph = replace(graph, weight=np.where(graph.weight == 2, weight, graph.weight))  # what a store may hold
    with pytest.raises(InputError, match=rf"edge from 70 to 80 is {what}.*value {weight}.*Fix: "):
        sssp(graph, 0)


def test_what_else_is_refused() -> None:
    graph = weighted([(1, 2, 3)])
    with pytest.raises(InputError, match="Fix: name one of delta, push, pull"):
        sssp(graph, 0, strategy="dijkstra")
    with pytest.raises(InputError, match="Fix: leave it out"):
        sssp(graph, 0, delta=0)
    with pytest.raises(InputError, match=r"root .*Fix: choose one of 0\.\.1"):
        sssp(graph, 2)


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_weights_an_edge_counts_one(strategy: str) -> None:
    graph = build_graph(grid(5, 7), directed=False)
    root = graph.internal_id(0)
    result = sssp(graph, root, strategy=strategy)
    user = graph.user_ids[graph.user_position]
    assert np.array_equal(result.distance, user // 7 + user % 7)
    assert result.distance.dtype == np.int64
    assert check_sssp(graph, root, result.distance, result.parent).holds


def test_a_long_way_without_length() -> None:
    path = np.arange(3000)
    graph = build_graph(EdgeList(path[:-1], path[1:], np.zeros(2999, np.int64)), directed=False)
    result = sssp(graph, graph.internal_id(1500))
    assert not result.distance.any()
    assert check_sssp(graph, graph.internal_id(1500), result.distance, result.parent).holds


def test_parents_in_a_circle_are_found_out() -> None:
    graph = weighted([(1, 2, 1), (2, 3, 0), (3, 2, 0)])
    result = sssp(graph, graph.internal_id(1))
    parent = result.parent.copy()
    parent[graph.internal_id(2)] = graph.internal_id(3)
    certificate = check_sssp(graph, graph.internal_id(1), result.distance, parent)
    assert not certificate.holds
    assert "2 vertices whose parents do not lead to the root" in certificate.explain(graph)


def random_weights(edges: EdgeList, high: int | None, seed: int = 5) -> EdgeList:
    rng = np.random.default_rng(seed)
    weight = rng.random(edges.src.size) if high is None else rng.integers(1, high, edges.src.size)
    return EdgeList(edges.src, edges.dst, weight, id_range=edges.id_range, directed=edges.directed)


def reference(graph: Graph, roots: list[int]) -> np.ndarray:
    """Distances by scipy, infinite where there are none. (Weights are above 0: scipy takes a 0 for no edge.)"""
    matrix = sparse.csr_matrix((graph.weight.astype(float), graph.out_targets, graph.out_offsets), (graph.n, graph.n))  # type: ignore[union-attr]
    return dijkstra(matrix, indices=roots)


@pytest.mark.parametrize("high", [256, 2, 2**20, None])
def test_a_graph_with_hubs_runs_in_stages(high: int | None) -> None:
    graph = build_graph(random_weights(kronecker(13), high), directed=False)
    assert bool(choose_spans(prepare_rows(graph))) == (high != 2), "with equal weights there is nothing light"
    engine, roots = SsspEngine(graph), [0, 17, graph.n // 2, graph.n - 1]
    for root, expected in zip(roots, reference(graph, roots), strict=True):
        result = engine.run(root)
        found = np.where(result.distance < 0, np.inf, result.distance)
        assert np.allclose(found, expected, rtol=1e-12)
        assert check_sssp(graph, root, result.distance, result.parent).holds


def test_rows_are_kept_with_the_graph_and_chosen_narrow() -> None:
    graph = build_graph(random_weights(kronecker(8), 256), directed=False)
    assert prepare_rows(graph) is prepare_rows(graph)
    assert prepare_rows(graph).out[1].dtype == np.uint32
    wide = build_graph(random_weights(kronecker(8), 2**30), directed=False)
    assert WeightedRows(wide).out[1].dtype == np.uint64
    assert choose_delta(WeightedRows(wide)) > choose_delta(prepare_rows(graph)) >= 1


def test_results_are_the_callers_and_graphs_are_let_go() -> None:
    """Buffers and rows live with the graph, not longer; a result is not written over by the next run."""
    graph = build_graph(random_weights(grid(9, 9), 256), directed=False)
    first, second = sssp(graph, 0), sssp(graph, 1)
    assert not np.shares_memory(first.distance, second.distance)
    assert not np.shares_memory(first.parent, second.parent)
    assert check_sssp(graph, 0, first.distance, first.parent).holds
    assert len(prepare_rows(graph).engines) == 1
    rows, alive = weakref.ref(prepare_rows(graph)), weakref.ref(graph)
    del graph
    gc.collect()
    assert alive() is None
    assert rows() is None


def chains(count: int, length: int) -> EdgeList:
    """``count`` junctions in a circle, and joined at random, by chains of ``length`` edges."""
    rng = np.random.default_rng(3)
    ends = np.concatenate((np.arange(count), rng.integers(0, count, count)))
    others = np.concatenate((np.arange(1, count + 1) % count, rng.integers(0, count, count)))
    inner = count + np.arange(2 * count * (length - 1)).reshape(2 * count, length - 1)
    way = np.column_stack((ends, inner, others))
    return EdgeList(way[:, :-1].ravel(), way[:, 1:].ravel(), rng.integers(1, 2**20, 2 * count * length))


def test_a_skeleton_is_made_for_the_second_run_and_only_where_it_is_right() -> None:
    edges = chains(200, 6)
    graph = build_graph(edges, directed=False)
    engine = SsspEngine(graph)
    first = engine.run(0).distance.copy()
    assert prepare_rows(graph).runs == 1
    again = engine.run(0)
    assert np.array_equal(again.distance, first)
    assert again.relaxations < graph.m / 2
    with pytest.raises(InputError, match="root"):
        engine.run(graph.n)
    skeleton = prepare_skeleton(prepare_rows(graph))
    assert skeleton is not None
    assert skeleton.n <= 200
    assert prepare_skeleton(prepare_rows(graph)) is skeleton
    assert find_skeleton(WeightedRows(replace(graph, weight=None))) is not None
    assert edges.weight is not None
    for weight in (edges.weight * 0.5, edges.weight - edges.weight.min(), edges.weight << 40, edges.weight << 13):
        other = build_graph(EdgeList(edges.src, edges.dst, weight), directed=False)
        assert find_skeleton(WeightedRows(other)) is None, "not exact, ties without length, or ways too long"
    assert find_skeleton(WeightedRows(build_graph(edges, directed=True))) is None
    assert find_skeleton(WeightedRows(build_graph(grid(30, 30), directed=False))) is None
    path = np.arange(3000)
    assert find_skeleton(WeightedRows(build_graph(EdgeList(path[:-1], path[1:]), directed=False))) is None


@pytest.mark.parametrize("seed", [92, 93, 94, 95])
def test_a_fall_within_the_bucket_that_holds_the_bound(seed: int) -> None:
    """A vertex beyond a stage's bound is in no bin, so it must be listed when it falls below it, same bucket or not."""
    rng = np.random.default_rng(seed)
    src, dst, weight = rng.integers(0, 600, 9000), rng.integers(0, 600, 9000), rng.integers(0, 100, 9000)
    graph = build_graph(EdgeList(src, dst, weight), directed=False)
    for root in (0, graph.n // 2, graph.n - 1, graph.internal_id(int(src[0]))):
        result = sssp(graph, root)
        certificate = check_sssp(graph, root, result.distance, result.parent)
        assert certificate.holds, certificate.explain(graph)
        assert np.array_equal(result.distance, sssp(graph, root, strategy="push").distance)


@pytest.mark.jitless
def test_a_vertex_expanded_before_falls_within_a_later_bucket() -> None:
    """The distance of 9 is lowered from outside, as a worker does: 2 falls from 103 to 101, both in bucket 25."""
    graph = weighted([(1, 2, 103), (2, 3, 1), (9, 2, 101)])
    inner = {v: graph.internal_id(v) for v in (1, 2, 3, 9)}
    buckets = Buckets(WeightedRows(graph), np.int64, 4, ())
    buckets.start(inner[1])
    while buckets.waiting:
        buckets.step()
    buckets.dist[inner[9]] = 0
    buckets.refill()
    while buckets.waiting:
        buckets.step()
    assert [buckets.dist[inner[v]] for v in (1, 2, 3, 9)] == [0, 101, 102, 0]


@pytest.mark.jitless
@pytest.mark.parametrize("seed", [16, 54])
def test_an_entry_lost_before_the_next_stage_is_asked_for_once(seed: int) -> None:
    """A vertex beyond the last bin is flagged as lost, then lowered and expanded: nobody is left but the next stage."""
    random = np.random.default_rng(seed)
    ends = random.integers(0, 8, 20), random.integers(0, 8, 20)
    graph = build_graph(EdgeList(*ends, random.integers(0, 20, 20)), directed=False)
    buckets = Buckets(WeightedRows(graph), np.int32, 16, (8,), bins=3, pushed_share=0.0)
    buckets.start(0)
    for _ in range(100):
        if buckets.waiting:
            buckets.step()
    assert not buckets.waiting
    assert np.array_equal(buckets.dist, sssp(graph, 0, strategy="pull").distance)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_bins_that_hold_too_little_grow(kind: type) -> None:
    """A chain whose heavy edges lead beyond all bins: a refill for each of them would look at every vertex."""
    n = 4000
    ends = np.arange(n)
    weight = np.where(ends[:-1] % 2, 2**40, 1).astype(kind)
    graph = build_graph(EdgeList(ends[:-1].copy(), ends[1:].copy(), weight), directed=True)
    root = graph.internal_id(0)
    buckets = Buckets(WeightedRows(graph), kind, 1.0, ())
    buckets.start(root)
    steps = 0
    while buckets.waiting:
        buckets.step()
        steps += 1
    assert buckets.dist.max() == weight.sum()
    assert steps < 100  # of the 2,000 heavy edges


REAL = {"soc-Epinions1/soc-Epinions1.txt.gz": True, "roads-rome/roads-rome.wel.gz": False}


@pytest.mark.parametrize("name", REAL)
def test_real_graphs(name: str, shared_data: Path) -> None:
    edges = read_graph(shared_data / name)
    if edges.weight is None:
        edges = random_weights(edges, 256)
    graph = build_graph(edges, directed=REAL[name])
    engine, roots = SsspEngine(graph), [0, graph.n // 3, graph.n - 1]  # the first without a skeleton
    for root, expected in zip(roots, reference(graph, roots), strict=True):
        result = engine.run(root)
        assert np.array_equal(np.where(result.distance < 0, np.inf, result.distance), expected)
        assert check_sssp(graph, root, result.distance, result.parent).holds


LDBC = {
    "test-sssp-directed": True, "test-sssp-undirected": False, "example-directed": True, "example-undirected": False,
}  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", LDBC)
def test_ldbc_validation_graphs(name: str, strategy: str, shared_data: Path) -> None:
    found = sorted((shared_data / "ldbc-validation").rglob(f"{name}.e"))
    if not found:
        pytest.skip(f"LDBC's validation graphs are not here: {name}.e is missing")
    properties = dict(
        line.split(" = ") for line in found[0].with_suffix(".properties").read_text().splitlines() if " = " in line
    )
    root = next(int(value) for key, value in properties.items() if key.endswith("sssp.source-vertex"))
    graph = build_graph(read_graph(found[0]), directed=LDBC[name])
    answer = found[0].with_name(f"{name}-SSSP").read_text().split()
    expected = {int(v): float(d) for v, d in zip(answer[::2], answer[1::2], strict=True)}
    near = by_user(graph, root, strategy)
    assert near == pytest.approx({v: d for v, d in expected.items() if d < np.inf}, rel=1e-12)
