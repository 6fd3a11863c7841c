"""Jobs on real ranks, started as people start them: by `ranks:` in the configuration, and inside a foreign mpirun."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.config import load_config
from hybrid.results.record import Finished
from tests.conftest import heavy
from tests.e2e.conftest import assert_exact, kronecker_pairs
from tests.json_schema import assert_records_fit
from tests.mpi.jobs import Jobs, finish, foreign_mpirun, jobs_in

SMALL = ["graph.generator.edge_factor=8"]  # the graph of kronecker_pairs


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with jobs_in(tmp_path) as started:
        yield started


def finished(jobs: Jobs) -> Finished:
    return Finished(jobs.out, json.loads((jobs.out / "summary.json").read_text()))


@pytest.mark.parametrize(
    ("ranks", "engine", "policy", "sync"),
    [
        (2, "async", "auto", "basp"),
        (2, "level", "iec", "bsp"),
        heavy(3, "async", "uvc", "bsp"),
        heavy(4, "level", "auto", "bsp"),
    ],
)
def test_ranks_in_the_configuration_are_enough(jobs: Jobs, ranks: int, engine: str, policy: str, sync: str) -> None:
    settings = [f"ranks={ranks}", f"engine={engine}", f"cluster.policy={policy}", f"cluster.sync={sync}"]
    done = jobs.run(*SMALL, *settings)
    assert done.returncode == 0, done.stderr
    result = finished(jobs)
    assert_exact(result, kronecker_pairs(), directed=False)
    assert result.summary["ranks"]["ranks"] == ranks
    assert_records_fit(jobs.out)
    assert len(result.summary["ranks"]["hosts"]) == 1
    assert done.stdout.count("certified: yes") == 1, "one rank speaks"
    assert "MPI_" not in done.stderr
    events = [json.loads(line) for line in (jobs.out / "trace.jsonl").read_text().splitlines()]
    assert {f"rank {rank}" for rank in range(ranks)} <= {event["actor"] for event in events}


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [("pagerank", ()), ("bfs", ("npu.batch=4", "source=random:6")), heavy("wcc", ()), heavy("sssp", ())],
)
def test_a_worker_beside_ranks_whatever_the_algorithm(jobs: Jobs, algorithm: str, settings: tuple[str, ...]) -> None:
    """Real ranks and a real worker: every round is merged, and the result is the one of one rank."""
    done = jobs.run(
        *SMALL, "ranks=2", f"algorithm={algorithm}", "npu.mode=share", "core.size=40", "compare.repeats=1", *settings
    )
    assert done.returncode == 0, done.stderr
    summary = finished(jobs).summary
    assert summary["certified"] is True
    assert summary["npu"]["rounds_merged"] > 0, summary["npu"]
    assert summary["npu"]["values_rejected"] == 0
    assert_records_fit(jobs.out)
    if algorithm == "bfs":
        assert_exact(finished(jobs), kronecker_pairs(), directed=False)
    again = finish(jobs.start_command([sys.executable, "run.py", "validate", str(jobs.out)]))
    assert again.returncode == 0, again.stderr


def test_the_effective_configuration_runs_again(jobs: Jobs) -> None:
    assert jobs.run(*SMALL, "ranks=2", "result.report=true").returncode == 0
    assert (jobs.out / "report.html").stat().st_size > 0
    config = load_config(jobs.out / "config.yaml")
    assert config.ranks == 2
    again = finish(jobs.start_command([sys.executable, "run.py", "validate", str(jobs.out)]))
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(("ranks", "configured"), [(2, 1), heavy(1, 1), heavy(3, 3)])
def test_inside_an_existing_mpirun(jobs: Jobs, ranks: int, configured: int) -> None:
    """No mpirun of ours in between, and `ranks: 1` takes what there is."""
    words = [*SMALL, "npu.mode=off", "graph.generator.scale=8", "source=random:2", f"ranks={configured}"]
    program = [sys.executable, "-m", "mpi4py", "run.py", "--output", str(jobs.out)]
    program += [word for setting in words for word in ("--set", setting)]
    done = finish(jobs.start_command([*foreign_mpirun(), "-n", str(ranks), *program]))
    assert done.returncode == 0, done.stderr
    result = finished(jobs)
    assert_exact(result, kronecker_pairs(), directed=False)
    assert result.summary.get("ranks", {"ranks": 1})["ranks"] == ranks
    assert "tandem-rank: " not in done.stderr, "nobody listens, nothing is announced"


@pytest.mark.heavy
def test_threads_of_each_rank(jobs: Jobs) -> None:
    assert jobs.run(*SMALL, "ranks=2", "cluster.threads_per_rank=2").returncode == 0
    assert [one["threads"] for one in finished(jobs).summary["ranks"]["per_rank"]] == [2, 2]
    assert jobs.run(*SMALL, "ranks=2", "cluster.threads_per_rank=1").returncode == 0
    assert [one["threads"] for one in finished(jobs).summary["ranks"]["per_rank"]] == [1, 1]


@pytest.mark.heavy
def test_more_ranks_than_vertices_with_the_source_at_the_last_one(jobs: Jobs, tmp_path: Path) -> None:
    path = tmp_path / "tiny.el"
    path.write_text("0 1\n1 2\n")
    done = jobs.run(f"graph.path={path}", "graph.directed=false", "source=[2, 0]", "ranks=5")
    assert done.returncode == 0, done.stderr
    result = finished(jobs)
    assert_exact(result, [(0, 1), (1, 2)], directed=False)
    shares = result.summary["ranks"]["per_rank"]
    assert any(one["arcs"] == one["masters"] == 0 for one in shares)
    assert ("5 ranks on" in done.stderr) == (len(os.sched_getaffinity(0)) < 5)


@pytest.mark.parametrize("name", ["one_box_4_ranks"])
def test_shipped_configuration_runs(jobs: Jobs, name: str) -> None:
    words = ["--set", "graph.generator.scale=8", "--set", "source=random:2", "--output", str(jobs.out)]
    done = finish(jobs.start_command([sys.executable, "run.py", "--config", f"configs/{name}.yaml", *words]))
    assert done.returncode == 0, done.stderr
    assert finished(jobs).summary["certified"] is True
