"""The worker's process: started once, watched, stopped for certain. Owns the process and its log, decides nothing else.

Invariant: after ``stop()`` no process of the worker's group is left; if the coordinator is killed outright, the kernel
kills the worker (it asks for that at its start, see ``--parent``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import exchange
from hybrid.schema import NpuConfig

_CAUSES = {
    0: "the worker ended by itself",
    3: "the worker could not import MindSpore",
    4: "the worker found no such device",
    5: "the worker could not use the exchange directory",
}


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C in here is delivered at the end: between a process's birth and our noting it, it would be lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda got, _frame: came.append(got)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        for got in came:
            signal.raise_signal(got)


class WorkerSupervisor:
    """Runs ``python -m npu_engine`` on an exchange directory."""

    def __init__(self, directory: Path, npu: NpuConfig, watch: str, log_path: Path) -> None:
        self._directory = directory
        self._npu = npu
        self._watch = watch
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the worker; it loads MindSpore while the coordinator goes on."""
        npu = self._npu
        command = [sys.executable, "-m", "npu_engine", "--exchange", str(self._directory), "--device", npu.device]
        command += ["--device-id", str(npu.device_id), "--threads", str(npu.threads), "--watch", self._watch]
        command += ["--parent", str(os.getpid())]
        root = str(Path(exchange.__file__).resolve().parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
        with self._log_path.open("ab") as log, _interrupts_held():
            # Its own session: Ctrl-C reaches the coordinator alone, which then stops the worker in order.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def cause_of_death(self) -> str | None:
        """None while the worker lives, else why it ended, in words."""
        if self._process is None:
            return "the worker was not started"
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            return f"the worker was killed by {signal.Signals(-code).name}"
        told = self._last_error()
        return f"{_CAUSES.get(code, f'the worker failed with exit code {code}')}{': ' + told if told else ''}"

    def stop(self) -> None:
        """The caller has written stop.flag: wait, then ask, then force; leave nothing behind."""
        if self._process is None:
            return
        for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_number is not None:
                self._signal_group(signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._npu.stop_grace_s if signal_number != signal.SIGKILL else None)
                break
        self._signal_group(signal.SIGKILL)  # grandchildren, if MindSpore left any

    def kill(self) -> None:
        """End it at once: a worker that hangs does not listen."""
        self._signal_group(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def _signal_group(self, signal_number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal_number)

    def _last_error(self) -> str:
        with contextlib.suppress(OSError):
            for line in reversed(self._log_path.read_text(errors="replace").splitlines()):
                _, marker, told = line.partition("tandem-worker: error: ")
                if marker:
                    return told.strip()
        return ""
