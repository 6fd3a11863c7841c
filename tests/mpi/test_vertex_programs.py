"""The example programs over real MPI, in rounds and without, under every policy: what one process has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.store.graph_store import save_store
from tests.mpi.launching import run_ranks

SCRIPT = Path(__file__).with_name("ranks_programs.py")


@pytest.mark.heavy
@pytest.mark.parametrize("ranks", [2, 3])
def test_programs_on_ranks(ranks: int, tmp_path: Path) -> None:
    edges = kronecker(9, 8)
    weight = np.random.default_rng(2).integers(1, 50, edges.src.size)
    save_store(build_graph(EdgeList(edges.src, edges.dst, weight=weight), directed=True), tmp_path / "graph")
    done = run_ranks(SCRIPT, ranks, timeout_s=110, arguments=[str(tmp_path / "graph")])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "35 programs agree" in done.stdout
