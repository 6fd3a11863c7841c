"""Every algorithm on a graph of real size, made on the spot: what small graphs never reach runs everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.config import load_config
from hybrid.job.driver import run_job
from hybrid.registry import ALGORITHMS


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_proves_its_result(algorithm: str, tmp_path: Path) -> None:
    settings = ["graph.generator.scale=16", "source=random:1", "centrality.sources=random:8", "result.report=false"]
    settings += ["npu.mode=off", "compare.enabled=false", f"algorithm={algorithm}", f"output={tmp_path / 'out'}"]
    summary = run_job(load_config(None, settings)).summary
    assert summary["certified"] is True
    assert summary["graph"]["vertices"] == 1 << 16
