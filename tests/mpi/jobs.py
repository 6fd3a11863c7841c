"""Whole jobs on real ranks: start them as people do, find their processes, and see that none of them stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hybrid.launch.command import find_launcher
from tests.conftest import ROOT, eventually, is_alive

LIMIT_S = 200
_MARK = "TANDEM_TEST_JOB"


class Jobs:
    """Starts jobs that carry a mark in their environment, by which every process of theirs can be found again."""

    def __init__(self, folder: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.out = folder / "out"
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *settings: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """``python run.py`` with these settings; the result goes to ``out``."""
        small = ["npu.mode=off", "graph.generator.scale=8", "source=random:2", "result.report=false"]
        words = [word for setting in (*small, *settings) for word in ("--set", setting)]
        return self.start_command([sys.executable, "run.py", "run", *words, "--output", str(self.out)], environment)

    def start_command(self, command: list[str], environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        marked = {**os.environ, _MARK: self.mark, **(environment or {})}
        process = subprocess.Popen(
            command, cwd=ROOT, env=marked, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._started.append(process)
        return process

    def run(self, *settings: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return finish(self.start(*settings, environment=environment))

    def processes(self) -> list[psutil.Process]:
        """Every living process of this test's jobs, wherever it hangs in the tree."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if is_alive(process) and process.environ().get(_MARK) == self.mark:
                    found.append(process)
        return found

    def rank(self, number: int) -> psutil.Process:
        """The process of a rank, once it is there."""

        def look() -> psutil.Process | None:
            for process in self.processes():
                with contextlib.suppress(psutil.Error):
                    own = process.environ().get("OMPI_COMM_WORLD_RANK") == str(number)
                    if own and "mpi4py" in process.cmdline():
                        return process
            return None

        return eventually(look, timeout_s=LIMIT_S)

    def partial(self) -> Path:
        """The unfinished result folder, once it is there."""
        return eventually(lambda: next(iter(self.out.parent.glob(".out.*.partial")), None), timeout_s=LIMIT_S)

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        try:
            eventually(lambda: not self.processes(), timeout_s=15)
        except TimeoutError:
            left = self.processes()
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
            pytest.fail(f"left behind: {left}")


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for the end; a job that hangs fails the test."""
    out, errors = process.communicate(timeout=LIMIT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


@contextlib.contextmanager
def jobs_in(folder: Path) -> Iterator[Jobs]:
    jobs = Jobs(folder)
    try:
        yield jobs
    finally:
        jobs.close()


def foreign_mpirun() -> list[str]:
    """An mpirun as somebody else would call it: any number of ranks on this machine, idle ones out of the way."""
    command = [find_launcher(None), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "--mca"]
    return [*command, "mpi_yield_when_idle", "1", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]


def error_lines(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if line.startswith("tandem: error: ")]
