"""The worker's process as its job starts it. A script that sleeps stands in for the worker."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hybrid.config import load_config
from hybrid.worker import process as supervisor
from hybrid.worker.process import WorkerSupervisor


@pytest.fixture
def sleeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return tmp_path


@pytest.mark.parametrize(("device", "ascend_here", "steps_back"), [
    ("auto", False, True), ("cpu", False, True), ("auto", True, False), ("ascend", False, False),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["race", "share"])
def test_a_worker_on_the_engines_cpus_steps_back(
    sleeper: Path, monkeypatch: pytest.MonkeyPatch, device: str, ascend_here: bool, steps_back: bool, mode: str
) -> None:
    """Loading MindSpore beside the engine must not hold up its threads; a device's launches must not wait for them."""
    monkeypatch.setattr(supervisor, "ascend_devices", lambda: ["davinci0"] * ascend_here)
    options = [f"npu.device={device}", f"npu.mode={mode}"]
    worker = WorkerSupervisor(sleeper, load_config(None, options), sleeper / "worker.log")
    worker.start()
    try:
        assert worker.pid is not None
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        assert (os.getpriority(os.PRIO_PROCESS, worker.pid) > ours) == steps_back
        starting = os.getpriority(os.PRIO_PROCESS, worker.pid)
        worker.let_work()
        assert (os.getpriority(os.PRIO_PROCESS, worker.pid) > ours) == steps_back, "the engine still comes first"
        assert os.getpriority(os.PRIO_PROCESS, worker.pid) <= starting
        if mode == "share":
            assert starting < 19, "it is waited for, by ranks that keep the CPUs busy"
        assert worker.cause_of_death() is None
    finally:
        worker.kill()
    assert worker.cause_of_death() == "the worker was killed by SIGKILL"
    assert worker.with_log("gone") == "gone", "an empty log has no last line"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "ready\nImportError: no module named x\n\n",
            "it failed; worker.log ends with: ImportError: no module named x",
        ),
        ("a\ntandem-worker: error: no device. Fix: buy one\nbye\n", "it failed: no device. Fix: buy one"),
    ],
)
def test_a_failure_is_told_with_the_end_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ncat <<'END' >&2\n{said}END\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    log = tmp_path / "worker.log"
    log.write_text("tandem-worker: error: of an earlier worker\n")
    worker = WorkerSupervisor(tmp_path, load_config(None, []), log)
    worker.start()
    worker.stop()
    assert worker.cause_of_death() == "the worker failed with exit code 1"
    assert worker.with_log("it failed") == told
