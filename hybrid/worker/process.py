"""The worker's process: started once, watched, stopped for certain. Owns the process and its log, decides nothing else.

Invariant: after ``stop()`` no process of the worker's group is left; if the coordinator is killed outright, the kernel
kills the worker (it asks for that at its start, see ``--parent``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from exchange.errors import ExchangeError
from exchange.escape import printable
from exchange.filesystem.scratch import own_leftovers
from exchange.isolated import isolated_command
from exchange.protocol.layout import worker_scratch_prefix
from hybrid.config.schema import Config
from hybrid.interrupts import interrupts_held
from hybrid.planning.plan import ascend_devices, largest_core

# By how much a worker on the engine's own CPUs lowers its priority, on the scale of nice(1). While it starts, it takes
# what the engine leaves; at work the engine's threads still come first, and rounds take no longer.
_STARTING, _WORKING = 19, 5
_LOG_TAIL_BYTES = 1 << 16
_CAUSES = {
    0: "the worker ended by itself",
    3: "the worker could not import MindSpore",
    4: "the worker found no such device",
    5: "the worker could not use the exchange directory",
}


class WorkerSupervisor:
    """Runs ``npu_engine`` on an exchange directory."""

    def __init__(self, directory: Path, config: Config, log_path: Path) -> None:
        self._directory = directory
        self._config = config
        self._log_path = log_path
        self._log_begin = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the worker; it loads MindSpore while the coordinator goes on."""
        npu, exchange_config = self._config.npu, self._config.exchange
        command = [*isolated_command("npu_engine"), "--exchange", str(self._directory), "--device", npu.device]
        command += ["--device-id", str(npu.device_id), "--threads", str(npu.threads)]
        command += ["--watch", exchange_config.watch, "--poll-interval", str(exchange_config.poll_interval_s)]
        command += ["--warm", str(largest_core(self._config.core)), "--parent", str(os.getpid())]
        if npu.memory_budget is not None:
            command += ["--memory-budget", str(npu.memory_budget)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with self._log_path.open("ab") as log, interrupts_held():
            self._log_begin = log.tell()  # a log may go on from an earlier worker
            # Its own session: Ctrl-C reaches the coordinator alone, which then stops the worker in order.
            self._process = subprocess.Popen(  # noqa: S603 - the worker of the configuration
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        if self._shares_cpus:
            # In mode share the search waits for it, and ranks that wait keep the CPUs busy by polling.
            _step_back(self._process.pid, _WORKING if npu.mode == "share" else _STARTING)

    def let_work(self) -> None:
        """The worker has started: from now on the job may wait for what it does."""
        if self._process is not None and self._shares_cpus:
            _step_back(self._process.pid, _WORKING)

    @property
    def _shares_cpus(self) -> bool:
        return self._config.npu.device != "ascend" and not ascend_devices()

    def cause_of_death(self) -> str | None:
        """None while the worker lives, else why it ended, in words."""
        if self._process is None:
            return "the worker was not started"
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            return f"the worker was killed by {signal.Signals(-code).name}"
        return _CAUSES.get(code, f"the worker failed with exit code {code}")

    def with_log(self, reason: str) -> str:
        """A reason why the worker failed, with what its log says: the error, else the last line."""
        lines = self._log_lines()
        for line in reversed(lines):
            _, marker, told = line.partition("tandem-worker: error: ")
            if marker:
                return f"{reason}: {told}"
        return f"{reason}; worker.log ends with: {lines[-1]}" if lines else reason

    def stop(self) -> None:
        """The caller has written stop.flag: wait, then ask, then force; leave nothing behind."""
        if self._process is None:
            return
        for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_number is not None:
                self._signal_group(signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._config.npu.stop_grace_s if signal_number != signal.SIGKILL else None)
                break
        self.kill()

    def kill(self) -> None:
        """End it at once, grandchildren included, and remove the files that a killed worker leaves."""
        self._signal_group(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            for left in own_leftovers(self._directory, worker_scratch_prefix(self._process.pid)):
                with contextlib.suppress(ExchangeError):
                    left.discard()

    def _signal_group(self, signal_number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal_number)

    def _log_lines(self) -> list[str]:
        """The end of what this worker has logged, fit to be shown."""
        with contextlib.suppress(OSError), self._log_path.open("rb") as log:
            log.seek(max(self._log_begin, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            told = log.read(_LOG_TAIL_BYTES).decode(errors="replace")
            return [printable(line.strip()) for line in told.splitlines() if line.strip()]
        return []


def _step_back(pid: int, far: int) -> None:
    """Let the engine's threads go before a worker on the same CPUs.

    Otherwise each parallel step waits a time slice (8 to 40 ms) for the CPU on which the worker loads MindSpore. Where
    sessions are scheduled as groups, it is the group that steps back, which it may undo. Elsewhere it is each thread,
    and where the user may not raise a priority again, the worker stays behind the engine.
    """
    with contextlib.suppress(OSError):  # no harm if it is gone, or the system does not let us
        Path(f"/proc/{pid}/autogroup").write_text(str(far))
    for thread in _threads_of(pid):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, 0) + far))


def _threads_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    return [pid]
