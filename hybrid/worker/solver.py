"""The worker as the algorithms see it: rounds through the exchange directory, and a process behind them.

Drives the coordinator's state machine (exchange.protocol.machines decides, this module carries out) and turns files
into arrays of core values. Invariant: nothing that a worker does or fails to do raises an error here; the solver
becomes unusable, and ``failure`` says why.
"""

from __future__ import annotations

import logging
import shlex
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np

from exchange.codec.index import CoreIndexArrays
from exchange.errors import DirectoryRefused, ExchangeError
from exchange.filesystem.scratch import remove_folder
from exchange.filesystem.watch import Mode, Watcher
from exchange.mailbox import CoordinatorMailbox
from exchange.protocol import messages
from exchange.protocol.layout import Format
from exchange.protocol.machines import CoordinatorProtocol
from exchange.protocol.programs import MIN_PLUS
from hybrid.config.schema import Config
from hybrid.launch.processes import process_state
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import Answer, CoreSolver, first_round
from hybrid.worker.exchange_directory import fresh_directory
from hybrid.worker.heartbeat import BOUND_S, POLLED_FACTOR, Heartbeat
from hybrid.worker.process import WorkerSupervisor
from hybrid.worker.published_core import PublishedCore

_log = logging.getLogger(__name__)
_SERVING = ("ready", "busy", "loading")  # states of a worker that has started
_REST_INTERVAL_S = 1.0  # between two searches, worker.json is looked at this often
_ABSENT_S = 2.0  # an external worker that has not announced itself by then may not have been started
_LOOK_INTERVAL_S = 0.05  # how often a coordinator that waits or polls looks whether the worker still lives


class WorkerSolver:
    """See the module; satisfies ``hybrid.worker.core_solver.Device``. Its owner must call ``close``."""

    label, cold, on_clock_s = "", True, 0.0

    def __init__(self, config: Config, log_path: Path, trace: Trace) -> None:
        self._config, self._trace = config, trace
        exchange, launch = config.exchange, config.npu.worker == "launch"
        self.directory = fresh_directory(exchange.keep) if exchange.dir is None else Path(exchange.dir)
        self._mailbox = CoordinatorMailbox(
            self.directory, format=cast(Format, exchange.format), max_bytes=exchange.max_bytes, own_worker=launch
        )
        self._protocol = CoordinatorProtocol(
            self._mailbox.token, config.npu.round_timeout_s, config.npu.start_timeout_s
        )
        self._watcher = Watcher(self.directory, cast(Mode, exchange.watch), exchange.poll_interval_s)
        self._supervisor = WorkerSupervisor(self.directory, config, log_path) if launch else None
        self._core: PublishedCore | None = None
        self._sent = np.empty(0, np.int32)
        self._index: CoreIndexArrays | None = None
        self._index_asked = False
        self._looked_at = 0.0
        self._heartbeat = Heartbeat(BOUND_S, config.npu.start_timeout_s)
        self._seen_pid: object = None
        self._answer: Answer | None = None
        self._started_at = 0.0
        self._opened = self._ready = self._mentioned = False
        self.device = "unknown"
        self.start_seconds: float | None = None
        self.failure = ""
        self.index_failure = ""

    # ------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Take the directory and start the worker, which loads while the caller goes on. ``close`` undoes it.

        A directory that cannot be made or belongs to another job ends the job; for any error inside it, the job goes
        on without the worker.
        """
        try:
            self._mailbox.open()
            self._opened = True
            self._watcher.start()
        except DirectoryRefused:
            raise
        except ExchangeError as error:
            self._act(messages.WorkerLost(f"the exchange directory cannot be used: {error}"))
            return
        if self._watcher.mode_in_use == "poll":
            self._heartbeat = Heartbeat(POLLED_FACTOR * BOUND_S, self._config.npu.start_timeout_s)
        self._started_at = self._trace.now()
        if self._supervisor is not None:
            self._supervisor.start()
            _log.info("worker started, pid %s, exchange directory %s", self._supervisor.pid, self.directory)

    def await_start(self) -> None:
        """Return when the worker is ready or has failed; one that is not ready in time counts as failed."""
        began, timeout_s = self._trace.now(), self._config.npu.start_timeout_s
        while self.starting and self._trace.now() - began < timeout_s:
            self._watcher.wait(_LOOK_INTERVAL_S)
        if self.starting:
            self._act(messages.WorkerLost(f"the worker was not ready within {timeout_s:g} s"))
        if self._trace.now() - began > _LOOK_INTERVAL_S:
            self._trace.add("coordinator", "await", began, why="the worker's start")

    def warm_up(self, mode: str, batch: int = 1) -> None:
        """Let the worker answer a round that no run needs: it starts, reads the core and compiles before any is timed.

        Mode race does not wait for a worker that has not announced itself.
        """
        if mode == "share":
            self.await_start()
        if not self.usable or self._core is None or not (mode == "share" or self._ready):
            return
        began = self._trace.now()
        self.submit(self.first_values(batch))
        while self.busy and self.poll() is None:
            self.wait()
        self._trace.add("coordinator", "await", began, why="a first round, which no run needs")

    def first_values(self, batch: int = 1) -> np.ndarray:
        assert self._core is not None
        program = self._core.program
        return first_round(self._core.size, batch, self.largest_batch, program.empty, program.dtype)

    def rehearse(self, run: Callable[[CoreSolver], object]) -> object:
        """A real device needs no rehearsal."""

    def describe(self) -> dict[str, Any] | None:
        """Nothing: the device is real, and the record has its name and its start."""
        return None

    def uncounted(self) -> AbstractContextManager[None]:
        """A real device keeps no totals."""
        return nullcontext()

    def publish_edges(
        self, out_offsets: np.ndarray, out_targets: np.ndarray, core_size: int, *, program: str = MIN_PLUS,
        weight: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Write the edges among the first ``core_size`` vertices, once for all rounds, which ask for ``program``.

        ``weight`` is aligned with ``out_targets``: integers for min-plus, any finite numbers for plus-times.
        """
        self._forget_index()
        try:
            self._mailbox.publish_core(out_offsets, out_targets, core_size, program=program, weight=weight)
            self._core = PublishedCore.of(out_offsets, out_targets, core_size, program, weight)
        except ExchangeError as error:
            self._act(messages.WorkerLost(f"the core could not be written: {error}"))

    def close(self) -> None:
        """Stop the worker and clean the directory; may be called at any point after the constructor."""
        if self._opened:  # else the directory is another job's: not a file of it is touched
            self._stop_worker()
        self._watcher.stop()
        for problem in self._mailbox.cleanup(keep=self._config.exchange.keep):
            _log.warning("cleaning up: %s", problem)
        if self._config.exchange.dir is None and not self._config.exchange.keep:
            remove_folder(self.directory)

    @property
    def _keeps_worker(self) -> bool:
        return self._config.npu.worker == "external" and self._config.npu.keep_worker

    def _stop_worker(self) -> None:
        t0 = self._trace.now()
        self._look_for_worker_facts()
        self._act(messages.Withdraw("the job is done") if self._keeps_worker else messages.Stop())
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
    def starting(self) -> bool:
        """Only a worker that this job started is known to be starting: an external one may serve unannounced."""
        if self._ready or self._supervisor is None or not self.usable:
            return False
        self._look_if_due()
        return not self._ready

    @property
    def busy(self) -> bool:
        return self._protocol.state == "waiting" or self._answer is not None

    def begin(self) -> None:
        self._look_for_death()
        if time.monotonic() - self._looked_at > _REST_INTERVAL_S:
            self._look_for_worker_facts()

    @property
    def largest_batch(self) -> int:
        return self._mailbox.largest_batch

    def submit(self, values: np.ndarray) -> None:
        """Hand over one vector [k] or a batch [B, k]; the answer's values have the same shape."""
        self._sent = values.copy()  # the answer is checked against what was sent, not against what it became
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
                self._look_if_due()  # ranks only poll, so a worker's death must show here as it does in ``wait``
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

    def do_without(self, reason: str) -> None:
        self._act(messages.WorkerLost(reason))

    def distrust(self, reason: str) -> None:
        self._act(messages.Distrust(reason))

    # -------------------------------------------------------------------------------------- the index

    def request_index(self) -> bool:
        if self._index is not None or self._index_asked:
            return True
        try:
            self._mailbox.request_index()
            self._index_asked, self.index_failure = True, ""
        except ExchangeError as error:
            self.index_failure = str(error)
            _log.warning("no index: %s", error)
        return self._index_asked

    def poll_index(self) -> CoreIndexArrays | None:
        """The index, once it is there; None before, and for ever when ``index_failure`` says why."""
        if self._index is None and self._index_asked:
            try:
                if self._mailbox.index_exists():
                    index = self._mailbox.read_index()
                    assert self._core is not None, "no index is asked for without a core"
                    self._core.require_index(index)
                    self._index, self._index_asked = index, False
                elif not self.usable:
                    self._index_asked, self.index_failure = False, self.failure or "the worker is gone"
                else:
                    self._look_if_due()
            except ExchangeError as error:
                self._index_asked, self.index_failure = False, str(error)
                _log.warning("no index: %s", error)
        return self._index

    def _forget_index(self) -> None:
        """Drop the index of an earlier core, and the request for it."""
        if self._index_asked:
            self._suppress(self._mailbox.abandon_index)
        self._index, self._index_asked, self.index_failure = None, False, ""

    # ------------------------------------------------------------------------- carrying out the actions

    def _act(self, event: messages.CoordinatorEvent) -> None:
        pending: list[messages.CoordinatorEvent] = [event]
        while pending:
            event = pending.pop(0)
            for action in self._protocol.handle(event):
                follow_up = self._carry_out(action, event)
                if follow_up is not None:
                    pending.append(follow_up)

    def _carry_out(
        self, action: messages.CoordinatorAction, event: messages.CoordinatorEvent
    ) -> messages.CoordinatorEvent | None:
        match action:
            case messages.WriteRound(round_id):
                return self._write_round(round_id)
            case messages.ReadData(round_id):
                return self._read_data(round_id)
            case messages.Deliver(round_id):
                self._worker_is_ready()
                if not self._config.exchange.keep:  # a long job must not fill the directory
                    self._suppress(self._mailbox.remove_round, round_id)
            case messages.Reject(round_id, reason):
                self._answer = None
                _log.warning("%s rejected: %s", round_id, reason)
            case messages.AbandonRound(round_id, reason):
                _log.info("%s abandoned: %s", round_id, reason)
                self._suppress(self._mailbox.abandon, round_id)
            case messages.GiveUp(reason):
                silent = isinstance(event, messages.Tick | messages.WorkerLost)
                self._give_up(self._explain_silence(reason) if silent else reason)
            case messages.WriteStop() if self._opened and not self._keeps_worker:  # the next job may fare better
                self._suppress(self._mailbox.write_stop)
        return None

    def _write_round(self, round_id: str) -> messages.CoordinatorEvent | None:
        try:
            if self._in_pairs:
                vertices = np.flatnonzero(self._sent >= 0)
                self._mailbox.write_round(round_id, vertices, self._sent[vertices])
            else:
                self._mailbox.write_rows(round_id, np.atleast_2d(self._sent))
        except ExchangeError as error:
            return messages.WriteFailed(round_id, str(error))
        return None

    @property
    def _in_pairs(self) -> bool:
        return self._sent.ndim == 1 and (self._core is None or self._core.has_pairs)

    def _read_data(self, round_id: str) -> messages.CoordinatorEvent:
        assert self._core is not None, "no round is written without a core"
        sent = self._sent
        try:
            if self._in_pairs:
                answer = self._mailbox.read_data(round_id)
                self._core.require_good_pairs(answer, sent)
                values, header = np.full(sent.shape, -1, np.int32), answer.header
                values[answer.vertices] = answer.values
                received = answer.vertices.size
            else:
                rows, header = self._mailbox.read_rows(round_id, len(np.atleast_2d(sent)))
                self._core.require_good_rows(rows, np.atleast_2d(sent))
                values, received = rows.reshape(sent.shape), rows.size
                if self._core.program.closes:
                    received = int(np.count_nonzero(rows >= 0))
        except ExchangeError as error:
            return messages.DataBad(round_id, str(error))
        facts = {name: str(value) for name, value in header.items()}
        self._answer = Answer(round_id, values, received, facts)
        if self.device == "unknown" and "device" in facts:
            self.device = facts["device"]
        return messages.DataRead(round_id, facts.get("round"))

    def _explain_silence(self, reason: str) -> str:
        """The reason, with the error in the worker's log, or with how to start an external worker."""
        if not self._opened:
            return reason
        if self._supervisor is not None:
            return self._supervisor.with_log(reason)
        if self._ready or self._seen_pid is not None:
            return reason
        return f"{reason}: none serves {self.directory}. Fix: {self._how_to_start()}"

    def _how_to_start(self) -> str:
        directory = shlex.quote(str(self.directory.absolute()))
        return f"start one with `python run.py worker --exchange {directory}` (installed: `tandem worker ...`)"

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        self._trace.add("npu", "death", self._trace.now(), cause=reason)
        _log.warning("going on without the worker: %s", reason)
        if self._supervisor is not None:
            self._supervisor.kill()  # it hangs, lies or is dead: nothing that it could still do is wanted

    def _suppress(self, operation: Callable[..., object], *arguments: str) -> None:
        try:
            operation(*arguments)
        except ExchangeError as error:
            _log.warning("%s", error)

    # ---------------------------------------------------------------------------- looking at the worker

    def _look_if_due(self) -> None:
        self._look_for_death()
        if time.monotonic() - self._looked_at > _LOOK_INTERVAL_S:
            self._look_for_worker_facts()

    def _look_for_death(self) -> None:
        if self._supervisor is not None and self.usable:
            cause = self._supervisor.cause_of_death()
            if cause is not None:
                self._act(messages.WorkerLost(cause))

    def _look_for_worker_facts(self) -> None:
        self._looked_at = time.monotonic()
        facts = self._mailbox.worker_facts() or {}
        if self._is_stale(facts):
            if self._seen_pid is not None and self._seen_pid == facts.get("pid"):
                self._act(messages.WorkerLost("the worker's process is gone"))
            facts = {}
        if not facts:
            self._mention_absence()
            return
        self._seen_pid = facts.get("pid")
        if self._ready and facts.get("state") == "stopped" and self._supervisor is None:
            self._act(messages.WorkerLost(f"the worker has stopped: {facts.get('error') or facts.get('reason')}"))
        silence = self._heartbeat.look(facts, self._looked_at)
        if silence is not None:
            self._act(messages.WorkerLost(silence))
        skipped = facts.get("skipped_round")
        if skipped is not None and skipped == self._protocol.round_id:
            self._act(messages.WorkerLost(f"the worker could not do {skipped}: {facts.get('skipped_reason')}"))
        if self._index_asked and self._mailbox.is_indexed_core(facts.get("skipped_index")):
            self._index_asked, self.index_failure = False, f"the worker made no index: {facts.get('skipped_why')}"
        if facts.get("state") in _SERVING and not self._ready:
            self._worker_is_ready()
            self._act(messages.WorkerReady())

    def _mention_absence(self) -> None:
        """Say early, not only after start_timeout_s, that an external worker seems not to have been started."""
        waiting = self._supervisor is None and not self._ready and self._protocol.state == "waiting"
        if waiting and not self._mentioned and self._trace.now() - self._started_at > _ABSENT_S:
            self._mentioned = True
            _log.warning("no worker has announced itself in %s yet. Fix: %s", self.directory, self._how_to_start())

    def _is_stale(self, facts: dict[str, object]) -> bool:
        """Whether worker.json was left by another worker than the one that serves now."""
        pid = facts.get("pid")
        if self._supervisor is not None:
            return pid != self._supervisor.pid
        if facts.get("host") != socket.gethostname() or not isinstance(pid, int):
            return False
        return process_state(pid) is None

    def _worker_is_ready(self) -> None:
        if self._ready:
            return
        self._ready = True
        if self._supervisor is not None:
            self._supervisor.let_work()
        self.start_seconds = self._trace.now() - self._started_at
        facts = self._mailbox.worker_facts() or {}
        self.device = str(facts.get("device", self.device))
        source, self._trace.source = self._trace.source, None
        self._trace.add("npu", "start", self._started_at, device=self.device)
        self._trace.source = source
