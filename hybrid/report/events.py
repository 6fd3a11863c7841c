"""The trace as typed events, grouped by source.

Owns the reading of trace records; the drawing modules see only ``Event``. Invariant: ``0 <= t0 <= t1`` and both finite
for every event, in order of ``t0``; a record without a usable time is left out and counted, never drawn elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hybrid.charts.units import number, whole

ACTORS = ("coordinator", "cpu", "npu")
LONGEST_JOB = 1e9  # seconds, thirty years: a later time is damage, and would squeeze all else out of the picture
WORKER_KINDS = ("round", "start", "stop", "death")  # a rank's events that are about its machine's worker
_RANK = re.compile(r"rank ([0-9]{1,6})")
MAX_PANELS = 64  # sources drawn one by one; more would make the page too heavy, the tables still list them


@dataclass(frozen=True)
class Event:
    """One record of the trace: who did what from ``t0`` to ``t1`` (seconds since the job began)."""

    t0: float
    t1: float
    actor: str
    kind: str
    source: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> float:
        return self.t1 - self.t0

    def count(self, name: str) -> int:
        return whole(self.facts.get(name))

    def real(self, name: str) -> float:
        return number(self.facts.get(name)) or 0.0

    def text(self, name: str) -> str:
        value = self.facts.get(name)
        return "" if value is None else str(value)


@dataclass(frozen=True)
class SourceRun:
    """What the trace and the summary say about one source."""

    source: str
    run: Mapping[str, Any]
    events: tuple[Event, ...]

    def of(self, actor: str, *kinds: str) -> list[Event]:
        return [e for e in self.events if e.actor == actor and (not kinds or e.kind in kinds)]

    @property
    def steps(self) -> list[Event]:
        return self.of("cpu", "step")

    @property
    def rounds(self) -> list[Event]:
        return self.of("npu", "round")

    @property
    def merges(self) -> list[Event]:
        return self.of("cpu", "merge")

    @property
    def adopted(self) -> int:
        return sum(e.count("values_adopted") for e in self.rounds)


def read_events(trace: Iterable[object]) -> tuple[list[Event], int]:
    """The events of ``trace`` in order of time, and how many records had to be left out."""
    events, left_out = [], 0
    for record in trace:
        event = _read(record)
        if event is None:
            left_out += 1
        else:
            events.append(event)
    events.sort(key=lambda e: (e.t0, e.t1))
    return events, left_out


def _read(record: object) -> Event | None:
    if not isinstance(record, Mapping):
        return None
    t0 = time_of(record.get("t0"))
    if t0 is None:
        return None
    t1 = max(t0, time_of(record.get("t1")) or t0)
    actor = str(record.get("actor", ""))
    source = record.get("source")
    return Event(
        t0,
        t1,
        actor if actor in ACTORS else "coordinator",
        str(record.get("kind") or actor or "event"),
        None if source is None else str(source),
        record,
    )


def time_of(value: object) -> float | None:
    """``value`` as seconds since the job began, else None; what lies before the beginning counts as the beginning."""
    found = number(value)
    return None if found is None or found > LONGEST_JOB else max(0.0, found)


def rank_of(record: object) -> int | None:
    """The rank whose record this is: its actor is ``rank 7``."""
    actor = record.get("actor") if isinstance(record, Mapping) else None
    found = _RANK.fullmatch(actor) if isinstance(actor, str) else None
    return int(found[1]) if found else None


def split_by_rank(trace: Iterable[object]) -> tuple[list[object], dict[int, list[Event]]]:
    """The trace of a job on ranks as the story of one CPU and one worker, and every rank's own events in order of time.

    In the story, rank 0 stands for all: the pictures made for one rank can be drawn of it.
    """
    story: list[object] = []
    records: dict[int, list[object]] = {}
    for record in trace:
        rank = rank_of(record)
        if rank is None:
            story.append(record)
            continue
        assert isinstance(record, Mapping)
        actor = "npu" if record.get("kind") in WORKER_KINDS else "cpu"
        renamed = {**record, "actor": actor}
        records.setdefault(rank, []).append(renamed)
        if rank == 0:
            story.append(renamed)
    return story, {rank: read_events(own)[0] for rank, own in sorted(records.items())}


def group_by_source(summary: Mapping[str, Any], events: Iterable[Event]) -> list[SourceRun]:
    """One entry per source: first those of the summary's runs in their order, then any that only the trace knows."""
    runs: dict[str, Mapping[str, Any]] = {}
    for run in as_list(summary.get("runs")):
        if isinstance(run, Mapping) and run.get("source") is not None:
            runs.setdefault(str(run["source"]), run)
    for source in as_list(summary.get("sources")):
        runs.setdefault(str(source), {})
    found: dict[str, list[Event]] = {source: [] for source in runs}
    for event in events:
        if event.source is not None:
            found.setdefault(event.source, []).append(event)
    return [SourceRun(source, runs.get(source, {}), tuple(own)) for source, own in found.items()]


def as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def as_dict(value: object) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}
