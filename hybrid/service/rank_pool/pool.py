"""The rank pool: resident ranks that compute jobs for the service, and the thread that keeps them alive.

MPI ends all ranks when one dies, so the service stands outside: it starts ``mpirun``, talks to rank 0 over a socket
(wire.py), notices when a rank ends or stands still, ends the rest and starts another pool. Invariant: an order is
answered by the pool it was given to, or ``PoolLost`` is raised; frames of an order without a waiting job are
dropped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import queue
import select
import selectors
import socket
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from cpu_engine.errors import ExplainedError
from hybrid.config.schema import Config
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.launch.command import Launch, ask_flavour, build_launch, find_launcher, this_machine
from hybrid.launch.environment import detect_mpi_environment
from hybrid.launch.shared_memory import segments_of
from hybrid.service.http.problems import Problem
from hybrid.service.lives import ENDING, FAILED, UP, PoolState
from hybrid.service.rank_pool.folders import PoolFolder
from hybrid.service.rank_pool.process import PoolProcess, RankHandle
from hybrid.service.rank_pool.wire import Frame, WireError, frame_bytes, read_frame

_log = logging.getLogger(__name__)
MODULE = "hybrid.service.rank_pool.member"
HANG_S = 30.0  # a rank that has not run for so long is stuck; on a machine so busy, nothing works
STOP_S = 5.0  # for an order that shall stop to do so; otherwise the pool is ended
_END_S = 3.0  # for an orderly end
_LOOK_S = 0.25
_SOON_S = 0.02
_MOST_WAITING = 4  # results that wait for their check: further ones wait in the pool
_LAUNCHER_ENDED = "the launcher has ended"  # it, or a rank, has given the reason
_OVER = ("done", "problem", "stopped")


class PoolLost(Exception):
    """The pool has ended with the order unanswered. ``guilty``: while it was working on it."""

    def __init__(self, reason: str, *, guilty: bool) -> None:
        super().__init__(reason)
        self.reason, self.guilty = reason, guilty


class RankPool:
    """``open`` before use, ``close`` at the end; orders by one thread at a time."""

    def __init__(self, config: Config, *, hang_s: float = HANG_S, stop_s: float = STOP_S) -> None:
        self.state = PoolState(config.ranks)
        self._config, self._hang_s, self._stop_s = config, hang_s, stop_s
        self._launcher, self._flavour = "", ""
        self._folder: PoolFolder | None = None
        self._thread: threading.Thread | None = None
        self._first: ExplainedError | None = None  # why the very first pool did not come
        self._tickets = 0
        self._wanted = 0  # the order whose frames a job waits for
        self._inbox: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._given: set[int] = set()  # orders that the present pool has
        self._stopping: dict[int, float] = {}  # of these, which shall stop, and until when
        self._clogged = self._deaf = False
        self._unheard = False  # a rank does not obey
        self._wake, self._bell = -1, -1  # event counters: for the keeper, and for the thread that waits for frames

    # ------------------------------------------------------------------------------------- life

    def open(self) -> None:
        """Start it and wait until it is there; EnvironmentProblem or ConfigError if it cannot be."""
        if detect_mpi_environment(os.environ) is not None:
            raise ConfigError(
                "ranks: the service starts its ranks itself, and was started as one", value=self.state.wanted,
                fix="start it without mpirun or srun",
            )  # fmt: skip
        self._launcher = find_launcher(self._config.cluster.mpirun)
        self._flavour = ask_flavour(self._launcher)
        self._folder = PoolFolder()
        for remark in self._launch("").notes:
            _log.warning("ranks: %s", remark)
        self._wake, self._bell = (os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(2))
        self._thread = threading.Thread(target=self._keep, name="rank-pool", daemon=True)
        self._thread.start()
        while self.state.state != UP:
            if self._first is not None:
                raise self._first
            time.sleep(_SOON_S)

    def close(self) -> None:
        """End it; afterwards no process and no file of it is left."""
        self.state.state = ENDING
        if self._thread is not None:
            ring(self._wake)
            self._thread.join()
            self._thread = None
            os.close(self._wake)
            os.close(self._bell)
        if self._folder is not None:
            self._folder.remove()

    def gauges(self) -> dict[str, tuple[str, float]]:
        return {
            "ranks_wanted": ("ranks of the pool", self.state.wanted),
            "ranks_alive": ("of these, those that are there", self.state.alive),
            "crew_restarts_total": ("times the ranks had to be started again", self.state.restarts),
        }

    @property
    def folder(self) -> Path:
        """For what lasts as long as it."""
        assert self._folder is not None
        return self._folder.path

    @property
    def usable(self) -> bool:
        """It is there, or will be soon."""
        return self.state.state not in (FAILED, ENDING)

    # ------------------------------------------------------------------------------------- orders

    def carry_out(self, order: dict[str, Any]) -> Generator[Frame, None, dict[str, Any]]:
        """The ``run`` frames of an order as they come; the facts of its ``done`` at the end.

        PoolLost if the pool ends, Problem if the order cannot be carried out. Left early, the order is stopped.
        """
        self._tickets += 1
        ticket = self._tickets
        try:
            while self.state.state != UP:
                if not self.usable:
                    raise PoolLost(self.state.reason, guilty=False)
                time.sleep(_SOON_S)
            losses = self.state.restarts
            self._inbox = queue.SimpleQueue()
            self._wanted = ticket
            self._outbox.put(Frame("order", {**order, "ticket": ticket}))
            ring(self._wake)
            for frame in self._frames(ticket, losses):
                if frame.kind == "run":
                    yield frame
                elif frame.kind == "done":
                    self._wanted = 0
                    return frame.facts
                elif frame.kind == "problem":
                    problem = frame.facts["problem"]
                    raise Problem(int(problem["status"]), str(problem["detail"]), str(problem["fix"]))
        finally:
            if self._wanted == ticket:
                self._wanted = 0
                self._outbox.put(Frame("stop", {"ticket": ticket}))
                ring(self._wake)
        raise AssertionError("frames end with the pool")

    def _frames(self, ticket: int, losses: int) -> Iterator[Frame]:
        while True:
            try:
                frame = self._inbox.get_nowait()
            except queue.Empty:
                # Not get(timeout): that may wait for ever if a signal's handler takes longer than the timeout.
                select.select([self._bell], [], [], _SOON_S)
                stop_ringing(self._bell)
                if self.state.restarts != losses or self.state.state == ENDING:
                    self._wanted = 0  # no rank is left that could stop it
                    raise PoolLost(self.state.reason, guilty=True) from None
                continue
            if frame.ticket == ticket:
                yield frame

    # ------------------------------------------------------------------------- the keeper's thread

    def _keep(self) -> None:
        """Start a pool, watch it to its end, start the next; until the service ends."""
        while self.state.state != ENDING:
            self.state.starts()
            self._outbox = queue.SimpleQueue()  # orders were for ranks that have ended: who waits gets PoolLost
            self._given.clear()
            self._stopping.clear()
            self._clogged = self._deaf = self._unheard = False
            problem: ExplainedError
            try:
                problem = self._run_one()
            except (EnvironmentProblem, ConfigError) as error:
                problem = error
            except OSError as error:
                reason = f"the ranks cannot be started: {error.strerror or error}"
                problem = EnvironmentProblem(reason, fix="let TMPDIR be a folder with a short name and free space")
            if self.state.state == ENDING:
                return
            pause_s = self.state.lost(problem.reason, time.monotonic())
            _log.warning("crew", extra={"facts": {"state": self.state.state, "reason": problem.reason}})
            if self.state.number == 1 and self.state.pauses.failed_starts:
                self._first = problem
                return
            until = time.monotonic() + pause_s
            while self.state.state != ENDING and (left := until - time.monotonic()) > 0:
                time.sleep(min(left, _LOOK_S))

    def _launch(self, path: str) -> Launch:
        config = self._config
        threads = next((str(t) for t in (config.cluster.threads_per_rank, config.threads) if t != "auto"), "auto")
        launch = build_launch(config, this_machine(), self._launcher, self._flavour, [path, threads], MODULE)
        assert self._folder is not None
        if not path or not launch.here:
            return launch  # other machines have no such folder
        environment = {**launch.environment, "TMPDIR": str(self._folder.temporary())}
        return dataclasses.replace(launch, environment=environment)

    def _run_one(self) -> EnvironmentProblem:
        """From the start to the end of one pool; why it ended."""
        path = self.folder / f"{self.state.number}.sock"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
                listening.bind(str(path))
                listening.listen(self.state.wanted)
                with segments_of(self._launch(str(path))) as launch:
                    return self._watch(PoolProcess(launch, listening, self._hang_s))
        finally:
            path.unlink(missing_ok=True)

    def _watch(self, pool: PoolProcess) -> EnvironmentProblem:
        hearing: threading.Thread | None = None
        why = ""
        try:
            until = time.monotonic() + self._config.cluster.launch_timeout_s
            with selectors.DefaultSelector() as selector:
                selector.register(pool.listening, selectors.EVENT_READ)
                selector.register(self._wake, selectors.EVENT_READ)
                selector.register(pool.streams.fileno(), selectors.EVENT_READ)
                while not why:
                    for key, _ in selector.select(_LOOK_S):
                        if key.fileobj is pool.listening:
                            handle = pool.admit()
                            if handle is not None and handle.rank == 0:
                                hearing = threading.Thread(target=self._listen, args=(handle,), daemon=True)
                                hearing.start()
                            elif handle is not None:
                                selector.register(handle.connection, selectors.EVENT_READ, handle)
                        elif isinstance(key.data, RankHandle):
                            why = f"rank {key.data.rank} has ended"
                    why = why or self._look(pool, until)
        finally:
            self._deaf = True
            self.state.falls(why)
            if self.state.state == ENDING and 0 in pool.ranks:
                with contextlib.suppress(OSError):
                    pool.ranks[0].connection.sendall(frame_bytes(Frame("end")))
                pool.wait(_END_S)
            problem = pool.end("" if why == _LAUNCHER_ENDED else why, by_force=self._unheard)
            if hearing is not None:
                hearing.join()
        return problem

    def _look(self, pool: PoolProcess, until: float) -> str:
        """One turn of the watch; why the pool must end, or nothing."""
        stop_ringing(self._wake)
        pool.read_lines()
        now = time.monotonic()
        if self.state.state == ENDING:
            return "the service ends"
        if self._deaf or pool.over:
            return "rank 0 has ended" if self._deaf else _LAUNCHER_ENDED
        if self.state.state != UP:
            self.state.alive = len(pool.ranks)
            if pool.complete:
                self.state.is_up(now)
                _log.info("crew", extra={"facts": {"state": UP, "ranks": self.state.wanted}})
            elif now > until:
                return "the ranks have not met within cluster.launch_timeout_s"
            return ""
        if not self._send_waiting(pool.ranks[0].connection):
            return "rank 0 does not listen"
        silent = pool.silent(excused=self._clogged)
        late = any(now > limit for limit in list(self._stopping.values()))
        self._unheard = late or bool(silent)
        return silent or ("a job that was to stop did not" if late else "")

    def _send_waiting(self, connection: socket.socket) -> bool:
        while True:
            try:
                frame = self._outbox.get_nowait()
            except queue.Empty:
                return True
            if frame.kind == "order":
                self._given.add(frame.ticket)
            elif frame.ticket not in self._given:
                continue  # it is over, or another pool had it
            else:
                self._stopping[frame.ticket] = time.monotonic() + self._stop_s
            try:
                connection.sendall(frame_bytes(frame))
            except OSError:
                return False

    # ------------------------------------------------------------------------ the thread that hears

    def _listen(self, handle: RankHandle) -> None:
        try:
            while (frame := read_frame(handle.stream)) is not None:
                while frame.ticket == self._wanted and self._inbox.qsize() >= _MOST_WAITING and not self._deaf:
                    self._clogged = True
                    time.sleep(_SOON_S)
                self._clogged = False
                if frame.ticket == self._wanted:
                    self._inbox.put(frame)
                    ring(self._bell)
                if frame.kind in _OVER:
                    self._given.discard(frame.ticket)
                    self._stopping.pop(frame.ticket, None)
        except (OSError, ValueError, WireError) as error:
            if not self._deaf:
                _log.warning("crew: rank 0 cannot be understood: %s", error)
        finally:  # whatever it was: ranks without a listener are ended
            self._deaf = True
            ring(self._wake)


def ring(bell: int) -> None:
    """Wake the thread that waits for this event counter."""
    with contextlib.suppress(OSError, ValueError):  # the pool is not open
        os.eventfd_write(bell, 1)


def stop_ringing(bell: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.eventfd_read(bell)
