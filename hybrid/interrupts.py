"""Ctrl-C, SIGTERM and SIGHUP: one meaning for all, and a way to hold them off while something must not be cut."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_signals() -> None:
    """SIGTERM and SIGHUP (a closed terminal, a lost connection) end a command as Ctrl-C does."""
    for number in NUMBERS:
        signal.signal(number, _interrupt)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Signals that arrive inside are delivered at the end: for process start and cleanup, which must be complete."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = [signal.signal(number, lambda got, _frame: came.append(got)) for number in NUMBERS]
    try:
        yield
    finally:
        for number, handler in zip(NUMBERS, before, strict=True):
            signal.signal(number, handler)
        for got in came[:1]:
            signal.raise_signal(got)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
