"""Graph500's kernel 3: weights, the rules for shortest paths against lies, the command line, no figures for a lie."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hybrid.cli
import hybrid.experiments.graph500.benchmark as runner
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.sssp.engine import SsspEngine, SsspResult
from hybrid.errors import NotCertified
from hybrid.experiments.graph500.benchmark import Plan, generate, run_benchmark, validate
from hybrid.experiments.graph500.rules import check_paths
from tests.naive.sssp import distances

# A ring 0-1-2-3-4, 1-2 once more and heavier, a loop at 3, an edge without length 4-7, and 5-6 apart; 8 is isolated.
SRC = np.array([0, 1, 2, 0, 4, 2, 3, 4, 5], np.int64)
DST = np.array([1, 2, 3, 4, 3, 1, 3, 7, 6], np.int64)
WEIGHT = np.array([0.5, 0.25, 0.125, 0.5, 0.75, 0.875, 0.5, 0.0, 0.25])
RING = EdgeList(SRC, DST, WEIGHT, id_range=(0, 9), directed=False)
TREE = [0, 0, 1, 2, 0, -1, -1, 4, -1]
DISTANCE = [0, 0.5, 0.75, 0.875, 0.5, np.inf, np.inf, 0.5, np.inf]


def test_right_paths_pass_and_their_edges_are_counted() -> None:
    depth, edges = check_paths(RING, np.array(TREE), np.array(DISTANCE), 0)
    assert depth.tolist() == [0, 1, 2, 3, 1, -1, -1, 2, -1]
    assert edges == 8


@pytest.mark.parametrize(
    ("parents", "lengths", "reason"),
    [
        ({0: 1}, {}, "parent of the search key"),
        ({2: 9}, {}, "not a vertex"),
        ({4: 7, 7: 4}, {}, "cycle"),
        ({}, {0: 0.5}, "the distance of the search key is 0.5"),
        ({}, {2: np.inf}, "does not allow"),
        ({}, {8: 1.0}, "does not allow"),
        ({}, {2: -0.75}, "does not allow"),
        ({}, {2: np.nan}, "does not allow"),
        ({7: -1}, {7: np.inf}, "does not span the component"),
        ({5: 0}, {5: 1.0}, "does not span the component"),
        ({}, {3: 1.0}, "are shorter than their ends are apart"),
        ({3: 4}, {3: 1.25}, "are shorter than their ends are apart"),
        ({}, {7: 0.25}, "are shorter than their ends are apart"),
        ({3: 4}, {}, "not in the input with the length that the distances say, for example 4 - 3"),
        ({3: 0}, {}, "not in the input with the length that the distances say, for example 0 - 3"),
        ({}, {2: 0.7, 3: 0.825}, "not in the input with the length that the distances say, for example 1 - 2"),
    ],
)
def test_wrong_paths_are_refused(parents: dict[int, int], lengths: dict[int, float], reason: str) -> None:
    parent, distance = np.array(TREE), np.array(DISTANCE)
    for v, p in parents.items():
        parent[v] = p
    for v, d in lengths.items():
        distance[v] = d
    with pytest.raises(NotCertified, match=reason) as refused:
        check_paths(RING, parent, distance, 0)
    assert "search key 0" in str(refused.value)
    assert "no figures" in str(refused.value)


def test_the_certificate_is_asked_as_well() -> None:
    """Right in the input's numbers, wrong in the internal ones: somebody mapped them falsely."""
    graph = build_graph(RING)
    root = graph.internal_id(0)
    found = SsspEngine(graph).run(root)
    right = (np.array(TREE), np.array(DISTANCE))
    checked = validate(graph, RING, root, found.distance, found.parent, *right)
    assert (checked.key, checked.edges, checked.reached, checked.depth) == (0, 8, 6, 3)
    found.distance[graph.internal_id(2)] += 1
    with pytest.raises(NotCertified, match=r"search key 0: .*lead nearer"):
        validate(graph, RING, root, found.distance, found.parent, *right)


def test_weights_are_reproducible_and_within_range() -> None:
    plan = Plan(10, kernel="sssp")
    one, again, other = (
        generate(plan, 10).weight,
        generate(plan, 10).weight,
        generate(Plan(10, seed=3, kernel="sssp"), 10),
    )
    assert one is not None
    assert again is not None
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other.weight)
    assert one.size == 16 << 10
    assert one.min() >= 0
    assert one.max() < 1
    assert abs(one.mean() - 0.5) < 0.02
    assert generate(Plan(10), 10).weight is None


def test_a_run_equals_dijkstra() -> None:
    plan = Plan(scale=7, edge_factor=4, keys=12, kernel="sssp")
    outcome = run_benchmark(plan)
    edges = generate(plan, 7)
    assert edges.weight is not None
    listed = list(zip(edges.src.tolist(), edges.dst.tolist(), edges.weight.tolist(), strict=True))
    assert len(outcome.searches) == 12
    graph = build_graph(edges, directed=False)
    for search in outcome.searches:
        right = distances(listed, False, search.key, 0.0)
        assert search.reached == len(right)
        assert search.edges == sum(u in right for u in edges.src.tolist())
        found = SsspEngine(graph).run(graph.internal_id(search.key)).distance
        for v, distance in right.items():
            assert found[graph.internal_id(v)] == pytest.approx(distance, rel=1e-12)


@pytest.fixture
def quiet_cli(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hybrid.cli, "raise_on_signals", lambda: None)


@pytest.mark.usefixtures("quiet_cli")
def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    words = ["graph500", "--scale", "8", "--roots", "9", "--kernel", "sssp", "--output", str(file)]
    assert hybrid.cli.main(words) == 0
    printed = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    written = json.loads(file.read_text())
    assert printed["NBFS"].strip() == "9"
    times = {f"sssp {name}_{what}" for name in ("min", "median", "thirdquartile", "max") for what in ("time", "TEPS")}
    assert times | {"sssp harmonic_mean_TEPS", "sssp harmonic_stddev_TEPS", "sssp max_validate"} <= set(printed)
    assert not any(name.startswith("bfs") for name in printed)
    assert written["validated"] is True
    assert (written["plan"]["kernel"], written["plan"]["engine"]) == ("sssp", "sssp")
    assert len(written["searches"]) == 9


@pytest.mark.usefixtures("quiet_cli")
def test_false_paths_give_no_figures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def lie_at_last(engine: SsspEngine, root: int) -> SsspResult:
        found = honest(engine, root)
        asked.append(root)
        if len(asked) == 6:
            found.distance[np.argmax(np.where(np.isfinite(found.distance), found.distance, -1))] *= 0.999
        return found

    honest = SsspEngine.run
    monkeypatch.setattr(runner, "_warm_up", lambda plan: None)
    monkeypatch.setattr(SsspEngine, "run", lie_at_last)
    file = tmp_path / "out.json"
    assert hybrid.cli.main(["graph500", "--scale", "8", "--kernel", "sssp", "--output", str(file)]) == 5
    output = capsys.readouterr()
    assert "search key" in output.err
    assert output.out == ""
    assert not file.exists()
