"""A service whose engines are all wrong: every job and every query is answered exactly, and says what happened."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import hybrid
from hybrid.algorithms import description_of
from hybrid.registry import ALGORITHMS
from tests.service.conftest import GRAPH, Running, running
from tests.unit.cpu_engine.test_repair import asked


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("faulty")
    program = ("-m", "tests.service.faulty_service", ",".join(ALGORITHMS))
    with running(folder, f"graph.cache_dir={folder / 'cache'}", program=program) as found:
        yield found


@pytest.fixture(scope="module")
def graph() -> hybrid.Graph:
    return hybrid.generate("kronecker", scale=10, edge_factor=8, seed=1)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_jobs_are_exact(faulty: Running, graph: hybrid.Graph, name: str) -> None:
    sourced, source = description_of(name).sourced, int(graph.vertices[0])
    job = faulty.client.submit(GRAPH, name, source=source if sourced else None)
    summary = faulty.client.wait(job)["summary"]
    assert summary["certified"] is True
    (repair,) = summary["repairs"]
    assert repair["method"] == description_of(name).plain
    assert repair["reason"]
    assert "/" not in repair["record"], "clients are told no path of the machine"
    assert summary["runs"][0]["repaired"] == repair["changed"] > 0
    assert repair["record"] in faulty.log.read_text(), "the log has where it is kept"
    found, right = faulty.client.result(job), asked(graph, name)
    if name != "louvain":
        assert found[description_of(name).fields[0].name] == pytest.approx(right.values, rel=1e-4)


def test_many_sources_at_once(faulty: Running, graph: hybrid.Graph) -> None:
    sources = graph.vertices[:12].tolist()
    job = faulty.client.submit(GRAPH, "bfs", source=sources)
    summary = faulty.client.wait(job)["summary"]
    assert len(summary["repairs"]) == len([s for s in sources if graph.rows.internal_id(s) >= 0])
    for run, source in enumerate(sources):
        assert np.array_equal(faulty.client.result(job, run)["level"], graph.bfs(source).level)


def test_queries_are_exact(faulty: Running, graph: hybrid.Graph) -> None:
    source = int(graph.vertices[3])
    right = graph.bfs(source)
    sizes = np.bincount(right.level[right.level >= 0]).tolist()
    assert faulty.client.levels(GRAPH, source) == sizes
    near = {v: level for v, level in right.to_dict().items() if level <= 2}
    assert faulty.client.neighbours(GRAPH, source, 2) == near
    assert f"bfs from {source} failed its check" in faulty.log.read_text()
