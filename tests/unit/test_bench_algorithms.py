"""Contests on the library's algorithms: findings agree on right answers and on nothing else; no time is asserted."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gap import parse_report
from benchmarks.options import ALGORITHMS
from benchmarks.questions import QUESTIONS, edge_weights, question_of, value_finding
from benchmarks.rounds import disagreement
from tests.unit.test_bench_command import QUICK, measured


def test_every_question_has_a_command() -> None:
    assert set(ALGORITHMS) == set(QUESTIONS)
    assert question_of("betweenness:3,7") == (QUESTIONS["betweenness"], [3, 7])
    assert question_of("level:pull@1+user") == (None, [])


def agree(name: str, one: list[float], other: list[float]) -> bool:
    question = QUESTIONS[name]
    return not disagreement(value_finding(question, np.array(one)), value_finding(question, np.array(other)))


def test_findings_know_what_matters() -> None:
    assert agree("wcc", [7, 7, 9], [0, 0, 1])
    assert not agree("wcc", [7, 7, 9], [0, 1, 1])
    assert agree("sssp", [0, 5, np.inf], [0, 5, -1])
    assert not agree("sssp", [0, 5, np.inf], [0, 6, -1])
    assert agree("betweenness", [1.0, 2.0, 0.0], [0.5, 1.0, 0.0])
    assert not agree("betweenness", [1.0, 2.0, 0.0], [2.0, 1.0, 0.0])
    assert agree("triangles", [12], [12])


def test_weights_are_the_same_from_both_ends() -> None:
    one, other = np.array([1, 2, 3]), np.array([5, 2, 1])
    weights = edge_weights(one, other)
    assert np.array_equal(weights, edge_weights(other, one))
    many = edge_weights(np.arange(10_000), np.arange(10_000) + 1)
    assert (many.min(), many.max()) == (1, 255)


@pytest.mark.parametrize("name", ["wcc", "triangles", "betweenness", "sssp"])
def test_a_contest_with_scipy(name: str) -> None:
    pytest.importorskip("scipy")
    report, _ = measured(name, "--scale", "8", "--roots", "2", "--trials", "1", *QUICK, "--peers", "scipy")
    ranked = {row["name"]: row["problem"] for row in report.data["contestants"]}
    assert ranked == dict.fromkeys(["tandem", "scipy"] if name in ("wcc", "sssp") else ["tandem"], "")
    assert report.data["without"] == ([] if name in ("wcc", "sssp") else ["scipy"])


@pytest.mark.parametrize(
    ("said", "found"),
    [("There are 128 components", 128), ("74720 triangles", 74720), ("SSSP Tree reaches 896 nodes", 896)],
)
def test_what_other_gap_programs_say(said: str, found: int) -> None:
    assert parse_report(f"Trial Time:          0.04670\n{said}\nVerification:           PASS\n").reached == found
