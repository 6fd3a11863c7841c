"""LDBC's validation graphs, those of its benchmark driver: every expected output, on one rank and on three.

The other collection of LDBC's, example-data-sets, is in test_algorithms.py and test_ranks_library_job.py.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.cli.commands.validate import validate_result
from hybrid.config import load_config
from hybrid.job.driver import run_job
from hybrid.registry import names_on_ranks
from hybrid.results.record import Finished
from tests.e2e.test_algorithms import LDBC, groups, pairs
from tests.property.ranks.test_ranks_library_job import run_on as library_on
from tests.unit.ranks.test_job import run_on as bfs_on

OPTIONS = {  # LDBC keeps them in its tests' code: (algorithm, directed) of the folders named after algorithms
    ("BFS", True): ["source=1"], ("BFS", False): ["source=1"],
    ("SSSP", True): ["source=1"], ("SSSP", False): ["source=1"],
    ("PR", True): ["pagerank.iterations=14"], ("PR", False): ["pagerank.iterations=26"],
    ("CDLP", True): ["cdlp.iterations=5"], ("CDLP", False): ["cdlp.iterations=5"],
}  # fmt: skip
EXAMPLE = {  # of the folder "example", as in its .properties in the other collection
    "BFS": "source", "SSSP": "source", "PR": "pagerank.iterations=2", "CDLP": "cdlp.iterations=2",
}  # fmt: skip
EXACT = ("BFS", "CDLP")
TOLERANCE = 1e-4  # LDBC's, relative, for every real number


@dataclass(frozen=True)
class Case:
    """An expected output and the settings that ask for it."""

    algorithm: str
    directed: bool
    output: Path
    settings: list[str]


def listed_settings(folder: Path, stem: str, directed: bool, scratch: Path) -> list[str]:
    """A graph in LDBC's two lists; the properties that tell what they are lie elsewhere, so they are written here."""
    scratch.mkdir()
    for kind in ("v", "e"):
        shutil.copy(folder / f"{stem}.{kind}", scratch / f"g.{kind}")
    (scratch / "g.properties").write_text(
        f"graph.g.vertex-file = g.v\ngraph.g.edge-file = g.e\ngraph.g.directed = {str(directed).lower()}\n"
        "graph.g.edge-properties.names = weight\ngraph.g.edge-properties.types = real\n"
    )
    return [f"graph.path={scratch / 'g.properties'}"]


def row_settings(path: Path, directed: bool) -> list[str]:
    return [f"graph.path={path}", "graph.format=adjacency", f"graph.directed={str(directed).lower()}"]


def cases_of(algorithm: str, shared: Path, scratch: Path) -> list[Case]:
    """Two graphs of the algorithm's own folder, two of the example, which are there as rows and as lists."""
    folder, found = shared / "ldbc-validation" / "validation-graphs", []
    for directed, short, long, source in ((True, "dir", "directed", 1), (False, "undir", "undirected", 2)):
        own = folder / algorithm.lower()
        graph = (
            listed_settings(own, f"{short}-input", directed, scratch / f"own-{short}")
            if algorithm == "SSSP"
            else row_settings(own / f"{short}-input", directed)
        )
        settings = [*graph, *OPTIONS.get((algorithm, directed), [])]
        found.append(Case(algorithm, directed, own / f"{short}-output", settings))
        chosen = EXAMPLE.get(algorithm, "")
        options = [f"source={source}"] if chosen == "source" else [chosen] if chosen else []
        output = folder / "example" / f"example-{long}-{algorithm}"
        lists = listed_settings(output.parent, f"example-{long}", directed, scratch / f"example-{short}")
        found.append(Case(algorithm, directed, output, [*lists, *options]))
        if algorithm != "SSSP":  # rows have no weights
            rows = row_settings(output.parent / f"example-{long}-input", directed)
            found.append(Case(algorithm, directed, output, [*rows, *options]))
    return found


def run_case(case: Case, ranks: int, scratch: Path) -> Finished:
    further = ["npu.mode=off", "result.forms=[ldbc]", "result.report=false", f"output={scratch / 'out'}"]
    config = load_config(None, [f"algorithm={LDBC[case.algorithm]}", *case.settings, *further])
    if ranks == 1:
        return run_job(config)
    return (bfs_on if case.algorithm == "BFS" else library_on)("aab"[:ranks], config)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("algorithm", LDBC)
def test_validation_graphs(algorithm: str, ranks: int, shared_data: Path, tmp_path: Path) -> None:
    if ranks > 1 and LDBC[algorithm] not in names_on_ranks():
        pytest.skip(f"{algorithm} runs on one rank")
    cases = cases_of(algorithm, shared_data, tmp_path)
    assert len(cases) == (4 if algorithm == "SSSP" else 6)
    for case in cases:
        finished = run_case(case, ranks, tmp_path)
        found, right = pairs(finished.folder / "ldbc.txt"), pairs(case.output)
        assert found.keys() == right.keys(), case
        if algorithm == "WCC":  # LDBC asks for the same groups, whatever they are called
            assert groups(found) == groups(right), case
        else:
            allowed = 0.0 if algorithm in EXACT else TOLERANCE
            wrong = [v for v, value in right.items() if not math.isclose(found[v], value, rel_tol=allowed)]
            assert not wrong, case
        assert finished.summary["certified"] is True
        assert validate_result(finished.folder, []) == 0


@pytest.mark.parametrize("kind", ["dir", "undir"])
def test_graphs_without_expected_outputs(kind: str, shared_data: Path, tmp_path: Path) -> None:
    """Those of LDBC's forest fire model: every algorithm's result is certified."""
    graph = shared_data / "ldbc-validation" / "validation-graphs" / "ffm" / f"{kind}-input"
    for algorithm in LDBC:
        case = Case(algorithm, kind == "dir", graph, [*row_settings(graph, kind == "dir"), "source=1"])
        assert run_case(case, 1, tmp_path).summary["certified"] is True
