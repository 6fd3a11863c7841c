"""One pool as processes: the launcher, a connection and a handle for each rank, and what all of them say.

Invariant: every rank came to our socket, whose folder no other user may enter, and bears the launcher's mark, by which
alone processes are ended; when ``end`` returns, launcher and ranks of this machine are gone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import struct
import time
from dataclasses import dataclass
from typing import IO

from hybrid.errors import EnvironmentProblem
from hybrid.launch.command import Launch
from hybrid.launch.output import LaunchOutput
from hybrid.launch.process import Lines, end_launcher, start_launcher
from hybrid.launch.processes import activity, is_marked, kill_marked, process_state
from hybrid.launch.silence import Silence
from hybrid.service.rank_pool.wire import WireError, read_frame

_log = logging.getLogger(__name__)
_HELLO_S = 5.0  # for the first words of a rank that has connected
_LAST_WORDS_S = 2.0  # mpirun takes about one to end the others and say whom it has lost
_LOOKS = 8  # within the time after which a rank counts as stuck
_CREDENTIALS = struct.Struct("iII")  # pid, user, group: of the process that connected
_ERROR = "tandem: error: "


@dataclass(eq=False)
class RankHandle:
    """One rank on this machine."""

    rank: int
    pid: int
    connection: socket.socket
    stream: IO[bytes]


class PoolProcess:
    """A started pool. Used by one thread, which must live as long: the launcher is tied to it."""

    def __init__(self, launch: Launch, listening: socket.socket, hang_s: float) -> None:
        self.ranks: dict[int, RankHandle] = {}
        self._output = LaunchOutput()
        self._told = ""  # by a rank, of its own end
        self._looked, self._hang_s, self._silence = 0.0, hang_s, Silence(hang_s)
        self._launched = start_launcher(launch)
        self._process = self._launched.process
        self.streams = selectors.EpollSelector()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            self.streams.register(stream, selectors.EVENT_READ, Lines(stream, self._output, self._show))
        self.listening = listening

    @property
    def complete(self) -> bool:
        """All ranks have met, and those of this machine are connected."""
        hosts = self._output.hosts
        return bool(hosts) and len(self.ranks) == hosts.count(hosts[0])

    @property
    def over(self) -> bool:
        return self._process.poll() is not None

    def read_lines(self) -> None:
        """Pass on to the log what launcher and ranks have said."""
        for key, _ in self.streams.select(0):
            if not key.data.pump():
                self.streams.unregister(key.fileobj)

    def _show(self, line: str) -> None:
        if line.startswith(_ERROR):
            self._told = self._told or line[len(_ERROR) :]
        if line.strip():
            _log.info("crew: %s", line)

    def admit(self) -> RankHandle | None:
        """Take in who has come to the socket; None if it is none of ours."""
        connection, _ = self.listening.accept()
        with contextlib.suppress(OSError, WireError, KeyError, ValueError, TypeError), contextlib.ExitStack() as undo:
            undo.callback(connection.close)
            connection.settimeout(_HELLO_S)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, user, _ = _CREDENTIALS.unpack(credentials)
            stream = undo.enter_context(connection.makefile("rb"))
            hello = read_frame(stream)
            ours = user == os.getuid() and is_marked(pid, self._launched.mark)
            if hello is None or hello.kind != "hello" or not ours:
                raise WireError("this is no rank of the pool")
            rank = int(hello.facts["rank"])
            if rank in self.ranks:
                raise WireError("this rank is there already")
            connection.settimeout(None)
            self.ranks[rank] = RankHandle(rank, pid, connection, stream)
            undo.pop_all()
            return self.ranks[rank]
        return None

    def silent(self, *, excused: bool) -> str:
        """Who has not run for so long that it counts as stuck. Ranks that wait look around all the time.

        mpirun sleeps while nothing happens, so only one that is stopped counts. ``excused``: the service itself keeps
        the ranks waiting.
        """
        now = time.monotonic()
        if now - self._looked < self._hang_s / _LOOKS:
            return ""
        self._looked = now
        living = {rank: now if excused else activity(handle.pid) or now for rank, handle in self.ranks.items()}
        signs: dict[str, object] = {f"rank {rank} stood still": sign for rank, sign in living.items()}
        signs["mpirun was stopped"] = "T" if process_state(self._process.pid) == "T" else now
        who = self._silence.look(signs, now)
        return "" if who is None else f"{who} for {self._hang_s:g} s"

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
                kill_marked(handle.pid, self._launched.mark)
        self.wait(_LAST_WORDS_S)
        for line in self._output.finish():
            self._show(line)
        self.streams.close()
        end_launcher(self._launched)
        for handle in self.ranks.values():
            with contextlib.suppress(OSError):
                handle.stream.close()
            handle.connection.close()
        self.ranks.clear()
        code = self._process.returncode
        _, error = self._output.verdict(code)
        fix = "see the service's log"
        if self._told and not by_force:
            reason, _, told = self._told.partition(". Fix: ")
            return EnvironmentProblem(reason, fix=told or fix)
        if by_force or error is None or (fallback and error.reason.startswith("the launcher")):
            return EnvironmentProblem(fallback or "the ranks have ended", fix=fix)
        return EnvironmentProblem(error.reason.partition("; the other ranks")[0], fix=error.fix or "")
