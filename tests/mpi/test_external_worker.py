"""An external worker beside real ranks: its death shows at once, and a missing one is explained."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import eventually
from tests.mpi.jobs import LIMIT_S, Jobs, finish, jobs_in


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with jobs_in(tmp_path) as started:
        yield started


def test_its_death_is_noticed_before_the_round_times_out(jobs: Jobs, tmp_path: Path) -> None:
    """A worker that says it is ready, is handed a round and killed: no rank waits for round_timeout_s."""
    directory = tmp_path / "exchange"
    directory.mkdir()
    worker = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    facts = {"pid": worker.pid, "host": socket.gethostname(), "state": "ready", "device": "CPU"}
    (directory / "worker.json").write_text(json.dumps(facts))
    settings = ["npu.mode=share", "npu.worker=external", f"exchange.dir={directory}", "core.size=64"]
    settings += [f"npu.round_timeout_s={2 * LIMIT_S}", f"npu.start_timeout_s={2 * LIMIT_S}", "compare.enabled=false"]
    process = jobs.start("ranks=2", "engine=async", *settings)
    try:
        eventually(lambda: list(directory.glob("round-*/value.txt")) or process.poll() is not None, timeout_s=LIMIT_S)
        worker.kill()
        done = finish(process)
    finally:
        worker.communicate()
    assert done.returncode == 0, done.stderr
    summary = json.loads((jobs.out / "summary.json").read_text())
    assert summary["npu"]["outcome"] == "the worker's process is gone"
    assert summary["certified"]
