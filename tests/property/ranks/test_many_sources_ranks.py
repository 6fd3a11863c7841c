"""Many sources on parts, 64 to a pass: whatever the graph, policy and order of messages, each search's own levels."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.many.engine import many_bfs
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.bfs.ranks.many import ManyBfsOnRanks
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, Part, partition_graph
from cpu_engine.ranks.split import PartSplit
from tests.random_graphs import graphs

EXAMPLES = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 40


def together(parts: list[Part], graph: Graph, roots: np.ndarray, chooser=None, **options: float) -> np.ndarray:
    """The levels by [root, vertex], from all parts."""
    engines = [ManyBfsOnRanks(PartSplit(part), **options) for part in parts]
    outcomes = []
    for _ in range(2):  # the second run finds the buffers used
        outcomes = run_loopback([engine.search(roots) for engine in engines], chooser)
    levels = np.full((roots.size, graph.n), -7, np.int64)
    for part, outcome in zip(parts, outcomes, strict=True):
        levels[:, part.internal_of[: part.masters]] = outcome.levels
    return levels


def one_by_one(parts: list[Part], graph: Graph, roots: np.ndarray) -> np.ndarray:
    engines = [RankEngine(part, engine="level", sync="bsp") for part in parts]
    levels = np.full((roots.size, graph.n), -7, np.int64)
    for i, root in enumerate(roots.tolist()):
        outcomes = run_loopback([engine.search(root) for engine in engines])
        for part, outcome in zip(parts, outcomes, strict=True):
            levels[i, part.internal_of[: part.masters]] = outcome.levels
    return levels


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn=graphs(), count=st.integers(1, 6), data=st.data())
def test_levels_are_those_of_each_search(policy, drawn, count, data):
    parts, graph = partition_graph(drawn.graph, policy, count), drawn.graph
    draws = iter(data.draw(st.lists(st.integers(0, 1 << 16), max_size=60), label="choices"))
    roots = np.array(data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=70), label="roots"))
    found = together(parts, graph, roots, lambda choices: next(draws, 0) % choices)
    distinct, which = np.unique(roots, return_inverse=True)
    assert np.array_equal(found, one_by_one(parts, graph, distinct)[which])


MEDIUM = {
    "kronecker": lambda: (kronecker(10, 8), False),
    "kronecker, directed": lambda: (kronecker(9, 4), True),
    "grid": lambda: (grid(40, 40), False),
    "path": lambda: (EdgeList(np.arange(300), np.arange(1, 301)), False),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", MEDIUM)
def test_larger_graphs_on_up_to_six_parts(name, policy):
    """Large enough that levels are pulled and depths need more than a byte; 150 roots are three passes."""
    edges, directed = MEDIUM[name]()
    graph = build_graph(edges, directed=directed)
    roots = np.random.default_rng(5).integers(0, graph.n, 150)
    right = many_bfs(graph, roots).level
    for count in range(1, 7):
        parts = partition_graph(graph, policy, count)
        assert np.array_equal(together(parts, graph, roots), right)
    assert np.array_equal(together(parts, graph, roots[:3], pull_share=0.0), right[:3])


def test_rounds_are_shared() -> None:
    graph = build_graph(kronecker(9, 8), directed=False)
    roots = np.arange(64)
    for part in (parts := partition_graph(graph, "cvc", 4)):
        assert part.masters
    outcomes = run_loopback([ManyBfsOnRanks(PartSplit(part)).search(roots) for part in parts])
    statistics = [outcome.statistics for outcome in outcomes]
    deepest = max(int(outcome.levels.max()) for outcome in outcomes)
    assert {one.rounds for one in statistics} == {deepest + 1}
    assert all(one.bytes_sent > 0 and one.edges > 0 and one.updates > 0 for one in statistics)
