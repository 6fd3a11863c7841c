"""Every algorithm as a whole job: right in the user's ids, proven again from the folder alone, refused if tampered."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.algorithms import description_of
from hybrid.cli.commands.run import account
from hybrid.cli.commands.validate import validate_result
from hybrid.config import load_config
from hybrid.errors import ConfigError, NotCertified
from hybrid.job.driver import run_job
from hybrid.registry import ALGORITHMS
from hybrid.results.record import Finished
from tests.json_schema import assert_records_fit
from tests.small_graphs import write_tailed_triangle

Job = Callable[..., Finished]
OTHERS = [name for name in ALGORITHMS if name != "bfs"]


@pytest.fixture
def house(tmp_path: Path) -> Job:
    """Jobs on a triangle 10, 20, 30 with a tail to 40, a pair 50, 60, and 70 alone."""
    path = write_tailed_triangle(tmp_path)

    def run(algorithm: str, *settings: str) -> Finished:
        common = [f"graph.path={path}", f"algorithm={algorithm}", f"output={tmp_path / 'out'}"]
        return run_job(load_config(None, [*common, "npu.mode=off", *settings]))

    return run


def array(finished: Finished, name: str) -> list[Any]:
    return np.load(finished.folder / f"{name}.npy").tolist()


EXPECTED: dict[str, dict[str, list[float]]] = {
    "sssp": {"distance": [0, 1, 3, 4, -1, -1, -1], "parent": [10, 10, 20, 30, -1, -1, -1]},
    "wcc": {"component": [10, 10, 10, 10, 50, 50, 70]},
    "scc": {"component": [10, 10, 10, 10, 50, 50, 70]},
    "cdlp": {"community": [10, 10, 10, 10, 50, 60, 70]},
    "kcore": {"core": [2, 2, 2, 1, 1, 1, 0]},
    "triangles": {"triangles": [1, 1, 1, 0, 0, 0, 0]},
    "lcc": {"coefficient": [1, 1, 1 / 3, 0, 0, 0, 0]},
    "closeness": {"closeness": [0.375, 0.375, 0.5, 0.3, 1 / 6, 1 / 6, 0]},
    "betweenness": {"betweenness": [0, 0, 4 / 30, 0, 0, 0, 0]},
}


@pytest.mark.parametrize("algorithm", EXPECTED)
def test_values_in_the_users_ids(house: Job, algorithm: str) -> None:
    finished = house(algorithm, "source=10")
    assert array(finished, "vertex") == [10, 20, 30, 40, 50, 60, 70]
    for name, values in EXPECTED[algorithm].items():
        assert array(finished, name) == pytest.approx(values)


@pytest.mark.parametrize("algorithm", OTHERS)
def test_a_job_writes_a_whole_folder_that_can_be_proven_again(house: Job, algorithm: str) -> None:
    finished = house(algorithm, "source=random:3", "result.forms=[text, ldbc]")
    summary, description = finished.summary, description_of(algorithm)
    assert summary["certified"] is True
    assert summary["npu"]["outcome"] == "off (as configured)"
    assert summary["headline"] in account(summary, finished.folder)
    rows = 3 if description.sourced else 1
    for field in description.fields:
        values = np.load(finished.folder / f"{field.name}.npy")
        assert values.dtype in field.dtypes
        assert values.shape == ((3, 7) if rows == 3 else (7,))
    suffix = f"-{summary['sources'][0]}" if description.sourced else ""
    for name in ("config.yaml", "trace.jsonl", "report.html", f"result{suffix}.txt", f"ldbc{suffix}.txt"):
        assert (finished.folder / name).stat().st_size > 0, name
    assert json.loads((finished.folder / "summary.json").read_text())["facts"] == summary["facts"]
    assert validate_result(finished.folder, []) == 0
    assert_records_fit(finished.folder)


@pytest.mark.parametrize("algorithm", OTHERS)
def test_a_tampered_result_is_refused(house: Job, algorithm: str) -> None:
    """A value that was changed, of the triangle or of the isolated vertex, cannot be proven."""
    folder = house(algorithm, "source=10", "result.report=false").folder
    for field in description_of(algorithm).fields:
        right = np.load(folder / f"{field.name}.npy")
        for position in (2, 6):
            wrong = right.copy()
            wrong[position] = 40 if wrong.dtype == np.int64 else wrong[position] + 1
            np.save(folder / f"{field.name}.npy", wrong)
            with pytest.raises(NotCertified, match="Fix: "):
                validate_result(folder, [])
        np.save(folder / f"{field.name}.npy", right)
    assert validate_result(folder, []) == 0


def test_facts_that_the_arrays_do_not_bear_out_are_refused(house: Job) -> None:
    folder = house("kcore").folder
    told = json.loads((folder / "summary.json").read_text())
    told["runs"][0]["facts"]["largest"] = 3
    (folder / "summary.json").write_text(json.dumps(told))
    with pytest.raises(NotCertified, match="does not tell what the arrays say"):
        validate_result(folder, [])


@pytest.mark.parametrize("strategy", ["push", "pull"])
def test_every_strategy_finds_the_same(house: Job, strategy: str) -> None:
    finished = house("sssp", "source=10", f"sssp.strategy={strategy}")
    assert array(finished, "distance") == EXPECTED["sssp"]["distance"]


def test_an_isolated_source_reaches_itself(house: Job) -> None:
    finished = house("sssp", "source=[70, 10]")
    assert array(finished, "distance")[0] == [-1, -1, -1, -1, -1, -1, 0]
    assert array(finished, "parent")[0] == [-1, -1, -1, -1, -1, -1, 70]
    assert [run["facts"]["reached"] for run in finished.summary["runs"]] == [1, 4]
    assert validate_result(finished.folder, []) == 0


def test_without_weights_every_edge_counts_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.el").write_text("1 2\n2 3\n3 4\n1 4\n")
    settings = [f"graph.path={tmp_path / 'g.el'}", "graph.directed=true", "algorithm=sssp", "source=1"]
    finished = run_job(load_config(None, [*settings, f"output={tmp_path / 'out'}"]))
    assert array(finished, "distance") == [0, 1, 2, 1]
    assert capsys.readouterr().err.count("no weights") == 1
    assert validate_result(finished.folder, []) == 0


def test_a_graph_without_edges(tmp_path: Path) -> None:
    (tmp_path / "g.v").write_text("1\n2\n3\n")
    (tmp_path / "g.e").write_text("")
    (tmp_path / "g.properties").write_text(
        "graph.g.vertex-file = g.v\ngraph.g.edge-file = g.e\ngraph.g.directed = false\n"
    )
    for algorithm in OTHERS:
        settings = [f"graph.path={tmp_path / 'g.properties'}", f"algorithm={algorithm}", "source=2"]
        finished = run_job(load_config(None, [*settings, f"output={tmp_path / algorithm}"]))
        assert validate_result(finished.folder, []) == 0, algorithm


def test_centralities_of_a_few(house: Job) -> None:
    """Closeness is of those asked for; betweenness from all vertices with edges one by one is what it is from all."""
    finished = house("closeness", "centrality.sources=[30, 40]", "centrality.harmonic=true")
    assert array(finished, "closeness") == pytest.approx([-1, -1, 3, 2, -1, -1, -1])
    assert validate_result(finished.folder, []) == 0
    finished = house("betweenness", "centrality.sources=[10, 20, 30, 40, 50, 60, 70]", "centrality.normalised=false")
    assert array(finished, "betweenness") == pytest.approx([0, 0, 2, 0, 0, 0, 0])
    assert validate_result(finished.folder, []) == 0


def test_ranks_that_do_not_settle_are_told_and_proven_as_such(house: Job) -> None:
    assert house("pagerank", "pagerank.definition=gap").summary["unfinished"] == ""
    finished = house("pagerank", "pagerank.definition=gap", "pagerank.iterations=1")
    run = finished.summary["runs"][0]
    assert finished.summary["certified"] is True
    assert run["counters"]["converged"] is False
    assert "not converged: after 1 iteration the ranks still change by" in account(finished.summary, finished.folder)
    assert "Not converged" in (finished.folder / "report.html").read_text()
    assert validate_result(finished.folder, []) == 0
    told = json.loads((finished.folder / "summary.json").read_text())
    told["runs"][0]["counters"]["change"] /= 100  # one more iteration moves these ranks further
    (finished.folder / "summary.json").write_text(json.dumps(told))
    with pytest.raises(NotCertified, match="off by"):
        validate_result(finished.folder, [])


def test_the_shipped_configuration(project_root: Path, tmp_path: Path) -> None:
    settings = ["graph.generator.scale=8", "algorithm=betweenness", f"output={tmp_path / 'out'}"]
    finished = run_job(load_config(project_root / "configs" / "algorithms.yaml", settings))
    assert finished.summary["runs"][0]["counters"]["roots"] == 64
    assert validate_result(finished.folder, []) == 0


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["algorithm=scc", "ranks=2"], "--set ranks=1"),
        (["algorithm=pagerank", "pagerank.tolerance=0.1"], "pagerank.definition: gap"),
        (["algorithm=sssp", "sssp.strategy=pull", "ranks=2"], "only delta"),
        (["algorithm=pagerank", "pagerank.damping=1"], "below 1"),
        (["algorithm=sssp", "sssp.delta=0"], "leave it null"),
        (["algorithm=sssp", "sssp.delta=5", "sssp.strategy=pull"], "no buckets"),
        (["algorithm=betweenness", "centrality.harmonic=true"], "algorithm: closeness"),
        (["centrality.sources=some"], "random:N, all"),
        (["algorithm=pagernk"], "did you mean pagerank?"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: list[str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, settings)
    assert told in str(caught.value)


# ------------------------------------------------------------------------------------------- LDBC's own outputs

LDBC = {"BFS": "bfs", "SSSP": "sssp", "WCC": "wcc", "PR": "pagerank", "CDLP": "cdlp", "LCC": "lcc"}
KEYS = {
    "bfs.source-vertex": "source",
    "sssp.source-vertex": "source",
    "pr.damping-factor": "pagerank.damping",
    "pr.num-iterations": "pagerank.iterations",
    "cdlp.max-iterations": "cdlp.iterations",
}


def ldbc_settings(properties: Path, algorithm: str) -> list[str]:
    """What LDBC's properties say of this algorithm, as overrides."""
    settings = [f"graph.path={properties}", f"algorithm={LDBC[algorithm]}"]
    for line in properties.read_text().splitlines():
        key, _, value = (part.strip() for part in line.partition("="))
        name = ".".join(key.split(".")[2:])
        if name.startswith(f"{algorithm.lower()}.") and name in KEYS:
            settings.append(f"{KEYS[name]}={value}")
    return settings


def pairs(path: Path) -> dict[int, float]:
    rows = (line.split() for line in path.read_text().splitlines() if line.strip())
    return {int(vertex): float(value) for vertex, value in rows}


def groups(values: dict[int, float]) -> set[frozenset[int]]:
    found: dict[float, set[int]] = {}
    for vertex, value in values.items():
        found.setdefault(value, set()).add(vertex)
    return {frozenset(group) for group in found.values()}


@pytest.mark.parametrize("algorithm", LDBC)
def test_ldbc_outputs_are_reproduced(algorithm: str, shared_data: Path, tmp_path: Path) -> None:
    cases = sorted((shared_data / "ldbc-validation" / "example-data-sets").glob(f"*-{algorithm}"))
    assert len(cases) == 4
    for expected in cases:
        properties = expected.with_name(expected.name.removesuffix(f"-{algorithm}") + ".properties")
        further = ["npu.mode=off", "result.forms=[ldbc]", "result.report=false", f"output={tmp_path / 'out'}"]
        finished = run_job(load_config(None, [*ldbc_settings(properties, algorithm), *further]))
        found, right = pairs(finished.folder / "ldbc.txt"), pairs(expected)
        assert found.keys() == right.keys()
        if algorithm == "WCC":  # LDBC asks for the same groups, whatever they are called
            assert groups(found) == groups(right), expected.name
            continue
        for vertex, value in right.items():
            allowed = {"BFS": 0.0, "CDLP": 0.0, "PR": 1e-4}.get(algorithm, 1e-9)  # LDBC allows 1e-4 of every real
            assert math.isclose(found[vertex], value, rel_tol=allowed), (expected.name, vertex)
        assert validate_result(finished.folder, []) == 0
