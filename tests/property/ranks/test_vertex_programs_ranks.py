"""Whatever the policy, the number of parts and the order of messages: a program gives what it gives on one process."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.graph.partition import POLICIES, partition_graph
from cpu_engine.programs import run, run_on_parts
from cpu_engine.schedule import OperatorError
from tests.conftest import sweep
from tests.property.test_vertex_programs import (
    BFS,
    COMPONENTS,
    PAGERANK,
    SSSP,
    built,
    graphs,
    reach_with_labels,
    strategies,
)

EXAMPLES = 4 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 15
shapes = {
    "edges": graphs,
    "directed": st.booleans(),
    "parts": st.integers(1, 5),
    "data": st.data(),
}


def chooser(data):
    draws = iter(data.draw(st.lists(st.integers(0, 1 << 16), max_size=40)))
    return lambda choices: next(draws, 0) % choices


@pytest.mark.jitless
@pytest.mark.parametrize("sync", ["bsp", "basp"])
@pytest.mark.parametrize("policy", sweep(POLICIES))
@settings(max_examples=EXAMPLES, deadline=None)
@given(**shapes, strategy=strategies)
def test_values_that_spread(policy, sync, edges, directed, parts, data, strategy):
    graph = built(edges, directed)
    if graph.n == 0:
        return
    cut = partition_graph(graph, policy, parts, weighted=True)
    root = data.draw(st.integers(0, graph.n - 1))
    order = chooser(data)
    for program, options in [
        (BFS, {"start": [root], "strategy": strategy}),
        (SSSP, {"start": root, "delta": 4}),
        (COMPONENTS, {"strategy": strategy}),
    ]:
        name = program.offered.name
        one, many = run(program, graph, **options), run_on_parts(program, cut, sync=sync, chooser=order, **options)
        assert many[name].tolist() == one[name].tolist(), program.name


@pytest.mark.jitless
@pytest.mark.parametrize("policy", sweep(POLICIES))
@settings(max_examples=EXAMPLES, deadline=None)
@given(**shapes, strategy=strategies, hops=st.integers(0, 4))
def test_programs_in_rounds(policy, edges, directed, parts, data, strategy, hops):
    graph = built(edges, directed)
    if graph.n == 0:
        return
    cut = partition_graph(graph, policy, parts, weighted=True)
    marks = np.array(data.draw(st.lists(st.integers(0, 7), min_size=graph.n, max_size=graph.n)), np.uint64)
    program = reach_with_labels(marks, hops)
    many = run_on_parts(program, cut, strategy=strategy, chooser=chooser(data))
    assert many["labels"].tolist() == run(program, graph)["labels"].tolist()
    vertices = graph.user_ids.size
    options = {"vertices": vertices, "isolated": vertices - graph.n, "strategy": strategy}
    one, many = run(PAGERANK, graph, **options), run_on_parts(PAGERANK, cut, **options)
    np.testing.assert_allclose(many["rank"], one["rank"], rtol=1e-12)
    assert many.totals == pytest.approx(one.totals)


@pytest.mark.jitless
def test_what_counts_rounds_needs_rounds():
    graph = built([(0, 1, 1), (1, 2, 1)], False)
    cut = partition_graph(graph, "oec", 2)
    with pytest.raises(OperatorError, match="counts rounds, and basp has none"):
        run_on_parts(PAGERANK, cut, sync="basp", vertices=3, isolated=0)
    with pytest.raises(OperatorError, match="sync is 'async'"):
        run_on_parts(BFS, cut, sync="async", start=0)
