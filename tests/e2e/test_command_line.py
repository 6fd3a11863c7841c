"""The program as people run it: shipped configurations, exit codes, signals; real worker, real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from hybrid.cli import COMMANDS, main
from tests.conftest import ROOT, eventually, is_alive
from tests.json_schema import assert_records_fit

SMALL = ["--set", "graph.generator.scale=8", "--set", "source=random:2", "--set", "compare.repeats=1"]


@pytest.fixture
def tandem(project_root: Path, tmp_path: Path):
    """Start ``python run.py ...`` in the project's folder; text out, time-limited."""

    def run(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "run.py", *words]
        changed = {**os.environ, **(environment or {})}
        return subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=100, env=changed)

    return run


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """The same in this process, for what ends before any work is done."""
    monkeypatch.chdir(ROOT)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        try:
            code = main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
        return subprocess.CompletedProcess(words, code, *capfd.readouterr())

    return run


def summary_of(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text())


def test_default_job_merges_at_least_one_round(tandem, tmp_path: Path) -> None:
    done = tandem("--config", "configs/cluster.yaml", "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    summary = summary_of(tmp_path / "out")
    assert summary["certified"] is True
    assert summary["npu"]["rounds_merged"] >= 1
    assert_records_fit(tmp_path / "out")
    assert len(summary["sources"]) == 8
    assert summary["verdict"]["text"] in done.stdout
    assert str(tmp_path / "out") in done.stdout
    keys = {"open", "build", "plan", "traverse", "certify", "total"}
    assert keys <= set(summary["seconds"])
    for name in (
        "device",
        "rounds_merged",
        "values_sent",
        "values_received",
        "values_adopted",
        "values_rejected",
        "outcome",
    ):
        assert name in summary["npu"]
    for name in (
        "vertex.npy",
        "level.npy",
        "parent.npy",
        "trace.jsonl",
        "config.yaml",
        "log.txt",
        "report.html",
        "worker.log",
    ):
        assert (tmp_path / "out" / name).stat().st_size > 0, name
    again = tandem("validate", str(tmp_path / "out"))
    assert again.returncode == 0, again.stderr
    level = np.load(tmp_path / "out" / "level.npy")
    level[0, np.argmax(level[0])] -= 1
    np.save(tmp_path / "out" / "level.npy", level)
    assert tandem("validate", str(tmp_path / "out")).returncode == 5


@pytest.mark.parametrize("name", ["cpu_only", "file"])
def test_shipped_configuration_runs(tandem, tmp_path: Path, name: str) -> None:
    done = tandem("--config", f"configs/{name}.yaml", "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert summary_of(tmp_path / "out")["certified"] is True


def test_ascend_where_there_is_none(tandem, tmp_path: Path) -> None:
    """The job ends exact on the CPU, and says which device was missing."""
    if any(Path("/dev").glob("davinci[0-9]*")):
        pytest.skip("this machine has an Ascend device")
    done = tandem("--config", "configs/ascend.yaml", *SMALL, "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    summary = summary_of(tmp_path / "out")
    assert summary["certified"] is True
    assert "device" in summary["npu"]["outcome"]


def test_mindspore_that_cannot_be_imported(tandem, tmp_path: Path) -> None:
    fake = tmp_path / "fake" / "mindspore"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')\n")
    done = tandem(
        "--config", "configs/cluster.yaml", *SMALL, "--output", str(tmp_path / "out"),
        environment={"PYTHONPATH": str(fake.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcome = summary_of(tmp_path / "out")["npu"]["outcome"]
    assert "could not import MindSpore" in outcome
    assert "libgomp" in outcome


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--set", "npu.mod=off"], 2, "did you mean npu.mode?"),
        (["--set", "source=abc"], 2, "not a vertex id"),
        (["--set", "source=123456789012345"], 3, "nearest"),
        (["--set", "ranks=0"], 2, "at least 1"),
        (["--set", "ranks=2", "--set", "engine=level", "--set", "bfs.strategy=push"], 2, "there is only auto"),
        (["--config", "configs/clusterr.yaml"], 2, "did you mean configs/cluster.yaml?"),
        (["--set", "graph.path=no/such/file"], 3, "no/such/file"),
        (["--set", "source=!!binary xx"], 2, "source"),
    ],
)
def test_mistakes_are_named_with_their_fix(command, words: list[str], code: int, told: str) -> None:
    done = command("run", "--set", "npu.mode=off", "--set", "graph.generator.scale=6", *words)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Fix: " in done.stderr
    assert "Traceback" not in done.stderr


def test_output_that_is_not_ours_is_refused(command, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    done = command("run", "--set", "npu.mode=off", *SMALL, "--output", str(tmp_path))
    assert done.returncode == 4
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def start(project_root: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "run.py", "run", *words]
    return subprocess.Popen(command, cwd=project_root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_worker(process: subprocess.Popen[str]) -> psutil.Process:
    """The job's worker process, once it is there."""

    def look() -> psutil.Process | None:
        for child in psutil.Process(process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # a short-lived helper of the job
                if "npu_engine" in " ".join(child.cmdline()):
                    return child
        return None

    return eventually(look)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_stops_everything(project_root: Path, tmp_path: Path, signal_number: int) -> None:
    process = start(project_root, *SMALL, "--output", str(tmp_path / "out"))
    worker = wait_for_worker(process)
    process.send_signal(signal_number)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 130, errors
    assert not is_alive(worker)
    assert list(tmp_path.iterdir()) == [], "nothing half-written"


def test_killed_coordinator_leaves_no_worker(project_root: Path, tmp_path: Path) -> None:
    process = start(project_root, *SMALL, "--output", str(tmp_path / "out"))
    worker = wait_for_worker(process)
    process.kill()
    process.communicate(timeout=100)
    eventually(lambda: not is_alive(worker))
    assert not (tmp_path / "out").exists()


def test_worker_killed_in_the_middle_of_a_round(project_root: Path, tmp_path: Path) -> None:
    """SIGSTOP, so that a round is certainly outstanding, then SIGKILL."""
    settings = ["--set", f"exchange.dir={tmp_path / 'ex'}", "--set", "source=random:1000"]
    process = start(project_root, *SMALL, "--output", str(tmp_path / "out"), *settings)
    worker = wait_for_worker(process)
    eventually(lambda: list((tmp_path / "ex").glob("round-*/value.txt")))  # it is sent none before
    worker.suspend()
    eventually(lambda: list((tmp_path / "ex").glob("round-*/value.txt")))
    worker.kill()
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    summary = summary_of(tmp_path / "out")
    assert summary["certified"] is True
    assert "SIGKILL" in summary["npu"]["outcome"]


def test_worker_that_hangs(project_root: Path, tmp_path: Path) -> None:
    process = start(
        project_root, *SMALL, "--output", str(tmp_path / "out"), "--set", "npu.start_timeout_s=1",
    )  # fmt: skip
    worker = wait_for_worker(process)
    worker.suspend()
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert not is_alive(worker)
    summary = summary_of(tmp_path / "out")
    assert summary["certified"] is True
    assert "within 1 s" in summary["npu"]["outcome"]


def test_two_jobs_on_one_directory(tandem, project_root: Path, tmp_path: Path) -> None:
    first = start(project_root, *SMALL, "--output", str(tmp_path / "a"), "--set", f"exchange.dir={tmp_path / 'ex'}")
    worker = wait_for_worker(first)
    worker.suspend()  # the first job now keeps the directory until it gives up or we let go
    second = tandem("run", *SMALL, "--output", str(tmp_path / "b"), "--set", f"exchange.dir={tmp_path / 'ex'}")
    assert second.returncode == 4
    assert str(first.pid) in second.stderr
    assert not (tmp_path / "b").exists()
    worker.resume()
    _, errors = first.communicate(timeout=100)
    assert first.returncode == 0, errors
    assert summary_of(tmp_path / "a")["npu"]["rounds_merged"] >= 1


def test_doctor_finds_everything_here(tandem) -> None:
    done = tandem("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {finding["subject"]: finding for finding in json.loads(done.stdout)}
    assert findings["worker"]["state"] == "ok"
    assert findings["mpi"]["state"] == "ok"
    assert {"python", "numpy", "numba", "mindspore", "threads", "ascend"} <= set(findings)


def test_unknown_command_gets_a_suggestion(command) -> None:
    done = command("valdate", "x")
    assert done.returncode == 2
    assert "did you mean validate?" in done.stderr


def test_external_worker_as_the_shipped_configuration_says(tandem, project_root: Path, tmp_path: Path) -> None:
    """Worker by hand first, two jobs that keep it, a third that stops it."""
    folder = str(tmp_path / "exchange")
    command = [sys.executable, "run.py", "worker", "--exchange", folder]
    worker = subprocess.Popen(command, cwd=project_root, stderr=subprocess.DEVNULL)
    try:
        for keep in ("true", "true", "false"):
            words = ["--config", "configs/external_worker.yaml", *SMALL, "--output", str(tmp_path / "out")]
            done = tandem(*words, "--set", f"exchange.dir={folder}", "--set", f"npu.keep_worker={keep}")
            assert done.returncode == 0, done.stderr
            assert summary_of(tmp_path / "out")["npu"]["rounds_merged"] >= 1
        assert worker.wait(100) == 0
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "worker"])  # which has a process of its own
def test_help_everywhere(command, name: str) -> None:
    done = command(name, "--help")
    assert done.returncode == 0
    assert "usage" in done.stdout
