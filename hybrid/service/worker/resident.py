"""One resident worker: a process that is kept warm on the core of one graph, lent to searches, and started again.

A thread of its own keeps it: starts the process (the kernel ends a worker with the thread that started it, so that
thread lives as long as the service), gives it the core, lets it answer rehearsals, notices its death, starts another.
Invariant: the solver is used by its keeper or by the one search that it is lent to, never by both; none waits for a
worker - one that is not ready is not lent. After ``close`` neither process nor exchange directory is left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS
from cpu_engine.graph.graph import Graph
from exchange.errors import ExchangeError
from hybrid.config.schema import Config
from hybrid.results.trace import Trace
from hybrid.service.lives import READY, WorkerLife
from hybrid.worker.simulated import SimulatedSolver
from hybrid.worker.solver import WorkerSolver

_log = logging.getLogger(__name__)
_LOOK_S = 0.25  # how often a worker at rest is looked at
_GUARD_S = 0.01  # the keeper has the solver for a millisecond at a time
_RETURN_S = 1.0  # after a job with a core of its own, the worker's comes back after so long, or when it is asked for
_RELOAD_S, _NAP_S = 0.5, 0.005  # a job waits so long for that
_MOST_ROUNDS = 32  # whose files may lie about
_IDLE_S = 600.0  # a worker that is only there because a job asked for it ends after so long without rounds
_LOG_BYTES = 4 << 20
_FALSE = ("bad answer", "the worker is not trusted any more")  # what the protocol says of a worker that lied

_PATH = re.compile(r"(?<![\w.])/[\w./-]+")


@dataclass(frozen=True, eq=False)
class Core:
    """The first ``size`` vertices of a graph, and the edges among them."""

    name: str
    graph: Graph
    size: int

    def rehearsals(self) -> list[np.ndarray]:
        """One vector, and batches of each size that a device compiles for."""
        one = np.full(self.size, -1, np.int32)
        one[:1] = 0
        widths = [1 << i for i in range(1, ROOTS_PER_PASS.bit_length())]
        return [one, *(np.repeat(one[None], width, axis=0) for width in widths)]


class ResidentSolver(WorkerSolver):
    """The solver of many jobs: what ``WorkerSolver`` lacks for a worker that outlives each of them."""

    def start(self) -> None:
        """A service may have no idle moment: a worker that starts with what is left would never be ready."""
        super().start()
        if self._supervisor is not None:
            self._supervisor.let_work()

    @property
    def rounds_written(self) -> int:
        return self._protocol.rounds_written

    @property
    def pid(self) -> int | None:
        return None if self._supervisor is None else self._supervisor.pid

    def settle(self) -> None:
        """Whatever a search that was cut short left behind: no round is outstanding after this, no answer waits."""
        self.abandon()
        self._answer = None

    def tidy(self) -> None:
        """Remove the files of abandoned rounds and of earlier cores: a worker that stays must not fill the disk."""
        if self._opened and not self.busy and not self._config.exchange.keep:
            self._suppress(self._mailbox.tidy)


class ResidentWorker:
    """See the module. ``want``, ``lend`` and ``give_back`` are for the computing thread, ``tell`` for any."""

    def __init__(self, config: Config, log_path: Path, note: Path, changed: Callable[[], None], why: str) -> None:
        npu = dataclasses.replace(config.npu, batch=1, index="off")
        self._config, self._log_path, self._note = dataclasses.replace(config, npu=npu), log_path, note
        self._changed = changed
        self.life = WorkerLife(why)
        self.core: Core | None = None  # the one that it is to hold
        self._given: Core | None = None  # the one that was published last; once READY, it has answered on it
        self._left: list[np.ndarray] = []
        self._solver: ResidentSolver | None = None
        self._guard = threading.Lock()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self.busy = False  # it is lent
        self._closing = self._wanted = self._lasting = self._asked = self._late = False
        self._why = why
        self._rounds = self._tidied = 0
        self._told: tuple[object, ...] = ()
        self.device, self.simulated = "none", ""
        self.used_at = -math.inf
        self.lendings = 0

    # ------------------------------------------------------------------------------- the computing thread

    def want(self, core: Core | None, why: str, *, lasting: bool) -> None:
        """Keep this core warm from now on (None: start, the core comes later). ``lasting``: also without queries."""
        self.core, self._lasting, self.used_at = core, self._lasting or lasting, time.monotonic()
        self._wanted, self._why = True, why
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="worker-keeper", daemon=True)
            self._thread.start()
        self._news.set()

    def let_go(self, why: str) -> None:
        self.core, self._lasting = None, False
        self._wanted, self._why = False, why
        if self._thread is None:
            self.life.rest(why)
        self._news.set()

    def lend(self, core: Core, *, any_core: bool = False) -> ResidentSolver | None:
        """The solver, if it is there, at rest, and holds this core; with ``any_core`` the borrower brings its own."""
        self.used_at = time.monotonic()
        until = self.used_at + (_RELOAD_S if any_core else 0.0)
        while self.life.reloading and not self.busy and time.monotonic() < until:
            time.sleep(_NAP_S)
        if self.life.state != READY or self.busy:
            return None
        if not any_core and self._given is not core:
            self._asked = True
            self._news.set()
            return None
        if not self._guard.acquire(timeout=_GUARD_S):
            return None
        solver = self._solver
        if solver is not None and self.life.state == READY and not solver.busy:
            solver.begin()
            if solver.usable and (any_core or self._given is core):
                self.busy, self.lendings = True, self.lendings + 1
                return solver
        self._guard.release()
        self._news.set()
        return None

    def publish(self, core: Core) -> None:
        """Give the worker that was lent a core for its borrower alone; its own one comes back afterwards."""
        assert self.busy
        if self._given is not core:
            self._publish(core)

    def _publish(self, core: Core) -> None:
        assert self._solver is not None
        self._given = None
        self._solver.publish_edges(core.graph.out_offsets, core.graph.out_targets, core.size)
        self._given = core

    def taken_over(self) -> None:
        """The borrower published something else."""
        self._given = None

    def refuse(self, reason: str, *, lied: bool = True) -> None:
        """What the worker said was found false, or it was too late too often: the process is not asked again."""
        assert self._solver is not None
        self._late = not lied
        if self._solver.usable:
            self._solver.distrust(reason)

    def give_back(self) -> None:
        """The search is over, however it ended."""
        solver = self._solver
        assert solver is not None
        solver.settle()
        if solver.rounds_written - self._tidied > _MOST_ROUNDS:
            self._tidy(solver)
        self.busy = False
        self._guard.release()
        self.used_at = time.monotonic()
        self._news.set()

    # --------------------------------------------------------------------------------------- any thread

    @property
    def rounds(self) -> int:
        solver = self._solver
        return self._rounds + (0 if solver is None else solver.rounds_written)

    @property
    def pid(self) -> int | None:
        solver = self._solver
        return None if solver is None else solver.pid

    def tell(self) -> dict[str, Any]:
        """The worker as /readyz and the page show it."""
        core, life = self.core, self.life
        return {
            "state": "busy" if self.busy else life.state, "why": _plain(life.why), "device": self.device,
            "simulated": self.simulated or None, "graph": None if core is None else core.name,
            "core_size": None if core is None else core.size, "pid": self.pid, "rounds": self.rounds,
            "searches": self.lendings, "refused": life.lies, "restarts": life.restarts, "deaths": life.deaths,
            "last_death": _plain(life.last_death),
        }  # fmt: skip

    def close(self) -> None:
        self._closing = True
        self._news.set()
        if self._thread is not None:
            self._thread.join()

    # --------------------------------------------------------------------------------------- the keeper

    def _keep(self) -> None:
        while not self._closing:
            with self._guard:
                try:
                    pause_s = self._look()
                except (OSError, ExchangeError) as error:  # no directory, no process: a start that failed
                    self._bury(f"the worker could not be started: {error}")
                    pause_s = 0.0
                except Exception as error:
                    _log.exception("the worker's keeper")
                    self._bury(f"{type(error).__name__}: {error}")
                    pause_s = _LOOK_S
            seen = self.life.state, self.life.why, self.life.starts
            if seen != self._told:
                self._told = seen
                self._changed()
            if pause_s:
                self._news.wait(min(pause_s, threading.TIMEOUT_MAX))
                self._news.clear()
        with self._guard:
            self._end()

    def _look(self) -> float:
        """Do what is due; seconds until the next look."""
        now = time.monotonic()
        if self._solver is not None and not self._lasting and now - self.used_at > _IDLE_S:
            self.let_go("no job asked for it any more")
        if not self._wanted:
            self.life.rest(self._why)
            self._end()
            return math.inf
        self.life.want(self._why)
        if self._solver is None:
            pause_s = self.life.pause_s(now)
            if pause_s > 0:
                return pause_s
            self._start()
        solver = self._solver
        assert solver is not None
        if not solver.usable:
            self._bury(solver.failure)
            return 0.0
        if solver.busy:
            if solver.poll() is None and solver.usable:
                solver.wait()
            return 0.0
        solver.begin()
        return self._go_on(solver, now)

    def _go_on(self, solver: ResidentSolver, now: float) -> float:
        """The solver is at rest: the core that it lacks, the next rehearsal, or all is well."""
        core = self.core
        if core is None:
            return _LOOK_S
        if self._given is not core:
            if self.life.state == READY and not self._asked and now - self.used_at < _RETURN_S:
                return _RETURN_S / 4  # the next job may bring the same core as the last
            self._asked = False
            self.life.load(f"it is given the core of {core.name}")
            self._publish(core)
            self._left = core.rehearsals()
            return 0.0
        if self._left:
            solver.submit(self._left.pop(0))
            return 0.0
        if self.life.state != READY:
            self.device = solver.device
            self.life.serve(now, f"it has the core of {core.name}")
            _log.info("worker", extra={"facts": {"state": READY, "device": self.device, "graph": core.name}})
        self._tidy(solver)
        return _LOOK_S

    def _start(self) -> None:
        self.life.start()
        self._trim_log()
        self._given = None
        self._left, self._late, self._tidied = [], False, 0
        solver = self._solver = ResidentSolver(self._config, self._log_path, Trace())
        if self._config.exchange.dir is None:
            self._note.write_text(str(solver.directory))  # who comes after a SIGKILL can remove it
        solver.start()

    def _tidy(self, solver: ResidentSolver) -> None:
        if solver.rounds_written != self._tidied or self._given is None:
            solver.tidy()
            self._tidied = solver.rounds_written
            self._trim_log()

    def _bury(self, cause: str) -> None:
        self.life.lose(time.monotonic(), cause, lied=cause.startswith(_FALSE) and not self._late)
        _log.warning("worker", extra={"facts": {"state": self.life.state, "why": cause}})
        self._end()

    def _end(self) -> None:
        solver, self._solver = self._solver, None
        self._given = None
        if solver is not None:
            self._rounds += solver.rounds_written
            solver.close()
            with contextlib.suppress(OSError):
                self._note.unlink()

    def _trim_log(self) -> None:
        """A line per round, for weeks: what is old goes. The worker appends, so it goes on at the new end."""
        with contextlib.suppress(OSError):
            if self._log_path.stat().st_size > _LOG_BYTES:
                os.truncate(self._log_path, 0)


class SimulatedWorker(ResidentWorker):
    """A simulated device (``npu.device: simulated:...``) in the place of a process: no start, no keeper, no death.

    Everything happens on the computing thread.
    """

    def __init__(self, solver: SimulatedSolver, why: str) -> None:
        super().__init__(Config(), Path(), Path(), lambda: None, why)
        self._solver: Any = solver
        self.device = solver.device
        self.simulated = f"{self.device}: a model, no device is there"

    def want(self, core: Core | None, why: str, *, lasting: bool) -> None:
        self.core, self.used_at = core, time.monotonic()
        self.life.state, self.life.why = READY, why

    def let_go(self, why: str) -> None:
        self.taken_over()
        super().let_go(why)

    def lend(self, core: Core, *, any_core: bool = False) -> Any:
        self.used_at = time.monotonic()
        if self.busy or self.life.state != READY or not self._solver.usable:
            return None
        self.busy, self.lendings = True, self.lendings + 1
        self.publish(core)
        return self._solver

    def refuse(self, reason: str, *, lied: bool = True) -> None:
        """A device whose word is always true is late at most."""
        self.life.lies += lied

    def give_back(self) -> None:
        self._solver.begin()
        self.busy = False

    @property
    def rounds(self) -> int:
        return int(self._solver.rounds)

    @property
    def pid(self) -> int | None:
        return None

    def close(self) -> None:
        self._solver.close()


def _plain(cause: str) -> str:
    """A cause as every client may read it: no path of this machine is in it. The log has the whole."""
    return _PATH.sub("...", cause)
