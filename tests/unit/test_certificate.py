"""The certificate finds every way a BFS result can be wrong, and the repair makes it right."""

from __future__ import annotations

import numpy as np
import pytest

from cpu_engine.algorithms.bfs_level import LevelBfs
from cpu_engine.algorithms.certificate import certify, repair
from cpu_engine.algorithms.traversal import CoreSplit
from cpu_engine.graph.build import build_graph
from cpu_engine.graph.generators import grid
from cpu_engine.graph.graph import Graph
from hybrid.traverse import traverse_alone


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
    graph, level, _ = solved
    random = np.random.default_rng(5)
    for _ in range(200):
        damaged = level.copy()
        hit = random.choice(graph.n, random.integers(1, graph.n), replace=False)
        damaged[hit] = random.integers(-1, 12, hit.size)
        mended = repair(graph, damaged, 0)
        assert np.array_equal(mended.level, level)
        assert certify(graph, mended.level, mended.parent, 0).holds
        assert mended.changed == np.count_nonzero(damaged != level)
