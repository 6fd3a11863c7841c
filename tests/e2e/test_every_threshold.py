"""Hybrid equals CPU-only whatever the core is: from no vertex to all of them, by the real worker, on real graphs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.bfs import make_engine
from hybrid.config import load_config
from hybrid.job.warm_up import looks_deep
from hybrid.offload.traverse import traverse_alone, traverse_together
from hybrid.results.trace import Trace
from hybrid.worker.solver import WorkerSolver
from tests.e2e.test_real_graphs import GRAPHS
from tests.proving import prove_or_repair

ENGINES = ("async", "level")
SMALL = 64  # vertices: every single threshold is tried
SIZES = (1, 64, 512)  # of larger graphs
DEEP_SIZES = (16,)  # roads: rounds follow one another all along the way


@pytest.fixture(scope="module")
def solver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerSolver]:
    """One worker for all cores, as a resident service would have it."""
    config = load_config(None, ["npu.device=cpu", "exchange.format=binary"])
    solver = WorkerSolver(config, tmp_path_factory.mktemp("worker") / "worker.log", Trace())
    solver.start()
    yield solver
    solver.close()


def small_graphs(shared: Path) -> Iterator[tuple[str, Graph]]:
    for properties in sorted((shared / "ldbc-validation" / "example-data-sets").glob("*.properties")):
        graph = build_graph(read_graph(properties), directed="undirected" not in properties.name)
        if graph.n <= SMALL:
            yield properties.stem, graph


def require_equal(graph: Graph, root: int, k: int, solver: WorkerSolver) -> int:
    """Share on core [0, k) gives what the CPU gives alone, without repair; the rounds that were merged."""
    solver.publish_edges(graph.out_offsets, graph.out_targets, k)
    merged = 0
    for name in ENGINES:
        engine = make_engine(name, CoreSplit(graph, k))
        alone = traverse_alone(engine, root).level.copy()
        found = traverse_together(engine, root, "share", solver, Trace())
        assert solver.usable, solver.failure
        assert prove_or_repair(graph, found, root, k, Trace()) == 0, (name, k)
        assert np.array_equal(found.level, alone), (name, k)
        merged += found.npu.rounds_merged
    return merged


@pytest.mark.heavy
def test_every_threshold_of_small_graphs(shared_data: Path, solver: WorkerSolver) -> None:
    tried = merged = 0
    for _, graph in small_graphs(shared_data):
        for k in range(graph.n + 1):
            merged += require_equal(graph, graph.n - 1, k, solver)
            tried += 1
    assert tried > 100
    assert merged > tried


@pytest.mark.heavy
@pytest.mark.parametrize("name", GRAPHS)
def test_thresholds_of_larger_graphs(name: str, shared_data: Path, solver: WorkerSolver) -> None:
    graph = build_graph(read_graph(shared_data / name), directed=GRAPHS[name])
    root = int(graph.in_sources[0])  # next to the largest hub
    sizes = DEEP_SIZES if looks_deep(graph) else SIZES
    assert sum(require_equal(graph, root, k, solver) for k in sizes) >= len(sizes)
