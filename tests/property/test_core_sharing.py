"""Components and PageRank beside a solver that holds the core: honest, late, dying or lying, the result is right."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.components.check import check_components
from cpu_engine.components.core import CoreComponents, core_both_ways
from cpu_engine.components.weak import components
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.engine import PageRankEngine, pagerank
from cpu_engine.pagerank.personalised import ManyRanksEngine
from hybrid.offload.components import components_together
from hybrid.offload.pagerank import iterate_together, pagerank_together
from hybrid.offload.rounds import Rounds
from hybrid.results.trace import Trace
from tests.core_solvers import ScriptedCoreSolver, Word

EXAMPLES = 60
Pairs = list[tuple[int, int]]
pairs_of = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=40)


def built(pairs: Pairs, directed: bool) -> Graph:
    src, dst = np.array(pairs, np.int64).T
    return build_graph(EdgeList(src.copy(), dst.copy()), directed=directed)


def core_matrix(offsets: np.ndarray, targets: np.ndarray, k: int) -> np.ndarray:
    """[u, v] = 1 for each edge u -> v inside the core."""
    matrix = np.zeros((k, k))
    for u in range(k):
        for v in targets[offsets[u] : offsets[u + 1]]:
            if v < k:
                matrix[u, v] += 1
    return matrix


def spreading(matrix: np.ndarray) -> Word:
    """What an honest worker makes of labels: each the smallest that reaches it."""

    def close(labels: np.ndarray) -> np.ndarray:
        closed = labels.copy()
        for _ in range(labels.size):
            for u, v in np.argwhere(matrix):
                closed[v] = min(closed[v], closed[u])
        return closed

    return close


def script(data: st.DataObject, word: Word) -> ScriptedCoreSolver:
    delays = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4), label="looks until each answer")
    lifetime = data.draw(st.none() | st.integers(0, 12), label="looks until death")
    last = data.draw(st.none() | st.integers(0, 3), label="submissions that can be written")
    return ScriptedCoreSolver(word, itertools.cycle(delays), lifetime, last)


@pytest.mark.parametrize("mode", ["share", "race"])
@given(pairs=pairs_of, directed=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_components(mode: str, pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    graph = built(pairs, directed)
    k = data.draw(st.integers(0, graph.n), label="core size")
    split = CoreSplit(graph, k)
    solver = script(data, spreading(core_matrix(*core_both_ways(split), k)))
    found = components_together(CoreComponents(split), Rounds(solver, mode, Trace()), Trace())
    expected = components(graph)
    assert np.array_equal(found.label, expected.label)
    assert found.count == expected.count


@given(pairs=pairs_of, directed=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_false_labels_are_refused_or_found_out(pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    graph = built(pairs, directed)
    k = data.draw(st.integers(0, graph.n), label="core size")
    said = data.draw(st.lists(st.integers(-2, graph.n + 1), min_size=k, max_size=k), label="labels")
    solver = script(data, lambda labels: np.array(said, np.int32))
    rounds = Rounds(solver, "share", Trace())
    found = components_together(CoreComponents(CoreSplit(graph, k)), rounds, Trace())
    right = np.array_equal(found.label, components(graph).label)
    assert check_components(graph, found.label).holds == right, "what is false does not pass the check"


@pytest.mark.parametrize("definition", ["ldbc", "gap"])
@given(pairs=pairs_of, directed=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES // 2, deadline=None)
def test_pagerank(definition: str, pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    graph = built(pairs, directed)
    k = data.draw(st.integers(0, graph.n), label="core size")
    matrix = core_matrix(graph.out_offsets, graph.out_targets, k)
    solver = script(data, lambda given: (given @ matrix).astype(np.float32))
    engine = PageRankEngine(graph, core_size=k, definition=definition)
    rounds = Rounds(solver, data.draw(st.sampled_from(["share", "race"])), Trace())
    found = pagerank_together(engine, rounds, Trace(), tolerance=1e-7, iterations=150)
    expected = pagerank(graph, definition=definition, tolerance=1e-7, iterations=150)
    assert found.rank == pytest.approx(expected.rank, rel=2e-5)
    assert rounds.close().rounds_merged <= found.iterations


def test_many_ranks_go_out_as_a_batch() -> None:
    graph = built([(0, v) for v in range(1, 9)] + [(1, 2), (2, 3), (3, 1)], directed=False)
    sources, k = np.array([0, 3, 5]), 4
    matrix = core_matrix(graph.out_offsets, graph.out_targets, k)
    shapes = set()

    def word(given: np.ndarray) -> np.ndarray:
        shapes.add(given.shape)
        return (given @ matrix).astype(np.float32)

    engine, alone = ManyRanksEngine(graph, 3, core_size=k), ManyRanksEngine(graph, 3)
    rounds = Rounds(ScriptedCoreSolver(word, itertools.cycle([2])), "share", Trace())
    engine.begin(sources)
    alone.begin(sources)
    for _ in range(20):
        iterate_together(engine, rounds, Trace())
        alone.iterate()
    assert engine.rank() == pytest.approx(alone.rank(), rel=1e-4)
    assert shapes == {(3, k)}
    assert rounds.close().rounds_merged == 20
