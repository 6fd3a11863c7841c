"""Jobs on graphs that no rank has whole, on real ranks: the results of one rank, and nothing left when one dies."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hybrid.results.parts import open_result
from hybrid.results.record import Finished
from tests.conftest import heavy
from tests.e2e.conftest import assert_exact, kronecker_pairs
from tests.json_schema import assert_records_fit
from tests.mpi.jobs import Jobs, finish, jobs_in

SMALL = ["graph.generator.edge_factor=8", "cluster.build=shares"]  # the graph of kronecker_pairs


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with jobs_in(tmp_path) as started:
        yield started


def validated(jobs: Jobs) -> None:
    done = finish(jobs.start_command([sys.executable, "run.py", "validate", str(jobs.out)]))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("ranks", "engine", "policy"), [(2, "async", "auto"), heavy(3, "level", "auto"), heavy(3, "async", "2d")]
)
def test_a_search(jobs: Jobs, tmp_path: Path, ranks: int, engine: str, policy: str) -> None:
    cache = tmp_path / "cache"
    settings = [f"ranks={ranks}", f"engine={engine}", f"cluster.policy={policy}", f"graph.cache_dir={cache}"]
    done = jobs.run(*SMALL, *settings, "result.report=true")
    assert done.returncode == 0, done.stderr
    summary = json.loads((jobs.out / "summary.json").read_text())
    assert_exact(Finished(jobs.out, summary), kronecker_pairs(), directed=False)
    assert_records_fit(jobs.out)
    assert done.stdout.count("certified: yes") == 1, "one rank speaks"
    assert (jobs.out / "report.html").stat().st_size > 0
    assert [one.name for one in cache.iterdir()] == ["parts"], "no rank has built the whole graph"
    validated(jobs)


@pytest.mark.parametrize("algorithm", ["wcc", heavy("sssp"), heavy("pagerank"), heavy("kcore"), heavy("cdlp")])
def test_other_algorithms_in_parts(jobs: Jobs, algorithm: str) -> None:
    done = jobs.run(*SMALL, "ranks=2", f"algorithm={algorithm}", "result.arrays=parts")
    assert done.returncode == 0, done.stderr
    result = open_result(jobs.out)
    assert result.parts == 2
    assert result.vertex.tolist() == list(range(256))
    assert_records_fit(jobs.out)
    validated(jobs)


def test_a_source_that_no_rank_has(jobs: Jobs) -> None:
    done = jobs.run(*SMALL, "ranks=2", "source=256")
    assert done.returncode == 3
    assert "vertex 256 is not in the graph (ids 0..255, nearest 255)" in done.stderr
    assert not jobs.out.exists()


def test_a_rank_that_dies_while_it_builds(jobs: Jobs) -> None:
    job = jobs.start(*SMALL, "ranks=2", "graph.generator.scale=20")
    jobs.partial()
    victim = jobs.rank(1)
    os.kill(victim.pid, signal.SIGKILL)
    _, told = job.communicate(timeout=120)
    assert job.returncode == 4
    assert "rank 1" in told
    assert not jobs.out.exists()
    assert not list(jobs.out.parent.glob(".out.*")), "no half-written folder"


@pytest.mark.heavy
def test_parts_are_the_merged_file(jobs: Jobs) -> None:
    assert jobs.run(*SMALL, "ranks=3", "result.arrays=parts").returncode == 0
    parts = {name: open_result(jobs.out)[name] for name in ("vertex", "level")}
    assert jobs.run(*SMALL, "ranks=2").returncode == 0
    for name, column in parts.items():
        assert np.array_equal(np.load(jobs.out / f"{name}.npy"), column)
