"""One pool as processes: the launcher, a connection and a handle for each rank, and what all of them say.

Invariant: every process handle belongs to a rank that came to our socket, whose folder no other user may enter; when
``end`` returns, launcher and ranks of this machine are gone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import socket
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hybrid.errors import EnvironmentProblem
from hybrid.launch.command import Launch
from hybrid.launch.output import LaunchOutput
from hybrid.launch.process import end_launcher, start_launcher
from hybrid.launch.processes import process_state
from hybrid.service.rank_pool.wire import WireError, read_frame, reader

_log = logging.getLogger(__name__)
_BLOCK = 1 << 16
_HELLO_S = 5.0  # for the first words of a rank that has connected
_LAST_WORDS_S = 2.0  # mpirun takes about one to end the others and say whom it has lost
_GONE_S = 5.0
_LOOKS = 8  # within the time after which a rank counts as stuck
_CREDENTIALS = struct.Struct("iII")  # pid, user, group: of the process that connected
_ERROR = "tandem: error: "


@dataclass(eq=False)
class RankHandle:
    """One rank on this machine."""

    rank: int
    pid: int
    process: int  # a pidfd: never another process, whatever becomes of the number
    connection: socket.socket
    stream: IO[bytes]
    ran_ns: int = 0  # CPU time when last looked at, and since when it is that
    since: float = field(default_factory=time.monotonic)

    def cpu_ns(self) -> int | None:
        """What all its threads have run so far; None where the system does not say."""
        try:
            tasks = [Path(entry.path, "schedstat") for entry in os.scandir(f"/proc/{self.pid}/task")]
            return sum(int(task.read_text().split()[0]) for task in tasks)
        except (OSError, ValueError, IndexError):
            return None

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.stream.close()
        self.connection.close()
        os.close(self.process)


class PoolProcess:
    """A started pool. Used by one thread, which must live as long: the launcher is tied to it."""

    def __init__(self, launch: Launch, listening: socket.socket) -> None:
        self.ranks: dict[int, RankHandle] = {}
        self.hosts: list[str] = []
        self._output = LaunchOutput()
        self._told = ""  # by a rank, of its own end
        self._looked = 0.0
        self._stopped_since: float | None = None
        self._rest: dict[Any, bytes] = {}
        self._launched = start_launcher(launch)
        self._process = self._launched.process
        self.streams = selectors.EpollSelector()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            self.streams.register(stream, selectors.EVENT_READ)
        self.listening = listening

    @property
    def complete(self) -> bool:
        """All ranks have met, and those of this machine are connected."""
        return bool(self.hosts) and len(self.ranks) == self.hosts.count(self.hosts[0])

    @property
    def over(self) -> bool:
        return self._process.poll() is not None

    def read_lines(self) -> None:
        """Pass on to the log what launcher and ranks have said."""
        for key, _ in self.streams.select(0):
            stream: Any = key.fileobj
            block = os.read(stream.fileno(), _BLOCK)
            *lines, rest = (self._rest.get(stream, b"") + block).split(b"\n")
            self._rest[stream] = rest
            if not block:
                self.streams.unregister(stream)
                lines.append(rest)
            for line in lines:
                for shown in self._output.feed(line.decode(errors="replace").rstrip("\r")):
                    self._show(shown)

    def _show(self, line: str) -> None:
        if line.startswith(_ERROR):
            self._told = self._told or line[len(_ERROR) :]
        if line.strip():
            _log.info("crew: %s", line)

    def admit(self) -> RankHandle | None:
        """Take in who has come to the socket; None if it is none of ours."""
        connection, _ = self.listening.accept()
        connection.settimeout(_HELLO_S)
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, user, _ = _CREDENTIALS.unpack(credentials)
        stream = reader(connection)
        try:
            process = os.pidfd_open(pid)
        except OSError:  # it is gone already
            stream.close()
            connection.close()
            return None
        try:
            hello = read_frame(stream)
            assert hello is not None
            rank, hosts = int(hello.facts["rank"]), [str(host) for host in hello.facts["hosts"]]
            if hello.kind != "hello" or user != os.getuid() or rank in self.ranks:
                raise WireError("this is no rank of the pool")
        except (OSError, WireError, AssertionError, KeyError, ValueError, TypeError):
            stream.close()
            connection.close()
            os.close(process)
            return None
        connection.settimeout(None)
        self.hosts = hosts
        self.ranks[rank] = RankHandle(rank, pid, process, connection, stream)
        return self.ranks[rank]

    def stands_still(self, limit_s: float, *, excused: bool) -> RankHandle | None:
        """A rank that has not run at all for so long: stopped, or stuck. Waiting ranks look around all the time.

        ``excused``: the service itself keeps them waiting.
        """
        now = time.monotonic()
        if now - self._looked < limit_s / _LOOKS and not excused:
            return None
        self._looked = now
        for handle in self.ranks.values():
            ran = handle.cpu_ns()
            if excused or ran is None or ran != handle.ran_ns:
                handle.ran_ns, handle.since = ran or 0, now
            elif now - handle.since > limit_s:
                return handle
        return None

    def launcher_stopped(self, limit_s: float) -> bool:
        """Whether mpirun has been stopped for so long. Its CPU time says nothing: it sleeps while nothing happens."""
        now = time.monotonic()
        if process_state(self._process.pid) != "T":
            self._stopped_since = None
            return False
        self._stopped_since = self._stopped_since or now
        return now - self._stopped_since > limit_s

    def wait(self, limit_s: float) -> bool:
        """Listen until launcher and ranks have ended, at most so long; whether they have."""
        until = time.monotonic() + limit_s
        while self.streams.get_map() and time.monotonic() < until:
            self.streams.select(max(0.0, until - time.monotonic()))
            self.read_lines()
        with contextlib.suppress(Exception):
            self._process.wait(max(0.01, until - time.monotonic()))
        return self.over

    def end(self, fallback: str, *, by_force: bool) -> EnvironmentProblem:
        """Make sure that nothing is left of it; why it ended, or ``fallback`` if no rank gave a reason.

        ``by_force``: ``fallback`` is the reason, and ranks that would not listen to the launcher are killed first.
        """
        if by_force:
            for handle in self.ranks.values():
                handle.kill()
        self.wait(_LAST_WORDS_S)
        for line in self._output.finish():
            self._show(line)
        self.streams.close()
        end_launcher(self._launched)
        self._bury()
        code = self._process.returncode
        _, error = self._output.verdict(code)
        if by_force:
            return EnvironmentProblem(fallback, fix="see the service's log")
        if self._told:
            reason, _, fix = self._told.partition(". Fix: ")
            return EnvironmentProblem(reason, fix=fix or "see the service's log")
        if fallback and (error is None or error.reason.startswith("the launcher")):
            return EnvironmentProblem(fallback, fix="see the service's log")
        if error is None:
            return EnvironmentProblem("the ranks have ended", fix="see the service's log")
        return EnvironmentProblem(error.reason.partition("; the other ranks")[0], fix=error.fix or "")

    def _bury(self) -> None:
        """mpirun has ended its ranks; one that it could not reach is ended here, by its own handle."""
        for handle in self.ranks.values():
            handle.kill()
        until = time.monotonic() + _GONE_S
        with selectors.DefaultSelector() as left:
            for handle in self.ranks.values():
                left.register(handle.process, selectors.EVENT_READ)
            while left.get_map() and time.monotonic() < until:
                for key, _ in left.select(max(0.0, until - time.monotonic())):
                    left.unregister(key.fileobj)
        for handle in self.ranks.values():
            handle.close()
        self.ranks.clear()
