"""The per-step record of a job: who did what when. Owns the job's clock; times are seconds since the job began."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from hybrid.results.schema import Event

__all__ = ["Event", "Trace", "plain_number"]
_TOUCHED = ("wait", "merge", "take_back")  # what the CPU does because of the device


class Trace:
    """Events in the order they ended. Actors: coordinator, cpu, npu; on several ranks also rank 0, rank 1, ...

    ``simulated``: every event of the device, and of the CPU because of it, carries this name of a simulated device.
    """

    def __init__(self, simulated: str | None = None) -> None:
        self.simulated = simulated
        self._began = time.perf_counter()
        self.events: list[Event] = []
        self.source: int | None = None  # the user's id of the vertex now being traversed from

    def now(self) -> float:
        return time.perf_counter() - self._began

    def add(self, actor: str, kind: str, t0: float, t1: float | None = None, **facts: Any) -> Event:
        """Record something that began at ``t0`` and ended at ``t1`` (default: now)."""
        if self.simulated is not None and (actor == "npu" or kind in _TOUCHED):
            facts["simulated"] = self.simulated
        end = self.now() if t1 is None else t1
        event = cast(Event, {"t0": t0, "t1": end, "actor": actor, "kind": kind, "source": self.source, **facts})
        self.events.append(event)
        return event

    def extend(self, actor: str, kind: str, t0: float, **facts: Any) -> None:
        """Like ``add``, but if the last event was of the same kind and source, make that one longer."""
        last = self.events[-1] if self.events else None
        if last and (last["actor"], last["kind"], last["source"]) == (actor, kind, self.source):
            last["t1"] = self.now()
        else:
            self.add(actor, kind, t0, **facts)

    @contextmanager
    def span(self, actor: str, kind: str, **facts: Any) -> Iterator[dict[str, Any]]:
        """Record the time of the block; facts learned inside may be put into the yielded dict."""
        learned = dict(facts)
        t0 = self.now()
        try:
            yield learned
        finally:
            self.add(actor, kind, t0, **learned)

    def spent(self, kind: str) -> float:
        """Seconds of the coordinator's events of this kind."""
        return float(sum(e["t1"] - e["t0"] for e in self.events if e["kind"] == kind and e["actor"] == "coordinator"))

    def to_jsonl(self) -> str:
        return "".join(json.dumps(event, default=plain_number) + "\n" for event in self.events)


def plain_number(value: Any) -> Any:
    """For json.dumps: what a number of numpy is to JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"not JSON: {type(value).__name__}")
