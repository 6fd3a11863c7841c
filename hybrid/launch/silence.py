"""Which of several processes gives no sign of life any more. Pure: no I/O, on the caller's clock.

A sign is anything that changes while a process lives. Silence is counted from look to look, and a long pause between
two looks (the watcher itself was stopped) counts as a short one: what was not watched does not count as silence.
"""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST_STEP_S = 5.0


class Silence:
    """How long each process has been silent."""

    def __init__(self, bound_s: float) -> None:
        self._bound_s = bound_s
        self._signs: dict[str, object] = {}
        self._silent_s: dict[str, float] = {}
        self._looked_at: float | None = None

    def look(self, signs: Mapping[str, object], now_s: float) -> str | None:
        """The first that has been silent for longer than the bound, by name; None while all live."""
        step_s = 0.0 if self._looked_at is None else min(now_s - self._looked_at, _LONGEST_STEP_S)
        self._looked_at = now_s
        for name, sign in signs.items():
            same = name in self._signs and self._signs[name] == sign
            self._silent_s[name] = self._silent_s[name] + step_s if same else 0.0
            self._signs[name] = sign
        return next((name for name in signs if self._silent_s[name] > self._bound_s), None)
