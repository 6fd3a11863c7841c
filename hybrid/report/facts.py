"""What the sections of the report need to know about a job, read once from its summary and trace.

Invariant: every field has a usable value whatever the summary lacks, so no section checks for missing keys itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.charts.units import number, whole
from hybrid.report.events import (
    Event,
    SourceRun,
    as_dict,
    as_list,
    group_by_source,
    read_events,
    split_by_rank,
    time_of,
)


@dataclass(frozen=True)
class Facts:
    """A finished job: the summary's parts, the events in order of time, the runs, and how long it took.

    Of a job on ranks, ``events`` and ``runs`` are of rank 0, and ``rank_events`` of each.
    """

    summary: Mapping[str, Any]
    graph: Mapping[str, Any]
    core: Mapping[str, Any]
    npu: Mapping[str, Any]
    seconds: Mapping[str, Any]
    run_rows: Sequence[Mapping[str, Any]]
    events: Sequence[Event]
    left_out: int
    runs: Sequence[SourceRun]
    total: float
    ranks: Mapping[str, Any]
    rank_events: Mapping[int, Sequence[Event]]

    @property
    def on_ranks(self) -> bool:
        return bool(self.ranks)

    @property
    def is_bfs(self) -> bool:
        """Whether this is a BFS, which has pictures of its own."""
        return "spread" not in self.summary

    @property
    def certified(self) -> bool:
        return self.summary.get("certified") is True

    @property
    def mode(self) -> str:
        return str(self.npu.get("mode") or ("off" if not self.has_npu_events else "unknown"))

    @property
    def has_npu_events(self) -> bool:
        return any(event.actor == "npu" for event in self.events)

    @property
    def with_npu(self) -> bool:
        """Whether the report has an NPU to speak of."""
        return self.mode != "off" or self.has_npu_events

    @property
    def rounds(self) -> list[Event]:
        others = [event for rank, own in self.rank_events.items() if rank != 0 for event in own]
        found = [event for event in (*self.events, *others) if event.actor == "npu" and event.kind == "round"]
        return sorted(found, key=lambda event: event.t0) if others else found

    @property
    def outcome(self) -> str:
        return str(self.npu.get("outcome") or "").strip()

    @property
    def ready(self) -> float:
        """When the worker's first start was over; 0 without one."""
        return next((event.t1 for event in self.events if event.actor == "npu" and event.kind == "start"), 0.0)

    def npu_count(self, name: str) -> int:
        """A figure of the summary's npu part; the trace's sum of it when the summary does not say."""
        if number(self.npu.get(name)) is not None:
            return whole(self.npu[name])
        if name == "rounds_sent":
            return len(self.rounds)
        if name == "rounds_merged":
            return sum(1 for event in self.events if event.kind == "merge")
        return sum(event.count(name) for event in self.rounds)

    @property
    def repaired(self) -> tuple[int, int]:
        """How often a result failed its check and was computed again, and how many values were wrong in all."""
        repairs = [event for event in self.events if event.kind == "repair"]
        return len(repairs), sum(event.count("changed") for event in repairs)

    @property
    def repairs(self) -> list[dict[str, Any]]:
        """The summary's account of them."""
        return [as_dict(one) for one in as_list(self.summary.get("repairs"))]

    @property
    def traced_phases(self) -> dict[str, float]:
        """Seconds of phases that the trace knows: the coordinator's own, and when all waited for the worker."""
        phases = dict.fromkeys(("compile", "compare", "write"), 0.0)
        for event in self.events:
            if event.actor == "coordinator" and event.kind in phases:
                phases[event.kind] += event.duration
        starts = [event for event in self.events if event.actor == "npu" and event.kind == "start"]
        busy = [event for event in self.events if event.actor != "npu"]
        phases["start"] = sum(_uncovered(start.t0, start.t1, busy) for start in starts)
        return phases


def _uncovered(begin: float, end: float, events: Sequence[Event]) -> float:
    """How much of [begin, end] no event covers; the events are in order of their beginning."""
    free, reached = 0.0, begin
    for event in events:
        if event.t0 >= end:
            break
        free += max(0.0, event.t0 - reached)
        reached = max(reached, event.t1)
    return free + max(0.0, end - reached)


def facts_of(summary: Mapping[str, Any], trace: Sequence[object]) -> Facts:
    story, rank_events = split_by_rank(trace)
    events, left_out = read_events(story)
    times = as_dict(summary.get("seconds"))
    last = max((event.t1 for own in (events, *rank_events.values()) for event in own), default=0.0)
    return Facts(
        summary=summary,
        graph=as_dict(summary.get("graph")),
        core=as_dict(summary.get("core")),
        npu=as_dict(summary.get("npu")),
        seconds=times,
        run_rows=[run for run in as_list(summary.get("runs")) if isinstance(run, Mapping)],
        events=events,
        left_out=left_out,
        runs=group_by_source(summary, events),
        total=max(time_of(times.get("total")) or 0.0, last),
        ranks=as_dict(summary.get("ranks")),
        rank_events=rank_events,
    )
