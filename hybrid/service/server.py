"""The process: HTTP on a thread, computing on the main thread, and an orderly end.

SIGTERM and SIGINT drain: nothing new is accepted, what runs has ``service.drain_s`` to end, and is then stopped and
left to the journal. A second signal does not wait.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
import time
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from hybrid.config.schema import Config
from hybrid.errors import EnvironmentProblem
from hybrid.job.warm_up import set_threads
from hybrid.service.http.access import read_token
from hybrid.service.http.application import make_app
from hybrid.service.http.connections import BURST, KEEP_ALIVE_S, Connection, Connections
from hybrid.service.logs import set_up_logging
from hybrid.service.memory import keep_few_arenas
from hybrid.service.queue.jobs import Job
from hybrid.service.service import Service
from hybrid.terminal import say

_log = logging.getLogger(__name__)
_SWITCH_S = 0.0005  # how long one of the two threads may keep the other from running Python
_BACKLOG = 1024
_LAST_ANSWERS_S = 2.0


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; EnvironmentProblem if the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, because asyncio sends small answers at once only on sockets that say so.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise EnvironmentProblem(
            f"cannot listen there: {error.strerror}", value=f"{host}:{port}", fix="set service.host and service.port"
        ) from error
    return listening


class Server:
    """One service in this process."""

    def __init__(self, config: Config, *, verbose: bool = False) -> None:
        self.settings = config.service
        token = read_token(self.settings)
        if config.threads != "auto":
            set_threads(int(config.threads))
        set_up_logging(token, verbose=verbose)
        self.service = Service(config)
        self._connections = self.service.connections = Connections(self.settings)
        protocol: Any = partial(Connection, self._connections)
        options = uvicorn.Config(
            make_app(self.service, token), http=protocol, log_config=None, access_log=False, server_header=False,
            ws="none", lifespan="off", proxy_headers=False, timeout_keep_alive=KEEP_ALIVE_S, backlog=BURST,
        )  # fmt: skip
        self._http = uvicorn.Server(options)
        self._signals = 0
        self._drained = threading.Timer(0, self._stop_running)

    def run(self) -> None:
        keep_few_arenas()
        sys.setswitchinterval(_SWITCH_S)
        listening = bind(self.settings.host, self.settings.port)
        address = listening.getsockname()
        thread = threading.Thread(target=self._serve, args=(listening,), name="http")
        try:
            self.service.open()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._end)
            thread.start()
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            say(f"tandem serves on http://{host}:{address[1]}")
            self.service.compute.run()
        finally:
            self._drained.cancel()
            self.service.compute.close(stop_running=False)
            self._http.should_exit = True
            if thread.is_alive():
                thread.join()
            listening.close()
            self.service.close()
        _log.info("ended")

    def _serve(self, listening: socket.socket) -> None:
        async def serve() -> None:
            loop = asyncio.get_running_loop()
            self.service.bus.attach(loop)
            for job in self.service.book.all():
                self.service.arm_deadline(job, loop)
            watches = [loop.create_task(self._end_streams()), loop.create_task(self._connections.watch())]
            loop.call_soon(listening.listen, _BACKLOG)  # asyncio has set it to what it accepts at once
            await self._http.serve(sockets=[listening])
            for watch in watches:
                watch.cancel()

        asyncio.run(serve())

    async def _end_streams(self) -> None:
        """Event streams would keep the server from ending."""
        while not self._http.should_exit:
            await asyncio.sleep(0.05)
        self.service.bus.close()
        self._http.config.timeout_graceful_shutdown = int(_LAST_ANSWERS_S)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self.service.draining = True
        if isinstance(work := self.service.compute.running, Job):
            self.service.book.excuse(work)  # an operator may lose patience and kill it
        if self._signals == 1:
            _log.info("draining", extra={"facts": {"signal": signal.Signals(number).name}})
            self.service.compute.close(stop_running=False)
            self._drained = threading.Timer(self.settings.drain_s, self._stop_running)
            self._drained.daemon = True
            self._drained.start()
        else:
            self._stop_running()

    def _stop_running(self) -> None:
        self.service.compute.close(stop_running=True)


def serve(config: Config, *, verbose: bool = False) -> float:
    """Run a service to its end; how long it ran."""
    began = time.monotonic()
    Server(config, verbose=verbose).run()
    return time.monotonic() - began
