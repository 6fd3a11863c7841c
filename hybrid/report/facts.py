"""What the report knows of a job, read once from its summary and trace: typed events, grouped by source and by rank.

Invariant: ``0 <= t0 <= t1`` and both finite for every event, in order of ``t0``; a record without a usable time is left
out and counted, never drawn elsewhere. Every attribute of ``Facts`` has a usable value whatever the summary lacks, so
no section checks for missing keys itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid.charts.units import number, whole

ACTORS = ("coordinator", "cpu", "npu")
LONGEST_JOB = 1e9  # seconds, thirty years: a later time is damage, and would squeeze all else out of the picture
WORKER_KINDS = ("round", "start", "stop", "death")  # a rank's events that are about its machine's worker

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
    found = [_read(record) for record in trace]
    events = [event for event in found if event is not None]
    return sorted(events, key=lambda e: (e.t0, e.t1)), len(found) - len(events)


def _read(record: object) -> Event | None:
    if not isinstance(record, Mapping):
        return None
    t0 = time_of(record.get("t0"))
    if t0 is None:
        return None
    t1 = max(t0, time_of(record.get("t1")) or t0)
    actor = str(record.get("actor", ""))
    source = record.get("source")
    kind, known = str(record.get("kind") or actor or "event"), actor if actor in ACTORS else "coordinator"
    return Event(t0, t1, known, kind, None if source is None else str(source), record)


def span_of(events: Sequence[Event]) -> tuple[float, float]:
    """From the first beginning to the last end."""
    return min(event.t0 for event in events), max(event.t1 for event in events)


def time_of(value: object) -> float | None:
    """``value`` as seconds since the job began, else None; what lies before the beginning counts as the beginning."""
    found = number(value)
    return None if found is None or found > LONGEST_JOB else max(0.0, found)


def number_of(kind: str, record: object) -> int | None:
    """The rank or thread (``kind``) whose record this is: its actor is ``rank 7``, ``thread 7``."""
    actor = record.get("actor") if isinstance(record, Mapping) else None
    found = re.fullmatch(rf"{kind} ([0-9]{{1,6}})", actor) if isinstance(actor, str) else None
    return int(found[1]) if found else None


def split_by_rank(trace: Iterable[object]) -> tuple[list[object], dict[int, list[Event]]]:
    """The trace of a job on ranks as the story of one CPU and one worker, and every rank's own events in order of time.

    In the story, rank 0 stands for all: the pictures made for one rank can be drawn of it.
    """
    story: list[object] = []
    records: dict[int, list[object]] = {}
    for record in trace:
        rank = number_of("rank", record)
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


def group_by_source(
    rows: Iterable[Mapping[str, Any]], sources: Iterable[object], events: Iterable[Event]
) -> list[SourceRun]:
    """One entry per source: first those of the summary's runs in their order, then any that only the trace knows."""
    runs: dict[str, Mapping[str, Any]] = {}
    for run in rows:
        if run.get("source") is not None:
            runs.setdefault(str(run["source"]), run)
    for source in sources:
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


class Facts:
    """A finished job: the summary's parts, the events in order of time, the runs, and how long it took.

    Of a job on ranks, ``events`` and ``runs`` are of rank 0, and ``rank_events`` of each.
    """

    def __init__(self, summary: Mapping[str, Any], trace: Sequence[object]) -> None:
        story, self.rank_events = split_by_rank(trace)
        self.events, self.left_out = read_events(story)
        self.summary = summary
        self.graph, self.core, self.npu, self.seconds, self.ranks = (
            as_dict(summary.get(name)) for name in ("graph", "core", "npu", "seconds", "ranks")
        )
        self.run_rows = [run for run in as_list(summary.get("runs")) if isinstance(run, Mapping)]
        self.runs = group_by_source(self.run_rows, as_list(summary.get("sources")), self.events)
        last = max((event.t1 for own in (self.events, *self.rank_events.values()) for event in own), default=0.0)
        self.total = max(time_of(self.seconds.get("total")) or 0.0, last)
        self.on_ranks = bool(self.ranks)
        self.cpu = "CPU, rank 0" if self.on_ranks else "CPU engine"  # what is drawn where there is room for one
        self.is_bfs = "spread" not in summary  # which has pictures of its own
        self.certified = summary.get("certified") is True
        self.outcome = str(self.npu.get("outcome") or "").strip()
        known = any(event.actor == "npu" for event in self.events)
        self.mode = str(self.npu.get("mode") or ("unknown" if known else "off"))
        self.with_npu = self.mode != "off" or known  # whether the report has an NPU to speak of
        self.starts = [event for event in self.events if event.actor == "npu" and event.kind == "start"]
        self.ready = self.starts[0].t1 if self.starts else 0.0  # when the worker's first start was over
        self.repaired = [event for event in self.events if event.kind == "repair"]

    @property
    def rounds(self) -> list[Event]:
        others = [event for rank, own in self.rank_events.items() if rank != 0 for event in own]
        found = [event for event in (*self.events, *others) if event.actor == "npu" and event.kind == "round"]
        return sorted(found, key=lambda event: event.t0) if others else found

    def npu_count(self, name: str) -> int:
        """A figure of the summary's npu part."""
        return whole(self.npu.get(name))

    @property
    def traced_phases(self) -> dict[str, float]:
        """Seconds of phases that only the trace knows: when all waited for the worker."""
        busy = [event for event in self.events if event.actor != "npu"]
        return {"start": sum(_uncovered(start.t0, start.t1, busy) for start in self.starts)}


def _uncovered(begin: float, end: float, events: Sequence[Event]) -> float:
    """How much of [begin, end] no event covers; the events are in order of their beginning."""
    free, reached = 0.0, begin
    for event in events:
        if event.t0 >= end:
            break
        free += max(0.0, event.t0 - reached)
        reached = max(reached, event.t1)
    return free + max(0.0, end - reached)
