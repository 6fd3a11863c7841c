"""The certificate finds every way a BFS result can be wrong, and the repair makes it right."""

from __future__ import annotations

import numpy as np
import pytest

from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid
from cpu_engine.graph.graph import Graph
from hybrid.offload.traverse import Traversed, traverse_alone
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from tests.proving import prove_in_place


@pytest.fixture(scope="module")
def solved() -> tuple[Graph, np.ndarray, np.ndarray]:
    graph = build_graph(grid(5, 6), directed=False)
    found = traverse_alone(LevelBfs(CoreSplit(graph)), 0)
    return graph, found.level, found.parent


def test_right_result_is_certified(solved: tuple) -> None:
    graph, level, parent = solved
    certificate = certify(graph, level, parent, 0)
    assert certificate.holds
    assert certificate.examples == (-1, -1, -1, -1)


def test_every_single_change_of_a_level_is_found(solved: tuple) -> None:
    graph, level, parent = solved
    for vertex in range(graph.n):
        for wrong in {-2, -1, 0, 1, int(level[vertex]) - 1, int(level[vertex]) + 1} - {int(level[vertex])}:
            changed = level.copy()
            changed[vertex] = wrong
            assert not certify(graph, changed, parent, 0).holds, (vertex, wrong)


def test_every_false_parent_is_found(solved: tuple) -> None:
    graph, level, parent = solved
    for vertex in range(graph.n):
        row = set(graph.in_sources[graph.in_offsets[vertex] : graph.in_offsets[vertex + 1]].tolist())
        right = {vertex} if vertex == 0 else {u for u in row if level[u] == level[vertex] - 1}
        for wrong in set(range(-1, graph.n + 1)) - right:
            changed = parent.copy()
            changed[vertex] = wrong
            assert not certify(graph, level, changed, 0).holds, (vertex, wrong)


def test_repair_of_any_damage(solved: tuple) -> None:
    graph, level, parent = solved
    random = np.random.default_rng(5)
    for _ in range(20):
        damaged = level.copy()
        hit = random.choice(graph.n, random.integers(1, graph.n), replace=False)
        damaged[hit] = random.integers(-1, 12, hit.size)
        found = Traversed(damaged.copy(), parent.copy(), Tally(), 0, 0)
        wrong = np.count_nonzero(damaged != level)
        changed, repair = prove_in_place(graph, found, 0, graph.n, Trace())
        assert changed == wrong
        assert np.array_equal(found.level, level)
        assert certify(graph, found.level, found.parent, 0).holds
        assert (repair is not None) == (wrong > 0)
        assert found.npu.values_rejected == 0, "no worker took part, so none is blamed"
