"""The worker as the traversal sees it: rounds through the exchange directory, and a process behind them.

Drives the coordinator's state machine (exchange.protocol decides, this module carries out) and turns files into core
value arrays. Invariant: nothing that a worker does or fails to do raises here; it ends the partnership with a reason.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from exchange import messages
from exchange.check import require_good_answer
from exchange.errors import ExchangeError
from exchange.files import lock_directory
from exchange.layout import Format, new_token
from exchange.mailbox import CoordinatorMailbox
from exchange.protocol import CoordinatorProtocol
from exchange.watch import Mode, Watcher
from hybrid.schema import Config
from hybrid.supervisor import WorkerSupervisor
from hybrid.trace import Trace
from hybrid.traverse import Answer

_log = logging.getLogger(__name__)
_LOOK_INTERVAL_S = 0.05  # how often a waiting coordinator looks whether the worker still lives
_MEMORY = Path("/dev/shm")
_PREFIX = "tandem-exchange-"
_KEPT_PREFIX = "tandem-kept-"  # never swept
_STALE_S = 60.0  # younger ones may be about to be locked


class NpuPartner:
    """See the module; satisfies ``hybrid.traverse.Partner``. Whoever makes one calls ``close`` in the end."""

    def __init__(self, config: Config, log_path: Path, trace: Trace) -> None:
        self._config, self._trace = config, trace
        self._made_directory = config.exchange.dir is None
        self.directory = (
            _fresh_directory(config.exchange.keep) if config.exchange.dir is None else Path(config.exchange.dir)
        )
        self._mailbox = CoordinatorMailbox(
            self.directory, format=cast(Format, config.exchange.format), max_bytes=config.exchange.max_bytes
        )
        self._protocol = CoordinatorProtocol(
            self._mailbox.token, config.npu.round_timeout_s, config.npu.start_timeout_s
        )
        self._watcher = Watcher(self.directory, cast(Mode, config.exchange.watch), config.exchange.poll_interval_s)
        self._supervisor: WorkerSupervisor | None = None
        if config.npu.worker == "launch":
            self._supervisor = WorkerSupervisor(self.directory, config, log_path)
        self._core_size = self._vertices = 0
        self._sent = np.empty(0, np.int32)
        self._answer: Answer | None = None
        self._started_at = 0.0
        self._opened = self._ready = False
        self.device = "unknown"
        self.start_seconds: float | None = None
        self.failure = ""

    # ------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Take the directory and start the worker, which loads while the caller goes on. ``close`` undoes it."""
        self._mailbox.open()
        self._opened = True
        self._watcher.start()
        self._started_at = self._trace.now()
        if self._supervisor is not None:
            self._supervisor.start()
            _log.info("worker started, pid %s, exchange directory %s", self._supervisor.pid, self.directory)

    def publish_edges(self, out_offsets: np.ndarray, out_targets: np.ndarray, core_size: int) -> None:
        """Write the edges among the first ``core_size`` vertices, once for all rounds."""
        self._core_size, self._vertices = core_size, out_offsets.size - 1
        try:
            self._mailbox.publish_core(out_offsets, out_targets, core_size)
        except ExchangeError as error:
            self._act(messages.WorkerLost(f"the core could not be written: {error}"))

    def close(self) -> None:
        """End the partnership: stop.flag, worker gone, directory clean. Right at any point after the constructor."""
        if self._opened:  # else the directory is another job's: not a file of it is touched
            self._stop_worker()
        self._watcher.stop()
        for problem in self._mailbox.cleanup(keep=self._config.exchange.keep):
            _log.warning("cleaning up: %s", problem)
        if self._made_directory and not self._config.exchange.keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _stop_worker(self) -> None:
        t0 = self._trace.now()
        self._look_for_worker_facts()
        if self._config.npu.worker == "external" and self._config.npu.keep_worker:
            self._act(messages.Withdraw("the job is done"))
        else:
            self._act(messages.Stop())
        if self._supervisor is not None:
            if self._ready:
                self._supervisor.stop()
            else:
                self._supervisor.kill()  # still loading: it has nothing to finish
            self._trace.add("npu", "stop", t0)

    # ------------------------------------------------------------------------------------- the rounds

    @property
    def usable(self) -> bool:
        return self._protocol.state != "closed"

    @property
    def busy(self) -> bool:
        return self._protocol.state == "waiting" or self._answer is not None

    def begin(self) -> None:
        self._look_for_death()

    def submit(self, values: np.ndarray) -> None:
        self._sent = values
        self._act(messages.Submit(time.monotonic()))

    def poll(self) -> Answer | None:
        round_id = self._protocol.round_id
        if round_id is not None:
            try:
                answered = self._mailbox.ok_exists(round_id)
            except ExchangeError as error:
                self._act(messages.WorkerLost(f"the exchange directory cannot be read: {error}"))
                return None
            if answered:
                self._act(messages.OkSeen(round_id))
            else:
                self._look_for_death()
                self._act(messages.Tick(time.monotonic()))
        answer, self._answer = self._answer, None
        return answer

    def wait(self) -> None:
        self._look_for_worker_facts()
        deadline = self._protocol.deadline_s
        left = _LOOK_INTERVAL_S if deadline is None else deadline - time.monotonic()
        self._watcher.wait(max(0.0, min(left, _LOOK_INTERVAL_S)))

    def abandon(self) -> None:
        self._act(messages.Withdraw("the CPU converged first"))

    def distrust(self, reason: str) -> None:
        self._act(messages.Distrust(reason))

    # ------------------------------------------------------------------------- carrying out the actions

    def _act(self, event: messages.CoordinatorEvent) -> None:
        pending: list[messages.CoordinatorEvent] = [event]
        while pending:
            for action in self._protocol.handle(pending.pop(0)):
                follow_up = self._carry_out(action)
                if follow_up is not None:
                    pending.append(follow_up)

    def _carry_out(self, action: messages.CoordinatorAction) -> messages.CoordinatorEvent | None:
        match action:
            case messages.WriteRound(round_id):
                return self._write_round(round_id)
            case messages.ReadData(round_id):
                return self._read_data(round_id)
            case messages.Deliver(round_id):
                self._worker_is_ready()
                self._forget_files(round_id)
            case messages.Reject(round_id, reason):
                self._answer = None
                _log.warning("%s rejected: %s", round_id, reason)
            case messages.AbandonRound(round_id, reason):
                _log.info("%s abandoned: %s", round_id, reason)
                self._suppress(self._mailbox.abandon, round_id)
            case messages.GiveUp(reason):
                self._give_up(reason)
            case messages.WriteStop():
                self._suppress(self._mailbox.write_stop)
        return None

    def _write_round(self, round_id: str) -> messages.CoordinatorEvent | None:
        vertices = np.flatnonzero(self._sent >= 0)
        try:
            self._mailbox.write_round(round_id, vertices, self._sent[vertices])
        except ExchangeError as error:
            return messages.WriteFailed(round_id, str(error))
        return None

    def _read_data(self, round_id: str) -> messages.CoordinatorEvent:
        sent_vertices = np.flatnonzero(self._sent >= 0)
        try:
            answer = self._mailbox.read_data(round_id)
            sent = (sent_vertices, self._sent[sent_vertices])
            require_good_answer(answer.pairs, self._core_size, *sent, value_limit=max(1, self._vertices))
        except ExchangeError as error:
            return messages.DataBad(round_id, str(error))
        values = np.full(self._core_size, -1, np.int32)
        values[answer.vertices] = answer.values
        facts = {name: str(value) for name, value in answer.header.items()}
        self._answer = Answer(round_id, values, answer.vertices.size, facts)
        if self.device == "unknown" and "device" in facts:
            self.device = facts["device"]
        return messages.DataRead(round_id, facts.get("round"))

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        now = self._trace.now()
        self._trace.add("npu", "death", now, cause=reason)
        _log.warning("going on without the worker: %s", reason)
        if self._supervisor is not None:
            self._supervisor.kill()  # it hangs, lies or is dead: nothing that it could still do is wanted

    def _forget_files(self, round_id: str) -> None:
        """A round that is over has done its duty; a long job must not fill the directory."""
        if not self._config.exchange.keep:
            self._suppress(self._mailbox.remove_round, round_id)

    def _suppress(self, operation: Callable[..., object], *arguments: str) -> None:
        try:
            operation(*arguments)
        except ExchangeError as error:
            _log.warning("%s", error)

    # ---------------------------------------------------------------------------- looking at the worker

    def _look_for_death(self) -> None:
        if self._supervisor is not None and self.usable:
            cause = self._supervisor.cause_of_death()
            if cause is not None:
                self._act(messages.WorkerLost(cause))

    def _look_for_worker_facts(self) -> None:
        facts = self._mailbox.worker_facts() or {}
        if self._is_stale(facts):
            return
        skipped = facts.get("skipped_round")
        if skipped is not None and skipped == self._protocol.round_id:
            self._act(messages.WorkerLost(f"the worker could not do {skipped}: {facts.get('skipped_reason')}"))
        if facts.get("state") == "ready" and not self._ready:
            self._worker_is_ready()
            self._act(messages.WorkerReady())

    def _is_stale(self, facts: dict[str, object]) -> bool:
        """Whether worker.json was left by another worker than the one that serves now."""
        pid = facts.get("pid")
        if self._supervisor is not None:
            return pid != self._supervisor.pid
        if facts.get("host") != socket.gethostname() or not isinstance(pid, int):
            return False
        return not Path(f"/proc/{pid}").exists()

    def _worker_is_ready(self) -> None:
        if self._ready:
            return
        self._ready = True
        self.start_seconds = self._trace.now() - self._started_at
        facts = self._mailbox.worker_facts() or {}
        self.device = str(facts.get("device", self.device))
        source, self._trace.source = self._trace.source, None
        self._trace.add("npu", "start", self._started_at, device=self.device)
        self._trace.source = source


def _fresh_directory(keep: bool = False) -> Path:
    """A directory in memory where there is one: the files are small, short-lived and latency-bound."""
    base = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    _sweep(base)
    return Path(tempfile.mkdtemp(prefix=_KEPT_PREFIX if keep else _PREFIX, dir=base))


def _sweep(base: Path) -> None:
    """Remove what jobs that were killed outright left: directories of ours that no coordinator holds any more."""
    for left in base.glob(f"{_PREFIX}*"):
        try:
            stale = left.stat().st_uid == os.getuid() and time.time() - left.stat().st_mtime > _STALE_S
        except FileNotFoundError:
            continue
        if stale:
            with contextlib.suppress(ExchangeError):  # held: its job lives
                lock = lock_directory(left, new_token())
                shutil.rmtree(left, ignore_errors=True)
                lock.release(remove=False)
