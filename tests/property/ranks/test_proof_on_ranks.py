"""The proof on ranks finds what the proof on the whole graph finds: the same claims, counted the same."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.certificate import Certificate, certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.ranks.proof import certify_on_ranks
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph
from hybrid.offload.traverse import traverse_alone
from tests.random_graphs import graphs

EXAMPLES = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 50


def search(graph: Graph, root: int) -> tuple[np.ndarray, np.ndarray]:
    found = traverse_alone(LevelBfs(CoreSplit(graph)), root)
    return found.level.copy(), found.parent.copy()


def prove(graph: Graph, policy: str, ranks: int, level: np.ndarray, parent: np.ndarray, root: int) -> Certificate:
    parts = partition_graph(graph, policy, ranks)
    own = [part.internal_of[: part.masters] for part in parts]
    proofs = [certify_on_ranks(part, level[mine], parent[mine], root) for part, mine in zip(parts, own, strict=True)]
    found = run_loopback(proofs)
    assert all(one == found[0] for one in found), "every rank comes to the same certificate"
    return found[0]


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn=graphs(), ranks=st.integers(1, 6), data=st.data())
def test_a_false_value_is_found_exactly_when_one_rank_finds_it(policy, drawn, ranks, data):
    graph = drawn.graph
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    level, parent = search(graph, root)
    assert prove(graph, policy, ranks, level, parent, root).holds
    for _ in range(data.draw(st.integers(1, 3), label="false values")):
        vertex = data.draw(st.integers(0, graph.n - 1), label="at vertex")
        if data.draw(st.booleans(), label="a level"):
            level[vertex] = data.draw(st.integers(-2, 6), label="becomes")
        else:
            parent[vertex] = data.draw(st.integers(-2, graph.n + 1), label="becomes")
    mine, right = prove(graph, policy, ranks, level, parent, root), certify(graph, level, parent, root)
    assert mine.findings == right.findings
    assert [example >= 0 for example in mine.examples] == [example >= 0 for example in right.examples]


@pytest.mark.parametrize("policy", POLICIES)
def test_medium_graphs(policy):
    graph = build_graph(kronecker(12, 8))
    level, parent = search(graph, 5)
    rng = np.random.default_rng(1)
    for ranks in (1, 2, 5):
        assert prove(graph, policy, ranks, level, parent, 5).holds
        for _ in range(3):
            false_level, false_parent = level.copy(), parent.copy()
            false_level[rng.integers(0, graph.n, 3)] += rng.integers(-1, 2, 3).astype(np.int32)
            false_parent[rng.integers(0, graph.n, 3)] = rng.integers(0, graph.n, 3)
            found = prove(graph, policy, ranks, false_level, false_parent, 5)
            assert found.findings == certify(graph, false_level, false_parent, 5).findings
