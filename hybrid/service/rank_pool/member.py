"""One rank of the service's rank pool: ``mpirun -n P python -m mpi4py -m hybrid.service.rank_pool.member SOCKET``.

Rank 0 takes orders from the socket and hands them on; every rank of the service's machine holds a connection, by which
the service knows that it lives, and it that the service does. Invariant: a rank whose service is gone ends at once.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import queue
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from cpu_engine.comm.collectives import RankInfo, barrier
from exchange.escape import PrintableFormatter
from hybrid.config.schema import Config
from hybrid.errors import EXIT_ENVIRONMENT, EnvironmentProblem
from hybrid.launch.announce import Announcer
from hybrid.launch.environment import detect_mpi_environment
from hybrid.launch.shared_memory import BACKING_DIRECTORY
from hybrid.launch.shared_memory import PREFIX as SEGMENTS_PREFIX
from hybrid.ranks.process import among_ranks, meet
from hybrid.ranks.rendezvous import Agreed
from hybrid.service.http.problems import problem_of
from hybrid.service.rank_pool.folders import PREFIX, remove_left
from hybrid.service.rank_pool.orders import Order, PoolWork, StoppedTogether, hear_order, stoppable, tell_order
from hybrid.service.rank_pool.wire import Frame, WireError, frame_bytes, read_frame

if TYPE_CHECKING:
    from cpu_engine.comm.mpi import MpiTransport

_LOOK_S = 0.5  # rank 0, waiting for an order, shows a sign of life: the service looks for ranks that stand still


class Member:
    """This rank, once all have met."""

    def __init__(self, transport: MpiTransport, info: RankInfo, path: str) -> None:
        self._transport, self._seat = transport, info
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._stop_up_to = 0  # the last order that shall not go on
        self._ticket = self._finished = 0
        self._speaking = threading.Lock()
        self._path = Path(path)
        self._connection: socket.socket | None = None
        if info.host == info.hosts[0]:
            self._connection = self._connect(path)
        self._work = PoolWork(info, self._say)

    def _connect(self, path: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except OSError as error:
            raise EnvironmentProblem(
                f"rank {self._seat.rank} on {self._seat.host} does not reach the service: {error.strerror}",
                fix="the first of cluster.hosts must be the machine that the service runs on",
            ) from error
        threading.Thread(target=self._listen, args=(connection,), name="service", daemon=True).start()
        connection.sendall(frame_bytes(Frame("hello", {"rank": self._seat.rank})))
        return connection

    def serve(self) -> None:
        while (order := self._next_order()) is not None:
            self._ticket = int(order["ticket"])
            try:
                self._transport.run(stoppable(self._work.obey(order), self._is_stopped))
            except Agreed as agreed:
                self._say(Frame("problem", {"ticket": self._ticket, "problem": problem_of(agreed.error).document()}))
            except StoppedTogether:
                self._work.forget_made()
            self._finished = self._ticket
            if self._is_stopped():
                self._say(Frame("stopped", {"ticket": self._ticket}))
        self._transport.run(barrier())

    def _next_order(self) -> Order | None:
        """None: it is over."""
        if self._seat.rank != 0:
            heard: Order = self._transport.run(hear_order())
            return heard or None
        while True:
            try:
                order = self._orders.get(timeout=_LOOK_S)
                break
            except queue.Empty:
                continue
        self._transport.run(tell_order(self._seat, order or {}))
        return order

    def _is_stopped(self) -> bool:
        return self._ticket <= self._stop_up_to

    def _say(self, frame: Frame) -> None:
        if self._seat.rank == 0 and self._connection is not None:
            with self._speaking:
                self._connection.sendall(frame_bytes(frame))

    def _listen(self, connection: socket.socket) -> NoReturn:
        """What the service says; its silence is the end."""
        try:
            with connection.makefile("rb") as stream:
                while (frame := read_frame(stream)) is not None:
                    if frame.kind == "order":
                        self._orders.put(frame.facts)
                    elif frame.kind == "stop":
                        self._stop_up_to = max(self._stop_up_to, frame.ticket)
                        if frame.ticket <= self._finished:
                            self._say(Frame("stopped", {"ticket": frame.ticket}))
                    elif frame.kind == "end":
                        self._orders.put(None)
        except (OSError, WireError):
            pass
        remove_left(self._path.parent, PREFIX)  # of a service that was killed
        remove_left(Path(os.environ.get(BACKING_DIRECTORY, "")), SEGMENTS_PREFIX)
        os._exit(EXIT_ENVIRONMENT)


def main(arguments: list[str]) -> None:
    path, threads = arguments
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    world = detect_mpi_environment(os.environ)
    if world is None:
        raise SystemExit("this is started by the service, on several ranks")
    quiet = dataclasses.replace(Config().cluster, silence_timeout_s=None)  # the service sees its ranks by itself
    config = Config(threads=threads if threads == "auto" else int(threads), cluster=quiet)

    def serve(config: Config, transport: MpiTransport, announcer: Announcer, launcher_pid: int | None) -> None:
        Member(transport, meet(config, transport, announcer), path).serve()

    among_ranks(config, world, serve)


if __name__ == "__main__":
    main(sys.argv[1:])
