"""Every policy and engine over real MPI, on one to four ranks: the certificate holds for every search."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.store.graph_store import save_store
from tests.conftest import sweep
from tests.mpi.launching import run_ranks

SCRIPT = Path(__file__).with_name("ranks_engines.py")
GRAPHS = {"kronecker": lambda: kronecker(10, 8), "grid": lambda: grid(30, 30)}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("ranks", sweep([3, 1, 2, 4]))
def test_every_policy_and_engine(ranks: int, name: str, tmp_path: Path) -> None:
    save_store(build_graph(GRAPHS[name](), directed=False), tmp_path / "graph")
    done = run_ranks(SCRIPT, ranks, timeout_s=110, arguments=[str(tmp_path / "graph")])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 searches proved, 350 together" in done.stdout
