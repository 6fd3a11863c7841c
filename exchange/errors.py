"""The errors of the exchange: what is wrong, in which file and line, with which value, and how to mend it."""

from __future__ import annotations

from pathlib import Path

from exchange.escape import printable


class ExchangeError(Exception):
    """A file, flag or directory of the exchange that cannot be used."""

    def __init__(
        self,
        reason: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        value: object = None,
        fix: str | None = None,
    ) -> None:
        self.reason, self.path, self.line, self.value, self.fix = reason, path, line, value, fix
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        shown = "" if value is None else f" (value {value!r})"
        advice = "" if fix is None else f". Fix: {fix}"
        super().__init__(printable(f"{place}{reason}{shown}{advice}"))


class DirectoryRefused(ExchangeError):
    """The directory that the user named cannot be made, or is another job's: not a fault of the worker's."""


class RoundGone(ExchangeError):
    """The round's directory was removed while it was in use: its job waits for no answer any more."""
