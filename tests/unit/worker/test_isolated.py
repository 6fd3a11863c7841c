"""Processes of ours start from a folder whose files have the names of our packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from exchange.isolated import isolated_command

LIMIT_S = 60


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Where a user may stand: every name that a worker or a rank imports is taken."""
    for name in ("exchange", "npu_engine", "cpu_engine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the wrong package')\n")
    for name in ("hybrid.py", "mpi4py.py", "numpy.py", "runpy.py", "ctypes.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise RuntimeError('the wrong module')\n")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        [*isolated_command("npu_engine"), "--help"],
        [*isolated_command("mpi4py", tied=True), "-m", "hybrid", "--version"],
    ],
)
def test_the_current_folder_is_not_searched(hostile: Path, command: list[str]) -> None:
    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_worker_command_takes_the_same_way(hostile: Path, project_root: Path) -> None:
    command = [sys.executable, str(project_root / "run.py"), "worker", "--help"]
    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert "--exchange" in done.stdout


def test_a_job_and_its_worker_start_there(hostile: Path, project_root: Path) -> None:
    """Before, the worker imported the user's exchange/, and the job said no more than its exit code."""
    settings = ["graph.generator.scale=8", "core.size=64", "source=random:1", "npu.mode=share", "compare.enabled=false"]
    command = [sys.executable, str(project_root / "run.py"), "--output", "out"]
    command += [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    outcome = json.loads((hostile / "out" / "summary.json").read_text())["npu"]["outcome"]
    assert outcome.startswith("merged "), outcome


def test_a_pythonpath_of_the_user_is_kept(tmp_path: Path) -> None:
    (tmp_path / "of_the_user.py").write_text("print(__name__)\n")
    done = subprocess.run(
        isolated_command("of_the_user"), env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert done.stdout == "__main__\n", done.stderr


def test_a_tied_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """The middle process is killed; its child holds the pipe open as long as it lives."""
    (tmp_path / "waits.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    command = isolated_command("waits", tied=True)
    middle = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    process = subprocess.Popen(
        [sys.executable, "-c", middle, *command], env={"PYTHONPATH": str(tmp_path)}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    process.kill()
    process.communicate(timeout=LIMIT_S)  # at once: nobody holds the other end any more
