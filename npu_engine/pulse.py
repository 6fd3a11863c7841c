"""Signs of life: worker.json once a second, and on a terminal one line that is rewritten.

Invariant: at most one write per period whatever the worker does, except when it begins or ends something that may take
as long as a start (``loading``). A pulse never fails: a directory that cannot be written to is the service loop's
matter. Imports no MindSpore: the log needs the status line before that is loaded.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, TextIO

from exchange.counted import plural
from exchange.errors import ExchangeError

if TYPE_CHECKING:
    from exchange.worker_mailbox import WorkerMailbox
    from npu_engine.resident import ResidentCores

PERIOD_S = 1.0
_REDRAW_S = 0.1
_CLEAR_LINE = "\r\x1b[K"


class StatusLine:
    """The last line of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._text = ""

    def show(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self._write(f"{_CLEAR_LINE}{text}")

    def print_above(self, line: str) -> None:
        """A line that stays; the status goes on below it."""
        self._write(f"{_CLEAR_LINE}{line}\n{self._text}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            self._stream.write(text)
            self._stream.flush()


class AboveStatus(logging.Handler):
    """The log on a terminal: above the status line, and without the rounds, which that line shows."""

    def __init__(self, status: StatusLine) -> None:
        super().__init__()
        self.status = status
        self.addFilter(lambda record: not getattr(record, "in_status", False))

    def emit(self, record: logging.LogRecord) -> None:
        self.status.print_above(self.format(record))


class Pulse:
    """Tells the coordinator, and the user at the terminal, what the worker is doing."""

    def __init__(
        self,
        mailbox: WorkerMailbox,
        cores: ResidentCores,
        *,
        device: str,
        status: StatusLine | None = None,
        period_s: float = PERIOD_S,
    ) -> None:
        self._mailbox, self._cores, self._device, self._status = mailbox, cores, device, status
        self._period_s = period_s
        self._state = ""
        self._written = self._drawn = -period_s
        self.rounds = 0
        self.last_round_s: float | None = None

    def beat(self, state: str) -> None:
        """The worker is alive and in this state; most calls do nothing."""
        now = time.monotonic()
        loading = "loading" in (state, self._state) and state != self._state
        if loading or now - self._written >= self._period_s:
            self._written, self._state = now, state
            with contextlib.suppress(ExchangeError):
                self._mailbox.announce(
                    state=state,
                    heartbeat=round(time.time(), 3),
                    rounds=self.rounds,
                    resident_cores=len(self._cores),
                    resident_bytes=self._cores.nbytes,
                )
        if self._status is not None and (loading or now - self._drawn >= _REDRAW_S):
            self._drawn = now
            self._status.show(self._line(state))

    def round_done(self, took_s: float) -> None:
        self.rounds, self.last_round_s = self.rounds + 1, took_s

    def _line(self, state: str) -> str:
        last = "" if self.last_round_s is None else f", the last in {1e3 * self.last_round_s:.1f} ms"
        held = f"{plural(len(self._cores), 'core')} resident, {self._cores.nbytes / 2**20:.1f} MiB"
        return f"{self._device} {state}: {plural(self.rounds, 'round')} served{last}; {held}"
