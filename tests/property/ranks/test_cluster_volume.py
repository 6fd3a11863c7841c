"""What is predicted to be sent is what the parts send, on any graph, for any policy and number of parts."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph, predict
from cpu_engine.ranks.statistics import RankStatistics
from hybrid.planning.cluster import volume as cluster_volume
from hybrid.planning.cluster.volume import SearchVolume, search_volume
from tests.random_graphs import graphs

pytestmark = pytest.mark.shipped_thresholds  # the model predicts the volumes of the shipped ones
EXAMPLES = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 60


def search(graph: Graph, policy: str, parts: int, root: int) -> tuple[list[RankStatistics], SearchVolume]:
    """What the parts counted, and what was predicted for them."""
    engines = [RankEngine(part, engine="level") for part in partition_graph(graph, policy, parts)]
    outcomes = run_loopback([engine.search(root) for engine in engines])
    level = np.empty(graph.n, np.int32)
    for engine, outcome in zip(engines, outcomes, strict=True):
        level[engine.part.internal_of[: engine.part.masters]] = outcome.levels
    statistics = [outcome.statistics for outcome in outcomes]
    return statistics, search_volume(graph, predict(graph, policy, parts), level)


def assert_counted(statistics: list[RankStatistics], volume: SearchVolume) -> None:
    """All but the bytes of the updates, part by part where that is told."""
    assert [one.rounds for one in statistics] == [volume.rounds] * len(statistics)
    assert sum(one.updates for one in statistics) == sum(phase.updates for phase in volume.updating)
    assert sum(one.messages_sent for one in statistics) == sum(phase.messages for phase in volume.updating)
    parents = sum(phase.bytes_out.sum(axis=0) for phase in volume.asking)
    assert [one.as_dict()["parent_bytes"] for one in statistics] == parents.tolist()
    for phase in (*volume.updating, *volume.asking):
        assert phase.bytes_out.sum() == phase.bytes_in.sum()
    for name, phase in (("fold", volume.fold), ("spread", volume.spread)):
        started = [sum(entry[0] for entry in one.traffic.get(name, {}).values()) for one in statistics]
        assert started == (volume.rounds * phase.receivers).tolist(), "each receiver gets a message in every round"


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn=graphs(), parts=st.integers(1, 6), data=st.data())
def test_any_graph(policy, drawn, parts, data):
    root = data.draw(st.integers(0, drawn.graph.n - 1))
    assert_counted(*search(drawn.graph, policy, parts, root))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("parts", [2, 4, 9])
def test_bytes_of_a_power_law_graph(policy, parts, monkeypatch):
    """To the byte, by part, and however the vertices are dealt to chunks."""
    graph = build_graph(kronecker(12, 16, 1), directed=False)
    monkeypatch.setattr(cluster_volume, "_CHUNK_ARCS", 10_000)
    statistics, volume = search(graph, policy, parts, root=5)
    assert_counted(statistics, volume)
    sent = sum(phase.bytes_out.sum(axis=0) for phase in volume.updating)
    assert [one.bytes_sent for one in statistics] == sent.tolist()
    assert volume.fold.updates + volume.spread.updates > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_bytes_of_a_long_graph_are_near(policy):
    """Many rounds, most of them tiny: a part that pulled has no list and sends bits."""
    statistics, volume = search(build_graph(grid(60, 50), directed=False), policy, 4, root=5)
    assert_counted(statistics, volume)
    sent = sum(one.bytes_sent for one in statistics)
    assert sum(phase.bytes for phase in volume.updating) == pytest.approx(sent, rel=0.02)


def test_levels_beyond_a_byte_make_longer_questions():
    graph = build_graph(grid(1, 400), directed=False)
    end = int(np.argmin(np.diff(graph.out_offsets)))
    statistics, volume = search(graph, "oec", 3, root=end)
    assert volume.rounds > 255
    assert_counted(statistics, volume)
