"""Shortest paths by loops: right on any graph, and no more than 1.5 times the edges of the tuned delta-stepping."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.sssp.delta import Buckets
from cpu_engine.sssp.engine import choose_delta, choose_spans, sssp
from cpu_engine.sssp.rows import prepare_rows
from tests.conftest import ROOT
from tests.naive import programs as naive
from tests.property.test_vertex_programs import arcs_of, built, example

EXAMPLES = 6 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 40
BAR = 1.5


def staged() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sssp_stages", ROOT / "examples" / "sssp_stages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks its types up
    spec.loader.exec_module(module)
    return module


STAGES = staged()
StagedPaths = STAGES.StagedPaths
graphs = st.integers(2, 20).flatmap(
    lambda n: st.lists(
        st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 40)), min_size=1, max_size=120
    )
)


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(edges=graphs, directed=st.booleans(), threads=st.integers(1, 3), data=st.data())
def test_stages_find_the_distances(edges, directed, threads, data):
    graph = built(edges, directed)
    if graph.n == 0:
        return
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(STAGES, "MIN_DEGREE", 0)  # bounds even where they do not pay
        found = StagedPaths(graph, threads=threads, delta=data.draw(st.integers(1, 30))).run(root)
    expected = naive.shortest(graph.n, arcs_of(graph), [root])
    assert found.distance.tolist() == [-1 if one is None else one for one in expected]


def weighted(edges: EdgeList) -> Graph:
    weight = np.random.default_rng(5).integers(1, 256, edges.src.size)
    return build_graph(EdgeList(edges.src, edges.dst, weight=weight), directed=False)


def relaxed_by_tuned_steps(graph: Graph, root: int) -> int:
    rows = prepare_rows(graph)
    buckets = Buckets(rows, np.int64, choose_delta(rows), choose_spans(rows), threads=1)
    buckets.start(root)
    edges = 0
    while buckets.waiting:
        edges += buckets.step().edges
    return edges


@pytest.mark.parametrize("edges", [kronecker(13), grid(60, 60)], ids=["kronecker", "grid"])
def test_the_loops_look_at_few_edges(edges):
    """Edges whose target's distance was compared: against the tuned delta-stepping, and a perfect priority queue."""
    graph = weighted(edges)
    for root in (0, graph.n // 2):
        tuned = sssp(graph, root)
        found = StagedPaths(graph, threads=1).run(root)
        assert found.distance.tolist() == tuned.distance.tolist()
        assert found.edges <= BAR * relaxed_by_tuned_steps(graph, root)
        assert found.decreases <= found.edges
        once_each = int(np.diff(graph.out_offsets)[tuned.distance >= 0].sum())
        distance, report = example("sssp_loop").shortest_paths(graph, root, 4, threads=1)
        assert distance.tolist() == tuned.distance.tolist()
        assert once_each <= report.work.sum() <= BAR * once_each
