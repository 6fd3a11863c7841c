"""Whatever the graph, strategy and number of threads: the example programs give the naive references' values."""

from __future__ import annotations

import importlib.util
import os
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.programs import run
from tests.conftest import ROOT
from tests.naive import programs as naive

EXAMPLES = 8 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 40

graphs = st.integers(2, 20).flatmap(
    lambda n: st.lists(
        st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 9)), min_size=1, max_size=70
    )
)
strategies = st.sampled_from(["push", "pull", None])


def example(name: str) -> ModuleType:
    """One of the shipped examples, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "vertex_programs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BFS, SSSP, COMPONENTS = example("bfs").BFS, example("sssp").SSSP, example("components").COMPONENTS
PAGERANK, reach_with_labels = example("pagerank").PAGERANK, example("reach").reach_with_labels


def built(edges: list[tuple[int, int, int]], directed: bool, extra: int = 0) -> Graph:
    src, dst, weight = (np.array(column, np.int64) for column in zip(*edges, strict=True))
    vertices = np.arange(30 + extra)
    return build_graph(EdgeList(src, dst, weight=weight, vertices=vertices), directed=directed)


def arcs_of(graph: Graph) -> list[tuple[int, int, int]]:
    sources = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    return list(zip(sources.tolist(), graph.out_targets.tolist(), graph.weight.tolist(), strict=True))


def told(values: np.ndarray, neutral: int) -> list[int | None]:
    return [None if value == neutral else int(value) for value in values]


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(edges=graphs, directed=st.booleans(), strategy=strategies, threads=st.integers(1, 4), data=st.data())
def test_bfs(edges, directed, strategy, threads, data):
    graph = built(edges, directed)
    if graph.n == 0:
        return
    roots = data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=2))
    result = run(BFS, graph, start=roots, strategy=strategy, threads=threads)
    right = naive.shortest(graph.n, [(u, v, 1) for u, v, _ in arcs_of(graph)], roots)
    assert told(result["level"], BFS.offered.neutral) == right
    assert strategy is None or {step.direction for step in result.steps} == {strategy}


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(edges=graphs, directed=st.booleans(), delta=st.integers(1, 30), threads=st.integers(1, 4), data=st.data())
def test_sssp(edges, directed, delta, threads, data):
    graph = built(edges, directed)
    if graph.n == 0:
        return
    root = data.draw(st.integers(0, graph.n - 1))
    result = run(SSSP, graph, start=root, delta=delta, threads=threads)
    assert told(result["distance"], SSSP.offered.neutral) == naive.shortest(graph.n, arcs_of(graph), [root])


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(edges=graphs, directed=st.booleans(), strategy=strategies, threads=st.integers(1, 4))
def test_components(edges, directed, strategy, threads):
    graph = built(edges, directed)
    result = run(COMPONENTS, graph, strategy=strategy, threads=threads)
    assert result["label"].tolist() == naive.smallest_labels(graph.n, arcs_of(graph))


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(edges=graphs, directed=st.booleans(), strategy=strategies, threads=st.integers(1, 4), data=st.data())
def test_reach(edges, directed, strategy, threads, data):
    graph = built(edges, directed)
    marks = data.draw(st.lists(st.integers(0, 7), min_size=graph.n, max_size=graph.n))
    hops = data.draw(st.integers(0, 4))
    program = reach_with_labels(np.array(marks, np.uint64), hops)
    result = run(program, graph, strategy=strategy, threads=threads)
    assert result["labels"].tolist() == naive.labels_within(graph.n, arcs_of(graph), marks, hops)
    assert result.rounds <= hops


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(edges=graphs, directed=st.booleans(), strategy=strategies, threads=st.integers(1, 4))
def test_pagerank(edges, directed, strategy, threads):
    graph = built(edges, directed)
    vertices = graph.user_ids.size
    result = run(PAGERANK, graph, strategy=strategy, threads=threads, vertices=vertices, isolated=vertices - graph.n)
    right = naive.ldbc_ranks(graph.n, vertices - graph.n, arcs_of(graph), 10)
    np.testing.assert_allclose(result["rank"], right, rtol=1e-12)
