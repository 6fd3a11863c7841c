"""The choice of the core, by every rule, and of the mode."""

from __future__ import annotations

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from hybrid.config import load_config
from hybrid.config.schema import CoreConfig
from hybrid.planning.plan import choose_core_size, make_plan


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_graph(kronecker(9, 8, 1), directed=False)


DEGREE = np.array([90, 50, 50, 9, 3, 1, 1, 1])


@pytest.mark.parametrize(
    ("core", "size"),
    [
        (CoreConfig(threshold=50), 3),
        (CoreConfig(threshold=51), 1),
        (CoreConfig(threshold=91), 0),
        (CoreConfig(threshold=0), 8),
        (CoreConfig(quantile=0.5), 4),
        (CoreConfig(quantile=1.0), 0),
        (CoreConfig(quantile=0.0), 8),
        (CoreConfig(size=2), 2),
        (CoreConfig(size=0), 0),
        (CoreConfig(size=100), 8),
        (CoreConfig(size=8, max_bytes=4 * 25), 5),
        (CoreConfig(), 8),
        (CoreConfig(max_bytes=4 * 9), 3),
    ],
)
def test_rules(core: CoreConfig, size: int) -> None:
    assert choose_core_size(DEGREE, core)[0] == size


def test_core_edges_and_threshold(graph: Graph) -> None:
    plan = make_plan(graph, load_config(None, ["core.size=32"]))
    inside = sum(
        int(np.count_nonzero(graph.out_targets[graph.out_offsets[u] : graph.out_offsets[u + 1]] < 32))
        for u in range(32)
    )
    assert plan.core_edges == inside
    assert plan.density == inside / (32 * 31)
    assert plan.threshold == graph.degree()[31]


def test_automatic_core_is_dense_enough_and_fits(graph: Graph) -> None:
    plan = make_plan(graph, load_config(None, ["core.min_density=0.3", f"core.max_bytes={4 * 300 * 300}"]))
    assert 1 <= plan.core_size <= 300
    assert plan.density >= 0.3


def test_empty_core_turns_the_worker_off(graph: Graph) -> None:
    plan = make_plan(graph, load_config(None, ["core.size=0"]))
    assert (plan.mode, plan.core_size) == ("off", 0)


def test_graph_without_edges() -> None:
    none = np.empty(0, np.int64)
    graph = build_graph(EdgeList(none, none, id_range=(0, 3)), directed=False)
    assert make_plan(graph, load_config(None)).mode == "off"
