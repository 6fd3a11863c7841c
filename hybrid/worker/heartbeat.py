"""Does the worker still live? Judged by worker.json: pure, no I/O, on the coordinator's own clock.

Only whether the heartbeat *changes* counts, never its time, so clocks of two machines may differ. Silence is added up
from look to look, and a long pause between two looks (a suspended job, a long step) counts as a short one. A worker
without a heartbeat is not judged, nor one that is starting: the protocol's own start timeout covers that.
"""

from __future__ import annotations

from collections.abc import Mapping

BOUND_S = 30.0  # the worker beats once a second, and between any two products
POLLED_FACTOR = 4.0  # network file systems hold a directory's entries back for up to a minute
_LONGEST_STEP_S = 5.0
_LOADING = "loading"  # a core is placed, its first products may be compiled: as long as a start may take


class Heartbeat:
    """The worker's heartbeat as the coordinator sees it."""

    def __init__(self, bound_s: float, start_timeout_s: float) -> None:
        self._bound_s, self._slow_bound_s = bound_s, max(bound_s, start_timeout_s)
        self._last: tuple[object, object] | None = None
        self._looked_at = self._silent_s = 0.0

    def look(self, facts: Mapping[str, object], now_s: float) -> str | None:
        """Why the worker is to be given up, or None; ``now_s`` is monotonic."""
        beat = facts.get("heartbeat")
        if not isinstance(beat, int | float):
            return None
        told = facts.get("pid"), beat
        state = facts.get("state")
        if told != self._last or state == "starting":
            self._last, self._silent_s = told, 0.0
        else:
            self._silent_s += min(now_s - self._looked_at, _LONGEST_STEP_S)
        self._looked_at = now_s
        bound_s = self._slow_bound_s if state == _LOADING else self._bound_s
        if self._silent_s <= bound_s:
            return None
        return f"the worker hangs: no heartbeat for {bound_s:g} s (state {state})"
