"""The soak's own arithmetic: what it would find. And a few seconds of it on a real service, with a worker killed."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks.output import Report
from benchmarks.soak.check import check_query, check_run
from benchmarks.soak.command import soak
from benchmarks.soak.reference import Reference
from benchmarks.soak.report import Outcome, complaints, make_report
from benchmarks.soak.service import Leftovers
from benchmarks.soak.tally import Accepted, Sample, Spec, Tally, fate_of, trend
from hybrid.cli.commands import bench


def path_graph() -> Reference:
    """10 - 20 - 30, and 40 by itself."""
    return Reference("path", np.array([10, 20, 30, 40]), np.array([10, 20]), np.array([20, 30]), None, directed=False)


@pytest.mark.parametrize(
    ("state", "status", "deadline", "cancelled", "fate"),
    [
        ("done", None, False, False, "done"),
        ("done", None, False, True, "done"),
        ("cancelled", None, False, True, "cancelled"),
        ("cancelled", None, False, False, "lost"),
        ("failed", 504, True, False, "late"),
        ("failed", 504, False, False, "failed"),
        ("failed", 500, True, True, "failed"),
        ("running", None, False, False, "lost"),
    ],
)
def test_fate(state: str, status: int | None, deadline: bool, cancelled: bool, fate: str) -> None:
    job = Accepted("1", Spec("g", "wcc"), deadline=deadline, cancelled=cancelled)
    problem = None if status is None else {"status": status}
    assert fate_of(job, {"state": state, "problem": problem}) == fate
    assert fate_of(job, None) == "lost"


def test_false_answers_are_found() -> None:
    graph = path_graph()
    ask = {"source": 10, "target": 30}
    assert check_query(graph, "distance", ask, {"distance": 2}) == ""
    assert check_query(graph, "distance", ask, {"distance": 1})
    assert check_query(graph, "path", ask, {"distance": 2, "path": [10, 20, 30]}) == ""
    assert check_query(graph, "path", ask, {"distance": 2, "path": [10, 40, 30]})
    assert check_query(graph, "levels", {"source": 40}, {"sizes": [1], "reached": 1}) == ""
    asked = {"source": 10, "hops": 1, "offset": 0, "limit": 9}
    assert check_query(graph, "neighbours", asked, {"vertex": [10, 20], "distance": [0, 1], "total": 2}) == ""
    assert check_query(graph, "neighbours", asked, {"vertex": [10], "distance": [0], "total": 1})


def test_false_results_are_found() -> None:
    graph = path_graph()

    def complaint(algorithm: str, source: int | None = None, **columns: list[Any]) -> str:
        arrays = {"vertex": graph.ids, **{name: np.array(column) for name, column in columns.items()}}
        return check_run(graph, algorithm, {}, source, slice(None), arrays, {"modularity": 0.0})

    assert complaint("bfs", 10, level=[0, 1, 2, -1], parent=[10, 10, 20, -1]) == ""
    assert complaint("bfs", 10, level=[0, 1, 2, -1], parent=[10, 10, 10, -1])
    assert complaint("sssp", 10, distance=[0, 1, 1, -1], parent=[10, 10, 20, -1])
    assert complaint("wcc", component=[10, 10, 10, 40]) == ""
    assert complaint("wcc", component=[10, 10, 10, 10])
    assert complaint("kcore", core=[1, 1, 1, 0]) == ""
    assert complaint("triangles", triangles=[0, 0, 1, 0])
    assert complaint("louvain", community=[10, 10, 10, 40]) == ""
    assert complaint("louvain", community=[10, 10, 30, 40])  # another modularity than claimed


def test_trend_of_what_grows_and_what_does_not() -> None:
    seconds = list(range(0, 600, 5))
    assert trend(seconds, [100.0] * len(seconds)).growth == 0
    growing = trend(seconds, [100.0 + at / 60 for at in seconds])
    assert growing.per_minute == pytest.approx(1)
    assert growing.later_per_minute == pytest.approx(1)
    assert growing.last > growing.first


def outcome_of(**changes: Any) -> Outcome:
    tally = Tally()
    tally.judge("a question", "")
    samples = [Sample(at, {"service": 100 << 20}, {"service": 20}) for at in range(0, 600, 5)]
    kills = {
        "worker": {"moments": [20.0], "recovered_seconds": [2.0]},
        "rank": {"moments": [], "recovered_seconds": []},
    }
    counted = {"worker deaths": 1, "worker restarts": 1, "rank pool restarts": 0}
    known = Outcome(600.0, tally, samples, kills, counted, [], [2.0], ["g"], Leftovers(exit_code=0))
    for name, value in changes.items():
        setattr(known, name, value)
    return known


def test_verdict() -> None:
    assert complaints(outcome_of()) == []
    assert complaints(outcome_of(leftovers=Leftovers(exit_code=0, files=["tmp/x"])))
    assert complaints(outcome_of(leftovers=Leftovers(exit_code=1)))
    assert complaints(outcome_of(log_errors=["ERROR"]))
    never_back = {"worker": {"moments": [20.0], "recovered_seconds": []}}
    assert complaints(outcome_of(kills=never_back))
    grows = [Sample(at, {"service": (100 + at // 5) << 20}, {"service": 20}) for at in range(0, 600, 5)]
    assert complaints(outcome_of(samples=grows))
    wrong = outcome_of()
    wrong.tally.judge("a question", "another distance")
    report = make_report(wrong, argparse.Namespace(ranks=2))
    assert report.failed
    assert any("another distance" in line for line in report.lines)


def test_what_failed_is_in_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    for failed, code in ((True, 1), (False, 0)):
        module: Any = ModuleType("some_benchmark")
        module.execute = lambda options, failed=failed: Report("some", {}, failed=failed)
        monkeypatch.setitem(sys.modules, "some_benchmark", module)
        options = argparse.Namespace(benchmark_module="some_benchmark", json=None, plot=None)
        assert bench.execute(options) == code


@pytest.mark.heavy
@pytest.mark.timeout(300)  # in a fresh clone the service compiles meanwhile
def test_a_few_seconds_of_it() -> None:
    pytest.importorskip("mindspore", reason="the worker needs MindSpore")
    options = argparse.Namespace(
        seconds=15.0, kill_worker=4.0, kill_ranks=0, restart=False, ranks=2, scales=[8, 9], side=10, seed=1, log=None
    )
    outcome = soak(options, warm_up=False)
    assert complaints(outcome) == [], outcome.tally.details
    assert outcome.kills["worker"]["moments"]
    assert outcome.tally.counts["right"] > 50
    assert all(job.fate for job in outcome.tally.jobs.values())
