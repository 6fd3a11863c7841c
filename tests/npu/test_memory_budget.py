"""A whole job with a core over the worker's memory budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hybrid.config import load_config
from hybrid.job.driver import run_job


def test_a_job_within_one_mebibyte_gives_the_same_levels(tmp_path: Path) -> None:
    """Tiles of 1 MiB hold 295 x 295; the core has 700 vertices."""
    common = ["graph.generator.scale=11", "graph.generator.edge_factor=8", "source=random:4", "compare.enabled=false"]
    common += ["core.size=700", "result.report=false", "npu.device=cpu", "npu.round_timeout_s=60"]
    alone = run_job(load_config(None, [*common, "npu.mode=off", f"output={tmp_path / 'alone'}"]))
    shared = run_job(
        load_config(None, [*common, "npu.mode=share", "npu.memory_budget=1048576", f"output={tmp_path / 'shared'}"])
    )
    assert shared.summary["npu"]["rounds_merged"] >= 1, shared.summary["npu"]["outcome"]
    assert "ready for compacted pieces (over the memory budget)" in (shared.folder / "worker.log").read_text()
    assert np.array_equal(np.load(shared.folder / "level.npy"), np.load(alone.folder / "level.npy"))
