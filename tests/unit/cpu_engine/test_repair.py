"""A result that fails its check is computed again by a plain path, from Python and NetworkX; what is kept of it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import hybrid
from cpu_engine.graph.graph import Graph as Rows
from cpu_engine.pagerank import weighted as weighted_ranks
from hybrid.algorithms import description_of
from hybrid.algorithms.algorithm import Found, PlainCheck, Task
from hybrid.api.results import Result
from hybrid.config import load_config
from hybrid.errors import NotCertified
from hybrid.job import failure_records
from hybrid.job import proof as certify
from hybrid.job.driver import run_job
from hybrid.registry import ALGORITHMS
from tests.damage import break_engine, raised

METHODS = {
    "bfs": "bfs", "sssp": "sssp", "wcc": "components", "scc": "strong_components", "pagerank": "pagerank",
    "cdlp": "label_propagation", "louvain": "louvain", "kcore": "k_core", "triangles": "triangles",
    "lcc": "clustering", "closeness": "closeness", "betweenness": "betweenness",
}  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def graph(request: pytest.FixtureRequest) -> hybrid.Graph:
    random = np.random.default_rng(3)
    u, v, w = random.integers(0, 60, 300), random.integers(0, 60, 300), random.integers(0, 99, 300)
    return hybrid.from_edges(u, v, w, directed=request.param, vertices=range(64))


def asked(graph: hybrid.Graph, name: str, **options: Any) -> Result:
    arguments = (int(graph.vertices[0]),) if description_of(name).sourced else ()
    found: Result = getattr(graph, METHODS[name])(*arguments, **options)
    return found


def records(cache: Path) -> list[Path]:
    return sorted((cache / failure_records.FOLDER).iterdir())


def test_every_algorithm_has_its_way() -> None:
    assert set(METHODS) == set(ALGORITHMS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_python_gets_the_exact_answer(
    graph: hybrid.Graph, name: str, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    right = asked(graph, name)
    assert right.repair is None
    assert not cache.exists(), "nothing is kept of a result that passes"
    break_engine(name, monkeypatch.setattr)
    graph.__dict__.pop("searcher", None)
    with caplog.at_level(logging.WARNING):
        found = asked(graph, name)
    if name == "louvain":  # a heuristic: another answer, of about the same value
        assert found.facts["modularity"] == pytest.approx(right.facts["modularity"], abs=0.1)
    else:
        assert found.values == pytest.approx(right.values, rel=1e-4)
    assert found.certified
    assert found.repair is not None
    assert found.repair.method == description_of(name).plain
    assert found.repair.changed > 0
    assert f"computed again by {found.repair.method}" in repr(found)
    assert "failed its check" in caplog.text
    assert str(found.repair.record) in caplog.text
    assert len(records(cache)) == 1


def test_without_a_check_there_is_no_repair(graph: hybrid.Graph, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = graph.k_core()
    break_engine("kcore", monkeypatch.setattr)
    found = graph.k_core(check=False)
    assert found.repair is None
    assert not found.certified
    assert found.values.tolist() != right.values.tolist()
    assert not cache.exists()


def test_personalised_ranks(graph: hybrid.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from hybrid.algorithms.pagerank import PersonalisedPageRank

    right, honest = graph.personalised_pagerank(1), PersonalisedPageRank.run
    monkeypatch.setattr(PersonalisedPageRank, "run", lambda self, task: raised(honest(self, task)))
    found = graph.personalised_pagerank(1)
    assert found.repair is not None
    assert found.values == pytest.approx(right.values, abs=1e-4)


@pytest.mark.parametrize("definition", ["ldbc", "gap"])
def test_ranks_of_both_definitions(graph: hybrid.Graph, definition: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = graph.pagerank(definition=definition, iterations=50)
    break_engine("pagerank", monkeypatch.setattr)
    found = graph.pagerank(definition=definition, iterations=50)
    assert found.repair is not None
    assert found.values == pytest.approx(right.values, abs=1e-4)


def test_networkx(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    plain = nx.gnp_random_graph(40, 0.4, seed=4, directed=True)
    for u, v in plain.edges:
        plain.edges[u, v]["weight"] = 1 + (u * v) % 7
    ways: list[tuple[str, dict[str, Any]]] = [
        ("eccentricity", {}), ("clustering", {"weight": "weight"}), ("pagerank", {"weight": "weight"}),
        ("single_source_shortest_path_length", {"source": 0}),
    ]  # fmt: skip
    expected = [getattr(nx, name)(plain, **options) for name, options in ways]
    break_engine("bfs", monkeypatch.setattr)
    import hybrid.networkx_backend.scores as scores

    honest, other = scores.clustering_weighted, weighted_ranks.pagerank_weighted

    def wrong_shares(rows: Rows) -> Any:
        found = honest(rows)
        return type(found)(found.coefficient + 1, found.products, found.pairs)

    def wrong_ranks(*args: Any, **options: Any) -> Any:
        found = other(*args, **options)
        return type(found)(found.rank + 1, found.iterations, found.change, found.converged)

    monkeypatch.setattr(scores, "clustering_weighted", wrong_shares)
    monkeypatch.setattr(scores, "pagerank_weighted", wrong_ranks)
    for (name, options), right in zip(ways, expected, strict=True):
        with caplog.at_level(logging.WARNING):
            found = getattr(nx, name)(plain.copy(), **options, backend="tandem")
        assert "failed its check" in caplog.text, name
        assert found == pytest.approx(right, abs=1e-4), name
        caplog.clear()


def test_when_the_repair_fails_too_the_error_explains_and_names_what_was_kept(
    graph: hybrid.Graph, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(description_of("kcore"))
    honest = kind.recompute
    break_engine("kcore", monkeypatch.setattr)
    monkeypatch.setattr(kind, "recompute", lambda self, task: raised(honest(self, task)))
    with pytest.raises(NotCertified, match="no number is given") as refused:
        graph.k_core()
    (record,) = records(cache)
    assert str(record) in str(refused.value)
    assert record.name in refused.value.reason
    assert "core numbers that are too high" in refused.value.reason
    assert "Fix: run it again" in str(refused.value)
    told = json.loads((record / "record.json").read_text())
    assert told["repaired"] is False
    assert "too high" in told["reason_again"]


def test_a_record_reproduces_the_failure(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    u, v, w = random.integers(0, 50, 200), random.integers(0, 50, 200), random.integers(0, 9, 200)
    graph = hybrid.from_edges(u, v, w, directed=True)
    break_engine("sssp", monkeypatch.setattr)
    found = graph.sssp(int(u[3]), delta=4)
    assert found.repair is not None
    record = found.repair.record
    assert record is not None
    told = json.loads((record / "record.json").read_text())
    assert (told["algorithm"], told["source"], told["repaired"]) == ("sssp", int(u[3]), True)
    assert told["reason"] == found.repair.reason
    with np.load(record / "failed.npz") as failed:
        inner = graph.rows.internal_of_position
        assert np.array_equal(failed["distance"][inner] - 1, found.distance), "as the engine gave it"
    again = run_job(load_config(str(record / "config.yaml"), [f"output={tmp_path / 'out'}", "npu.mode=off"]))
    assert again.summary["options"]["sssp.delta"] == 4
    assert again.summary["sources"] == [int(u[3])]
    assert again.summary["repairs"][0]["reason"] == found.repair.reason, "the same failure on the same graph"
    assert np.load(again.folder / "distance.npy").tolist() == found.distance.tolist()


def test_few_and_small_records(graph: hybrid.Graph, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_engine("wcc", monkeypatch.setattr)
    monkeypatch.setattr(failure_records, "MOST_RECORDS", 3)
    names = [graph.components().repair.record.name for _ in range(5)]  # type: ignore[union-attr]
    assert [record.name for record in records(cache)] == sorted(names)[-3:]
    monkeypatch.setattr(failure_records, "MOST_BYTES", 100)
    repair = graph.components().repair
    assert repair is not None
    assert repair.record is not None
    assert sorted(one.name for one in repair.record.iterdir()) == ["config.yaml", "record.json"]
    assert json.loads((repair.record / "record.json").read_text())["graph"]["kept"] is False


def test_a_record_that_cannot_be_written_costs_no_result(
    graph: hybrid.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path / "file"))
    break_engine("wcc", monkeypatch.setattr)
    found = graph.components()
    assert found.certified
    assert found.repair is not None
    assert found.repair.record is None
    assert "could not be kept" in caplog.text
    assert "nothing could be kept of it" in str(found.repair)


def test_arrays_of_the_wrong_shape_are_a_failed_check(graph: hybrid.Graph) -> None:
    description = description_of("kcore")
    task = Task(graph.rows, certify.Config())
    for arrays in ({}, {"core": np.zeros(3, np.int32)}, {"core": np.array(["a"] * graph.rows.n)}):
        found, repair = certify.prove_found(description, task, Found(arrays), hybrid.results.trace.Trace())
        assert repair is not None
        assert "no array of numbers" in repair.reason
        assert description.check(task, found).holds


def test_pagerank_that_does_not_converge_is_no_failed_proof(graph: hybrid.Graph, cache: Path) -> None:
    found = graph.pagerank(definition="gap", tolerance=1e-300, iterations=2)
    assert not found.converged
    assert found.repair is None
    assert not cache.exists()


def test_a_check_that_refuses_everything_gives_no_number(graph: hybrid.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = PlainCheck(False, "no")
    for name in ALGORITHMS:
        monkeypatch.setattr(type(description_of(name)), "check", lambda self, task, found: refuse)
        with pytest.raises(NotCertified, match="no number is given"):
            asked(graph, name)
