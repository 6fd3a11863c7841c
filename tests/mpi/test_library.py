"""The algorithm library over real MPI: every algorithm, policy and way to synchronise in one start; and whole jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.store.graph_store import save_store
from tests.conftest import ROOT, heavy
from tests.json_schema import assert_records_fit
from tests.mpi.jobs import Jobs, jobs_in
from tests.mpi.launching import run_ranks

SCRIPT = Path(__file__).with_name("ranks_library.py")


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with jobs_in(tmp_path) as started:
        yield started


@pytest.mark.heavy
@pytest.mark.parametrize(("ranks", "kind", "directed"), [(2, np.int64, False), (3, np.float64, True)])
def test_every_algorithm_policy_and_sync(ranks: int, kind: type, directed: bool, tmp_path: Path) -> None:
    edges = kronecker(9, 6)
    weight = np.random.default_rng(1).integers(1, 256, len(edges.src)).astype(kind)
    save_store(build_graph(EdgeList(edges.src, edges.dst, weight), directed=directed), tmp_path / "graph")
    done = run_ranks(SCRIPT, ranks, timeout_s=110, arguments=[str(tmp_path / "graph")])
    assert done.returncode == 0, done.stdout + done.stderr
    # sssp: 5 policies x 2 x 2 roots; wcc: 5 x 2; pagerank: 5; cdlp: 2; kcore: 5
    assert "42 runs agree" in done.stdout


@pytest.mark.parametrize(
    ("ranks", "algorithm"),
    [(2, "sssp"), heavy(3, "pagerank"), heavy(2, "kcore")],
)
def test_jobs(jobs: Jobs, ranks: int, algorithm: str) -> None:
    done = jobs.run(f"algorithm={algorithm}", f"ranks={ranks}", "graph.generator.edge_factor=8")
    assert done.returncode == 0, done.stderr
    summary = json.loads((jobs.out / "summary.json").read_text())
    assert summary["certified"] is True
    assert summary["ranks"]["ranks"] == ranks
    assert_records_fit(jobs.out)
    assert done.stdout.count("certified: yes") == 1, "one rank speaks"


def test_a_policy_that_cannot_serve(jobs: Jobs) -> None:
    done = jobs.run("algorithm=cdlp", "ranks=2", "cluster.policy=cvc")
    assert done.returncode == 2
    assert done.stderr.count("tandem: error: ") == 1
    assert "iec or oec" in done.stderr


@pytest.mark.heavy
def test_benchmark(tmp_path: Path) -> None:
    """Two ranks find what one does; no time is looked at."""
    words = ["--scale", "8", "--roots", "2", "--trials", "1", "--rounds", "1", "--pause", "0"]
    told = tmp_path / "r.json"
    command = [sys.executable, "run.py", "bench", "ranks", "--algorithm", "sssp", *words, "--json", str(told)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    rows = json.loads(told.read_text())["variants"]
    assert len(rows) == 11, "one rank, five policies in rounds, five without"


@pytest.mark.heavy
def test_the_benchmark_refuses_a_wrong_result(project_root: Path, tmp_path: Path) -> None:
    """Rank 1 swaps two of its levels, which no sum of levels shows: the certificate at rank 0 does."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'benchmarks.ranks.child' in sys.orig_argv:\n"
        "    from cpu_engine.bfs.ranks import engine as ranks_engine\n"
        "    honest = ranks_engine.RankEngine.search\n"
        "    def search(self, *asked, **named):\n"
        "        outcome = yield from honest(self, *asked, **named)\n"
        "        if self.part.part == 1:\n"
        "            near, far = outcome.levels.argmin(), outcome.levels.argmax()\n"
        "            outcome.levels[[near, far]] = outcome.levels[[far, near]]\n"
        "        return outcome\n"
        "    ranks_engine.RankEngine.search = search\n"
    )
    words = ["--scale", "8", "--roots", "1", "--rounds", "1", "--trials", "1", "--only", "level iec"]
    done = subprocess.run(
        [sys.executable, "run.py", "bench", "ranks", *words], cwd=project_root, capture_output=True, text=True,
        timeout=110, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(project_root)])},
    )  # fmt: skip
    assert done.returncode == 5, done.stdout + done.stderr
    assert "a timed result is wrong" in done.stderr
