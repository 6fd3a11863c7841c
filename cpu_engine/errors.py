"""The error a user can act on: what is wrong, where, with which value, and how to mend it."""

from __future__ import annotations

from pathlib import Path


class InputError(Exception):
    """Input that cannot be used, told with file, line, value and fix."""

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
        super().__init__(f"{place}{reason}{shown}{advice}")
