"""The service loop: look at the exchange directory, serve what is announced, round after round.

``WorkerProtocol`` decides, ``WorkerMailbox`` reads and writes, ``CoreProgram`` computes; this module carries the
actions out and feeds the outcome back. Indexes are built in between, when no round is waiting (``index_service``).
Invariant: no content of a round ends the worker. A round that cannot be served is left without an answer, with its
reason in the log and in worker.json, and the worker goes on.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exchange.codec.payload import Question
from exchange.counted import plural
from exchange.errors import ExchangeError, RoundGone
from exchange.filesystem.watch import Watcher
from exchange.protocol import machines as protocol
from exchange.worker_mailbox import CoreIdentity, WorkerMailbox
from npu_engine.index_service import IndexService
from npu_engine.program import CoreProgram, IntArray, Interrupted, ProgramError
from npu_engine.pulse import Pulse, StatusLine
from npu_engine.resident import Key, ResidentCores

LONGEST_WAIT_S = 0.2
# After the directory itself could not be read: long enough not to fill the log's disk, short enough to recover soon.
TROUBLE_WAIT_S = 0.5


@dataclass
class _Round:
    """What is known of the round in work."""

    began: float = 0.0
    question: Question | None = None
    core: CoreProgram | None = None
    fresh: bool = False  # the core was just placed: its first products may be compiled
    core_size: int = 0
    found: Any = None  # pairs int64[r, 2], or rows [B, k]
    iterations: int = 0
    read_s: float = 0.0
    compute_s: float = 0.0
    write_s: float = 0.0


class Worker:
    """Serves one exchange directory with one program until its job, or a signal, asks it to stop."""

    def __init__(
        self,
        mailbox: WorkerMailbox,
        watcher: Watcher,
        cores: ResidentCores,
        *,
        device: str,
        log: logging.Logger,
        status: StatusLine | None = None,
        stop_reason: Callable[[], str | None] = lambda: None,
        parent: int | None = None,
        once: bool = False,
    ) -> None:
        self._mailbox, self._watcher, self._cores = mailbox, watcher, cores
        self._device, self._log, self._stop_reason = device, log, stop_reason
        self._parent, self._once = parent, once
        self._protocol = protocol.WorkerProtocol()
        self._pulse = Pulse(mailbox, cores, device=device, status=status)
        self._round = _Round()
        self._loading: Key | None = None
        self._indexes = IndexService(mailbox, cores, device=device, log=log, why_stop=self._why_stop, pulse=self._pulse)
        self._trouble = ""
        self._interrupted_by: str | None = None
        self._running = True
        self.answered = 0

    def serve(self) -> str:
        """Serve until stop.flag, a signal or the end of the parent; returns which of them it was."""
        while True:
            try:
                reason = self._why_stop()
                self._pulse.beat("ready")
                if reason is None:
                    for round_id in self._mailbox.pending_rounds():
                        self._feed(protocol.RoundSeen(round_id))
                    self._running = self._running and self._indexes.serve()
                self._trouble = ""
            except Exception as error:  # a disk that fails for a while, mostly; whatever it is, it is no reason to end
                self._report_trouble(str(error) or type(error).__name__)
                continue
            if self._once and self.answered:
                reason = "one round was answered (--once)"
            elif not self._running:
                reason = self._interrupted_by or self._why_stop() or "asked to stop"
            if reason is not None:
                self._feed(protocol.StopSeen())
                return reason
            self._watcher.wait(0.0 if self._indexes.busy else LONGEST_WAIT_S)

    def _why_stop(self) -> str | None:
        signalled = self._stop_reason()
        if signalled is not None:
            return signalled
        if self._parent is not None and os.getppid() != self._parent:
            return "the coordinator's process is gone"
        if not self._mailbox.stop_requested():
            return None
        return "stop.flag" if self._mailbox.directory.is_dir() else "the exchange directory is gone"

    def _report_trouble(self, reason: str) -> None:
        """The directory cannot be read at the moment (full disk, network): say so once, and try again."""
        if reason != self._trouble:
            self._log.warning("cannot look at the exchange directory, trying again: %s", reason)
            self._trouble = reason
        time.sleep(TROUBLE_WAIT_S)

    def _feed(self, event: protocol.WorkerEvent) -> None:
        """Give the protocol an event and carry out all that follows from it."""
        actions = deque(self._protocol.handle(event))
        while actions and self._running:
            outcome = self._carry_out(actions.popleft())
            if outcome is not None:
                actions.extend(self._protocol.handle(outcome))

    def _carry_out(self, action: protocol.WorkerAction) -> protocol.WorkerEvent | None:
        match action:
            case protocol.LoadRound(round_id):
                return self._attempt(round_id, self._load, protocol.Loaded(round_id), protocol.LoadFailed)
            case protocol.Compute(round_id):
                return self._attempt(round_id, self._compute, protocol.Computed(round_id), protocol.ComputeFailed)
            case protocol.WriteData(round_id):
                return self._attempt(round_id, self._write, protocol.DataWritten(round_id), protocol.WriteFailed)
            case protocol.CreateOk(round_id):
                self._create_ok(round_id)
            case protocol.SkipRound(round_id, reason):
                self._skip(round_id, reason)
            case protocol.Exit():
                self._running = False
        return None

    def _attempt(
        self,
        round_id: str,
        work: Callable[[str], None],
        done: protocol.WorkerEvent,
        failed: Callable[[str, str], protocol.WorkerEvent],
    ) -> protocol.WorkerEvent:
        try:
            work(round_id)
            return done
        except (RoundGone, Interrupted):
            if self._interrupted_by is not None:
                return protocol.StopSeen()
            return protocol.RoundAbandoned(round_id)
        except (ExchangeError, ProgramError) as error:
            return failed(round_id, str(error))
        except Exception as error:
            # Whatever MindSpore or numpy raise: the round is lost, not the worker.
            self._log.exception("unexpected failure in %s", round_id)
            if self._loading is not None:
                self._cores.drop(self._loading)  # it may be half placed
            return failed(round_id, f"{type(error).__name__}: {error}")

    def _load(self, round_id: str) -> None:
        began = time.perf_counter()
        self._round = _Round(began)
        identity = self._mailbox.core_identity(round_id)
        question = self._mailbox.load_question(round_id)
        self._loading = key = identity, question.program.name
        core = self._cores.find(key, question.batch) or self._load_core(round_id, identity, question)
        size = question.rows.shape[1] if question.rows is not None else None
        if question.pairs is not None:
            size = _core_size(question.header.get("core"), core.vertices, question.pairs[:, 0])
        self._round.question, self._round.core, self._round.core_size = question, core, size or 0
        self._round.read_s = time.perf_counter() - began

    def _load_core(self, round_id: str, identity: CoreIdentity, question: Question) -> CoreProgram:
        began = time.perf_counter()
        self._pulse.beat("loading")
        found, identity = self._mailbox.load_core(round_id)
        parsed = time.perf_counter()
        self._loading = key = identity, question.program.name
        core = self._cores.place(key, found.edges, found.weight)
        self._round.fresh = True
        self._log.info(
            "core of %s: %s, %d vertices with edges, %d edges, read in %.1f ms, %s in %.1f ms",
            round_id,
            question.program.name,
            len(core.vertices),
            core.edges,
            1e3 * (parsed - began),
            "ready for compacted pieces (over the memory budget)" if core.in_pieces else "on the device",
            1e3 * (time.perf_counter() - parsed),
        )
        return core

    def _compute(self, round_id: str) -> None:
        def keep_going() -> bool:
            self._interrupted_by = self._why_stop()
            self._pulse.beat("loading" if self._round.fresh else "busy")
            return self._interrupted_by is None and not self._mailbox.round_abandoned(round_id)

        now = self._round
        assert now.core is not None
        assert now.question is not None  # the protocol asks for it only after Loaded
        began = time.perf_counter()
        if now.question.pairs is not None:
            answer = now.core.run(now.question.pairs, keep_going)
            now.found, now.iterations = answer.pairs, answer.iterations
        else:
            now.found, now.iterations = now.core.run_rows(now.question.rows, keep_going)
        now.compute_s = time.perf_counter() - began
        self._pulse.beat("busy")

    def _write(self, round_id: str) -> None:
        now = self._round
        assert now.question is not None  # the protocol asks for it only after Computed
        began = time.perf_counter()
        facts: dict[str, str | int | float] = {
            "device": self._device,
            "iterations": now.iterations,
            "read_s": f"{now.read_s:.6f}",
            "compute_s": f"{now.compute_s:.6f}",
        }
        if now.question.pairs is not None:
            self._mailbox.write_data(round_id, now.found, facts)
        else:
            self._mailbox.write_rows(round_id, now.question.program, now.found, facts)
        now.write_s = time.perf_counter() - began

    def _create_ok(self, round_id: str) -> None:
        try:
            self._mailbox.create_ok(round_id)
        except ExchangeError as error:
            self._skip(round_id, f"the answer is written, its flag is not: {error}")
            return
        self.answered += 1
        self._pulse.round_done(time.perf_counter() - self._round.began)
        self._running = not self._once
        done, question = self._round, self._round.question
        assert question is not None
        assert done.core is not None
        sent = question.pairs if question.pairs is not None else question.rows
        self._log.info(
            "%s: %score %d, %d edges, %d values in, %d out, %d iterations, read %.1f compute %.1f write %.1f ms",
            round_id,
            "" if question.rows is None else f"{question.program.name} on {plural(question.batch, 'vector')}, ",
            done.core_size,
            done.core.edges,
            _values(sent),
            _values(done.found),
            done.iterations,
            1e3 * done.read_s,
            1e3 * done.compute_s,
            1e3 * done.write_s,
            extra={"in_status": True},
        )

    def _skip(self, round_id: str, reason: str) -> None:
        self._log.warning("%s: skipped: %s", round_id, reason)
        try:
            self._mailbox.announce(skipped_round=round_id, skipped_reason=reason)
        except ExchangeError as error:
            self._log.warning("worker.json could not be written: %s", error)


def _values(pairs_or_rows: Any) -> int:
    """How many values there are in pairs int64[r, 2] or in rows [B, k]."""
    if pairs_or_rows.dtype == np.int64:
        return len(pairs_or_rows)
    return int(np.count_nonzero(pairs_or_rows >= 0))


def _core_size(declared: str | None, in_core: IntArray, with_value: IntArray) -> int:
    """The core's size: the coordinator's `# core k` (the vertices are 0 to k - 1), else those that have edges."""
    if declared is None:
        return len(in_core)
    if not declared.isascii() or not declared.isdecimal():
        raise ProgramError(f"the line `# core {declared}` does not hold a number")
    largest = max((int(ids.max()) for ids in (in_core, with_value) if len(ids)), default=-1)
    if largest >= int(declared):
        raise ProgramError(f"unknown vertex {largest}: the core has the vertices 0 to {int(declared) - 1}")
    return int(declared)
