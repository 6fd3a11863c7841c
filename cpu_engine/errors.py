"""The error a user can act on: what is wrong, where, with which value, and how to mend it."""

from __future__ import annotations

import reprlib
from pathlib import Path

LONGEST = 2000  # characters of a message; what a file or a client wrote may be of any size
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200
_SHORT.maxlong = 60
_SHORT.maxlevel = 3


def printable(text: str, longest: int = LONGEST) -> str:
    """Text from outside as a terminal, a log line or a page may have it: bounded, and without control characters."""
    if len(text) > longest:
        text = f"{text[: longest - 20]} ... ({len(text)} characters)"
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def shorten(value: object) -> str:
    """A value of any size as a message may show it."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "too long to be shown"


class ExplainedError(Exception):
    """What is wrong, where, with which value, and the fix; the message is one printable line."""

    def __init__(
        self,
        reason: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        value: object = None,
        fix: str | None = None,
    ) -> None:
        self.reason, self.path, self.line, self.value, self.fix = printable(reason), path, line, value, fix
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        shown = "" if value is None else f" (value {shorten(value)})"
        advice = "" if fix is None else f". Fix: {fix}"
        super().__init__(printable(f"{place}{self.reason}{shown}{advice}"))


class InputError(ExplainedError):
    """Input that cannot be used."""
