"""Core numbers on real graphs against a bucket queue in plain Python, and on shapes whose numbers are known."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.kcore.check import check_k_core
from cpu_engine.kcore.engine import k_core

with_compiler = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="large graphs take minutes without the compiler"
)
# The largest core numbers as the literature gives them (SNAP graphs as undirected simple graphs).
REAL = {
    "wiki-Vote/wiki-Vote.txt": (True, 53),
    "email-Enron/email-Enron.txt.gz": (False, 43),
    "soc-Epinions1/soc-Epinions1.txt.gz": (True, 67),
    "luxembourg_osm/luxembourg_osm.mtx.gz": (False, 2),
}


def bucket_queue(graph: Graph) -> list[int]:
    """Smallest degree first (Matula and Beck 1983)."""
    neighbours: list[set[int]] = [set() for _ in range(graph.n)]
    for u in range(graph.n):
        for v in graph.out_targets[graph.out_offsets[u] : graph.out_offsets[u + 1]].tolist():
            if u != v:
                neighbours[u].add(v)
                neighbours[v].add(u)
    left = [len(near) for near in neighbours]
    buckets: list[list[int]] = [[] for _ in range(max(left) + 1)]
    for v, degree in enumerate(left):
        buckets[degree].append(v)
    core, level, at = [-1] * graph.n, 0, 0
    while at < len(buckets):
        if not buckets[at]:
            at += 1
            continue
        v = buckets[at].pop()
        if core[v] >= 0 or left[v] != at:
            continue
        level = max(level, at)
        core[v] = level
        for w in neighbours[v]:
            if core[w] < 0:
                left[w] -= 1
                buckets[left[w]].append(w)
        at = max(at - 1, 0)
    return core


@with_compiler
@pytest.mark.parametrize("name", REAL)
def test_real_graphs(name: str, shared_data: Path) -> None:
    directed, largest = REAL[name]
    graph = build_graph(read_graph(shared_data / name), directed=directed)
    found = k_core(graph)
    assert found.largest == largest
    assert found.core.tolist() == bucket_queue(graph)
    assert check_k_core(graph, found.core).holds


@with_compiler
@pytest.mark.parametrize("directed", [False, True])
def test_many_levels(directed: bool) -> None:
    graph = build_graph(kronecker(12, 16, 2), directed=directed, self_loops="keep", duplicates="keep")
    found = k_core(graph)
    assert found.core.tolist() == bucket_queue(graph)
    assert check_k_core(graph, found.core).holds


@pytest.mark.jitless
def test_known_shapes() -> None:
    """A clique of five with a tail, a grid, a star, and nothing."""
    clique = [(u, v) for u in range(5) for v in range(u)] + [(4, 5), (5, 6)]
    ends = np.array(clique)
    graph = build_graph(EdgeList(ends[:, 0].copy(), ends[:, 1].copy()), directed=False)
    found = k_core(graph)
    assert dict(zip(graph.user_ids[graph.user_position].tolist(), found.core.tolist(), strict=True)) == {
        **dict.fromkeys(range(5), 4), 5: 1, 6: 1,
    }  # fmt: skip
    assert found.iterations == 2
    assert set(k_core(build_graph(grid(6, 7))).core.tolist()) == {2}
    star = build_graph(EdgeList(np.zeros(9, np.int64), np.arange(1, 10)), directed=True)
    assert set(k_core(star).core.tolist()) == {1}
    nobody = np.empty(0, np.int64)
    empty = k_core(build_graph(EdgeList(nobody, nobody)))
    assert (empty.core.size, empty.largest, empty.iterations) == (0, 0, 0)
    loop = build_graph(EdgeList(np.array([2]), np.array([2])), directed=False, self_loops="keep")
    assert k_core(loop).core.tolist() == [0]
    assert check_k_core(loop, np.zeros(1, np.int32)).holds


@pytest.mark.jitless
def test_what_is_wrong_is_said() -> None:
    graph = build_graph(EdgeList(np.array([0, 1]), np.array([1, 2])), directed=False)
    assert "too high" in check_k_core(graph, np.array([2, 1, 1], np.int32)).explain(graph)
    assert "too low" in check_k_core(graph, np.array([1, 0, 0], np.int32)).explain(graph)
    assert "too low" in check_k_core(graph, np.array([1, -1, 1], np.int32)).explain(graph)
    assert "witnesses" in check_k_core(graph, np.array([1, 1, 1], np.int32)).explain(graph)
