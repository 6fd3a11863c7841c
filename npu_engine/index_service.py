"""Core indexes that jobs asked for: built block by block between the rounds, written when they are whole.

Invariant: no request ends the worker; one that cannot be served is left, with its reason in worker.json. Rounds wait
for one block at most.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from exchange.errors import ExchangeError
from exchange.worker_mailbox import WorkerMailbox
from npu_engine.index import ROWS_AT_ONCE, IndexBuilding, whole_core
from npu_engine.program import CoreProgram, Interrupted, ProgramError
from npu_engine.pulse import Pulse
from npu_engine.resident import ResidentCores

EAGER_ROWS = 256  # of a block on the CPU: rounds wait for it


class IndexService:
    """Builds one index at a time; ``serve`` does the next piece of it."""

    def __init__(
        self,
        mailbox: WorkerMailbox,
        cores: ResidentCores,
        *,
        device: str,
        log: logging.Logger,
        why_stop: Callable[[], str | None],
        pulse: Pulse,
    ) -> None:
        self._mailbox, self._cores, self._device, self._log, self._why_stop = mailbox, cores, device, log, why_stop
        self._pulse = pulse
        self._name = ""
        self._size = 0
        self._building: IndexBuilding | None = None
        self._spent_s = 0.0
        self._fresh = True

    @property
    def busy(self) -> bool:
        return bool(self._name)

    def serve(self) -> bool:
        """Look for a request, or do the next block of the one in work; False when the worker is to stop."""
        try:
            if not self._name:
                pending = self._mailbox.pending_indexes()
                if not pending:
                    return True
                self._begin(pending[0])
            self._advance()
        except Interrupted:
            if self._why_stop() is not None:
                return False
            self._leave("its job no longer waits for it")
        except (ExchangeError, ProgramError, MemoryError) as error:
            self._leave(str(error) or type(error).__name__)
        except Exception as error:
            self._log.exception("unexpected failure in the index of %s", self._name)
            self._leave(f"{type(error).__name__}: {error}")
        return True

    def _begin(self, name: str) -> None:
        self._name, self._building, self._spent_s = name, None, 0.0
        self._fresh = True  # its first products may be compiled
        self._size = self._mailbox.indexed_size(name)

    def _advance(self) -> None:
        began = time.perf_counter()
        core = self._core()
        if self._building is None or self._building.program is not core:  # rounds may have driven the core out
            self._building = IndexBuilding(core, EAGER_ROWS if self._device == "CPU" else ROWS_AT_ONCE)
        done = self._building.advance(self._keep_going)
        self._fresh = False
        self._spent_s += time.perf_counter() - began
        if not done:
            return
        index = self._building.finish()
        facts = {
            "core": self._size,
            "diameter": "none" if index.diameter is None else index.diameter,
            "device": self._device,
            "compute_s": f"{self._spent_s:.6f}",
        }
        self._mailbox.write_index(self._name, whole_core(index, self._size), facts)
        self._log.info(
            "index of %s: %d vertices, diameter %s, in %.1f ms",
            self._name, self._size, facts["diameter"], 1e3 * self._spent_s,
        )  # fmt: skip
        self._name, self._building = "", None

    def _core(self) -> CoreProgram:
        key = self._mailbox.indexed_identity(self._name), "min-plus"
        rows = EAGER_ROWS if self._device == "CPU" else ROWS_AT_ONCE
        found = self._cores.find(key, rows)
        if found is None:
            self._pulse.beat("loading")
            core, identity = self._mailbox.load_indexed_core(self._name)
            found = self._cores.place((identity, "min-plus"), core.edges)
        return found

    def _keep_going(self) -> bool:
        self._pulse.beat("loading" if self._fresh else "busy")
        return self._why_stop() is None and not self._mailbox.index_abandoned(self._name)

    def _leave(self, reason: str) -> None:
        self._log.warning("index of %s: left: %s", self._name, reason)
        self._mailbox.skip_index(self._name)
        with contextlib.suppress(ExchangeError):
            self._mailbox.announce(skipped_index=self._name, skipped_why=reason)
        self._name, self._building = "", None
