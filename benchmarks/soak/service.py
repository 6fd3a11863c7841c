"""The service under ``bench soak``: its process, everything it starts, and what is left of that afterwards.

All its processes carry a mark in their environment, by which they are known whatever becomes of their parents.
Invariant: only marked processes are ever killed; after ``end`` nothing of the run is left but what ``Leftovers`` lists.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHARED_MEMORY = Path("/dev/shm")
_MARK = "TANDEM_SOAK"
_START_S, _END_S, _GONE_S = 120.0, 60.0, 5.0
_KEPT = ("jobs", "graphs", "uploads", "stores", "lock", "worker-0.log")  # what a journal has


@dataclass(frozen=True)
class Seen:
    """One of our processes at one moment."""

    pid: int
    role: str  # service, launcher, rank, worker, other
    bytes: int
    files: int


@dataclass
class Leftovers:
    """What should not be there after the end."""

    exit_code: int | None = None
    seconds: float = 0.0
    processes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)  # in /dev/shm, of ours
    shared_by_others: list[str] = field(default_factory=list)  # new there, but never seen in our hands

    @property
    def clean(self) -> bool:
        return self.exit_code == 0 and not (self.processes or self.files or self.shared)


class SoakService:
    """``start``, then anything, then ``end``."""

    def __init__(self, folder: Path, sets: list[str]) -> None:
        self.folder, self._sets = folder, sets
        self.journal, self.data, self._cwd = folder / "journal", folder / "data", folder / "cwd"
        self._temporary = folder / "tmp"
        for one in (self.data, self._cwd, self._temporary):
            one.mkdir()
        self.log = folder / "log"
        self._mark = f"{_MARK}={secrets.token_hex(8)}"
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.starts: list[float] = []
        self._shared_before = _entries(SHARED_MEMORY)
        self._shared_ours: set[str] = set()

    # ------------------------------------------------------------------------------------------- life

    def start(self) -> None:
        """Start it, on the port it had if it had one, and wait until it is ready."""
        began = time.monotonic()
        command = [sys.executable, str(ROOT / "run.py"), "serve", "--port", str(self.port)]
        own = (
            "service.host=127.0.0.1", f"service.journal_dir={self.journal}", f"service.data_roots=[{self.data}]",
            f"graph.cache_dir={self.folder / 'cache'}",
        )  # fmt: skip
        for one in (*own, *self._sets):
            command += ["--set", one]
        name, _, value = self._mark.partition("=")
        environment = {**os.environ, name: value, "TMPDIR": str(self._temporary)}
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                command, cwd=self._cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                text=True, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        printed = self._process.stdout.readline().rpartition(":")[2]
        if not printed.strip().isdigit():
            self._process.wait(_END_S)
            raise RuntimeError(f"the service did not start: {self.log.read_text()[-2000:]}")
        self.port = int(printed)
        while not (self.readiness() or {}).get("ready"):
            if self._process.poll() is not None or time.monotonic() - began > _START_S:
                raise RuntimeError(f"the service is not ready: {self.log.read_text()[-2000:]}")
            time.sleep(0.05)
        self.starts.append(time.monotonic() - began)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the process alone; its exit code."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(number)
        try:
            return self._process.wait(_END_S)
        finally:
            self._process.stdout.close()

    def end(self) -> Leftovers:
        """SIGTERM, and what is left then."""
        self.look()
        began, left = time.monotonic(), Leftovers()
        try:
            left.exit_code = self.stop()
        except subprocess.TimeoutExpired:
            left.processes.append(f"the service itself, {_END_S:g} s after SIGTERM")
        left.seconds = time.monotonic() - began
        until = time.monotonic() + _GONE_S
        while (still := self._ours()) and time.monotonic() < until:
            time.sleep(0.05)
        left.processes += [f"{role} {pid}" for pid, role in still.items()]
        left.files = [str(path.relative_to(self.folder)) for path in self._strays()]
        fresh = _entries(SHARED_MEMORY) - self._shared_before
        left.shared = sorted(fresh & self._shared_ours)
        left.shared_by_others = sorted(fresh - self._shared_ours)
        self.kill_rest()
        return left

    def kill_rest(self) -> None:
        """Whatever still runs, if the benchmark itself failed."""
        for pid in self._ours():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GONE_S)

    def _strays(self) -> list[Path]:
        """Files where none should be: all of the temporary and working folders, parts and drafts of the journal."""
        strays = [*self._temporary.iterdir(), *self._cwd.iterdir()]
        strays += [path for path in self.journal.iterdir() if path.name not in _KEPT]
        jobs = [path for folder in (self.journal / "jobs").iterdir() for path in (folder, *folder.iterdir())]
        other = [*(self.journal / "graphs").iterdir(), *(self.journal / "uploads").iterdir()]
        strays += [path for path in (*jobs, *other) if path.suffix in (".part", ".draft", ".tmp")]
        strays += [path for path in jobs if path.is_dir() and not (path / "job.json").is_file()]
        strays += [path for path in (self.journal / "uploads").iterdir() if not self._registered(path.name)]
        return sorted(set(strays))

    def _registered(self, name: str) -> bool:
        return (self.journal / "graphs" / f"{name}.json").is_file()

    # -------------------------------------------------------------------------------------- processes

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def readiness(self) -> dict[str, Any] | None:
        """What /readyz says; None while it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/readyz")
            found: dict[str, Any] = json.loads(connection.getresponse().read())
            return found
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def look(self) -> list[Seen]:
        """All our processes, their memory and open files; notes what of shared memory they use."""
        found = []
        for pid, role in self._ours().items():
            with contextlib.suppress(OSError, ValueError, IndexError):
                size = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                found.append(Seen(pid, role, size, len(os.listdir(f"/proc/{pid}/fd"))))
                mapped = Path(f"/proc/{pid}/maps").read_text() + "\n" + "\n".join(_arguments(pid))
                parts = [text.partition(f"{SHARED_MEMORY}/")[2] for text in mapped.splitlines()]
                self._shared_ours |= {part.partition("/")[0].partition(" ")[0] for part in parts if part}
        return found

    def ranks(self) -> list[int]:
        """Process ids of the pool's ranks."""
        return [pid for pid, role in self._ours().items() if role == "rank"]

    def kill(self, pid: int) -> bool:
        """SIGKILL, if it is one of ours; whether it was there."""
        if pid not in self._ours():
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def _ours(self) -> dict[int, str]:
        """Living processes with our mark, and what each is."""
        found = {}
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and self._is_ours(entry.name):
                found[int(entry.name)] = self._role(int(entry.name))
        return found

    def _is_ours(self, pid: str) -> bool:
        try:
            marked = self._mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return marked and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (OSError, IndexError):
            return False

    def _role(self, pid: int) -> str:
        if self._process is not None and pid == self._process.pid:
            return "service"
        arguments = _arguments(pid)
        if arguments and "python" not in Path(arguments[0]).name:
            return "launcher"
        if "hybrid.service.rank_pool.member" in arguments:
            return "rank"
        return "worker" if any("npu_engine" in one for one in arguments) else "other"


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _entries(folder: Path) -> set[str]:
    return set(os.listdir(folder)) if folder.is_dir() else set()
