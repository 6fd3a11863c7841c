"""What the sections of the report need to know about a job, read once from its summary and trace.

Invariant: every attribute has a usable value whatever the summary lacks, so no section checks for missing keys itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybrid.charts.units import number, whole
from hybrid.report.events import Event, as_dict, as_list, group_by_source, read_events, split_by_rank, time_of


class Facts:
    """A finished job: the summary's parts, the events in order of time, the runs, and how long it took.

    Of a job on ranks, ``events`` and ``runs`` are of rank 0, and ``rank_events`` of each.
    """

    def __init__(self, summary: Mapping[str, Any], trace: Sequence[object]) -> None:
        story, self.rank_events = split_by_rank(trace)
        self.events, self.left_out = read_events(story)
        self.summary, self.runs = summary, group_by_source(summary, self.events)
        self.graph, self.core, self.npu, self.seconds, self.ranks = (
            as_dict(summary.get(name)) for name in ("graph", "core", "npu", "seconds", "ranks")
        )
        self.run_rows: list[Mapping[str, Any]] = [
            run for run in as_list(summary.get("runs")) if isinstance(run, Mapping)
        ]
        last = max((event.t1 for own in (self.events, *self.rank_events.values()) for event in own), default=0.0)
        self.total = max(time_of(self.seconds.get("total")) or 0.0, last)
        self.on_ranks = bool(self.ranks)
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
        """A figure of the summary's npu part; the trace's sum of it when the summary does not say."""
        if number(self.npu.get(name)) is not None:
            return whole(self.npu[name])
        if name == "rounds_sent":
            return len(self.rounds)
        if name == "rounds_merged":
            return sum(1 for event in self.events if event.kind == "merge")
        return sum(event.count(name) for event in self.rounds)

    @property
    def traced_phases(self) -> dict[str, float]:
        """Seconds of phases that the trace knows: the coordinator's own, and when all waited for the worker."""
        phases = dict.fromkeys(("compile", "compare", "write"), 0.0)
        for event in self.events:
            if event.actor == "coordinator" and event.kind in phases:
                phases[event.kind] += event.duration
        busy = [event for event in self.events if event.actor != "npu"]
        phases["start"] = sum(_uncovered(start.t0, start.t1, busy) for start in self.starts)
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
