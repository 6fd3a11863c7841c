"""Shortest paths on any graph, weights, strategy, limits and threads: Dijkstra's distances, and parents are a tree."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.delta import Buckets
from cpu_engine.sssp.engine import STRATEGIES, SsspEngine, sssp
from cpu_engine.sssp.rows import WeightedRows
from tests.naive import sssp as naive

JITLESS = os.environ.get("NUMBA_DISABLE_JIT") == "1"
EXAMPLES = 8 if JITLESS else 40
Edges = list[tuple[int, int, int]] | list[tuple[int, int, float]]

small = st.integers(0, 4)
wide = st.integers(0, 300) | st.integers(2**20, 2**40)
real = st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.0, 1e-20, 1e20])


def edges_of(weights: st.SearchStrategy) -> st.SearchStrategy[Edges]:
    return st.integers(2, 24).flatmap(
        lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), weights), min_size=1, max_size=90)
    )


any_edges = edges_of(small) | edges_of(wide) | edges_of(real)


def built(edges: Edges, directed: bool, rule: str = "drop") -> Graph:
    src, dst, weight = (np.array(column) for column in zip(*edges, strict=True))
    pairs = EdgeList(src.astype(np.int64), dst.astype(np.int64), weight)
    return build_graph(pairs, directed=directed, self_loops=rule, duplicates=rule)  # type: ignore[arg-type]


def check(graph: Graph, edges: Edges, directed: bool, root: int, distance: np.ndarray, parent: np.ndarray) -> None:
    certificate = check_sssp(graph, root, distance, parent)
    assert certificate.holds, certificate.explain(graph)
    user = [int(one) for one in graph.user_ids[graph.user_position]]
    reached = np.isfinite(distance) & (distance >= 0)
    found = {user[v]: distance[v].item() for v in range(graph.n) if reached[v]}
    assert found == naive.distances(edges, directed, user[root], distance.dtype.type(0).item())  # type: ignore[arg-type]
    parents = {user[v]: user[parent[v]] for v in range(graph.n) if parent[v] >= 0}
    assert naive.is_tree(edges, directed, user[root], found, parents)  # type: ignore[arg-type]


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(edges=any_edges, directed=st.booleans(), rule=st.sampled_from(["drop", "keep"]), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_strategy_is_exact(strategy: str, edges: Edges, directed: bool, rule: str, data: st.DataObject) -> None:
    graph = built(edges, directed, rule)
    if graph.n == 0:
        return
    engine = SsspEngine(graph, strategy=strategy)
    for root in data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=2), label="roots"):
        result = engine.run(root)
        check(graph, edges, directed, root, result.distance, result.parent)


Solver = Callable[[WeightedRows, type], Buckets]
SOLVERS: dict[str, Solver] = {
    "a few bins": lambda rows, dtype: Buckets(rows, dtype, 1, (), bins=3, serial_edges=0),
    "narrow stages": lambda rows, dtype: Buckets(rows, dtype, 2, (1, 3), pushed_share=0.0, serial_edges=0),
    "stages at once, alone": lambda rows, dtype: Buckets(rows, dtype, 4, (2,), pushed_share=0.0),
    "stages half way, three lanes": lambda rows, dtype: Buckets(
        rows, dtype, 1, (1, 2, 9), pushed_share=0.4, serial_edges=0, threads=3, bins=5
    ),
    "one bucket, shared": lambda rows, dtype: Buckets(rows, dtype, None, (), serial_edges=0, threads=3),
}


@pytest.mark.jitless
@pytest.mark.parametrize("solver", SOLVERS)
@given(edges=edges_of(small) | edges_of(real), directed=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_buckets_with_low_limits(solver: str, edges: Edges, directed: bool, data: st.DataObject) -> None:
    graph = built(edges, directed)
    if graph.n == 0:
        return
    rows = WeightedRows(graph)
    buckets = SOLVERS[solver](rows, np.float64 if rows.is_float else np.int32)
    root = data.draw(st.integers(0, graph.n - 1))
    rounds = data.draw(st.integers(1, 5))
    buckets.start(root)
    while buckets.waiting:
        buckets.step(rounds)
    expected = sssp(graph, root, strategy="pull").distance
    none = buckets.dist == buckets.unreached
    assert np.array_equal(np.where(none, np.inf if rows.is_float else -1, buckets.dist), expected)


def close_core(graph: Graph, k: int, values: np.ndarray) -> np.ndarray:
    """Core values after the core's edges were relaxed until nothing changes."""
    weight = np.ones(graph.m, np.int64) if graph.weight is None else graph.weight
    best = {v: values[v].item() for v in range(k) if 0 <= values[v] < np.inf}
    changed = True
    while changed:
        changed = False
        for u in list(best):
            for e in range(graph.out_offsets[u], graph.out_offsets[u + 1]):
                v, reach = int(graph.out_targets[e]), best[u] + weight[e].item()
                if v < k and reach < best.get(v, np.inf):
                    best[v], changed = reach, True
    closed = values.copy()
    for v, value in best.items():
        closed[v] = value
    return closed


@pytest.mark.jitless
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(edges=edges_of(small) | edges_of(real), directed=st.booleans(), withhold=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_with_a_solver_for_the_core(
    strategy: str, edges: Edges, directed: bool, withhold: bool, data: st.DataObject
) -> None:
    graph = built(edges, directed)
    if graph.n == 0:
        return
    k = data.draw(st.integers(0, graph.n), label="core size")
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    answers = data.draw(st.integers(0, 30), label="answers until the solver dies")
    engine = SsspEngine(graph, core_size=k, strategy=strategy)
    engine.start(root, withhold_core=withhold)
    gone = not withhold
    while True:
        while engine.can_step():
            engine.step()
        if gone:
            break
        if answers == 0:
            engine.take_core_back()
            gone = True
        else:
            answers -= 1
            values = engine.core_values()
            closed = close_core(graph, k, values)
            gone = engine.adopt(closed).adopted == 0 and not engine.can_step()
    distance, parent = engine.finish()
    check(graph, edges, directed, root, distance, parent)


@pytest.mark.jitless
@given(edges=any_edges, directed=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_going_on_from_longer_paths(edges: Edges, directed: bool, data: st.DataObject) -> None:
    graph = built(edges, directed)
    if graph.n == 0:
        return
    root = data.draw(st.integers(0, graph.n - 1))
    right = sssp(graph, root)
    forgotten = np.array(data.draw(st.lists(st.booleans(), min_size=graph.n, max_size=graph.n)))
    start = right.distance.copy()
    start[forgotten] = np.inf if start.dtype.kind == "f" else -1
    engine = SsspEngine(graph)
    engine.resume(start, root)
    while engine.can_step():
        engine.step()
    distance, parent = engine.finish()
    assert np.array_equal(distance, right.distance)
    assert check_sssp(graph, root, distance, parent).holds


@pytest.mark.jitless
@given(edges=edges_of(small) | edges_of(real), directed=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_certificate_finds_any_change(edges: Edges, directed: bool, data: st.DataObject) -> None:
    graph = built(edges, directed)
    if graph.n < 2:
        return
    root, v = data.draw(st.integers(0, graph.n - 1)), data.draw(st.integers(0, graph.n - 1))
    right = sssp(graph, root)
    distance, parent = right.distance.copy(), right.parent.copy()
    if data.draw(st.booleans(), label="the distance"):
        value = data.draw(st.sampled_from([-1, 0, 1, 2, 7]))
        if value == distance[v] or (value == -1 and not np.isfinite(distance[v])):
            return
        distance[v] = value
        assert not check_sssp(graph, root, distance, parent).holds
    else:
        parent[v] = data.draw(st.integers(-2, graph.n))
        user = [int(one) for one in graph.user_ids[graph.user_position]]
        reached = np.isfinite(distance) & (distance >= 0)
        inside = (parent >= -1) & (parent < graph.n)
        true = naive.is_tree(
            edges,  # type: ignore[arg-type]
            directed,
            user[root],
            {user[u]: distance[u].item() for u in range(graph.n) if reached[u]},
            {user[u]: user[parent[u]] for u in range(graph.n) if inside[u] and parent[u] >= 0},
        )
        assert check_sssp(graph, root, distance, parent).holds == (true and bool(inside.all()))
