"""``bench soak`` in words and a picture: what was counted, how memory went, and whether all of it is as it must be."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass, field
from typing import Any

from benchmarks.output import Report
from benchmarks.plot import Series, draw_lines
from benchmarks.soak.service import Leftovers
from benchmarks.soak.tally import Sample, Tally, Trend, memory_trends, trend
from hybrid.terminal import table

ROLES = ("service", "rank", "worker", "launcher")
NEVER = (  # counts that must be zero
    "wrong", "jobs without a result", "unexpected statuses", "broken connections", "status 500", "clients that failed",
    "refused without a fix", "restarts with another exit code than 0", "finished jobs that a restart forgot",
)  # fmt: skip
LONG_ENOUGH_S = 300.0  # to judge memory; before that, caches fill
MOST_GROWTH = 0.10  # from the first minute to the last
MOST_SLOPE = 0.005  # of the size, per minute, in the second half
MOST_FILES = 16  # more open files at the end
_MIB = float(1 << 20)


@dataclass
class Outcome:
    """Everything that a run found."""

    seconds: float
    tally: Tally
    samples: list[Sample]
    kills: dict[str, dict[str, list[float]]]
    counted: dict[str, int]  # the service's own counters
    restarts: list[dict[str, Any]]
    starts: list[float]
    graphs: list[str]
    leftovers: Leftovers = field(default_factory=Leftovers)
    log_errors: list[str] = field(default_factory=list)

    @property
    def memory(self) -> dict[str, Trend]:
        return memory_trends(self.samples, ROLES)

    @property
    def files(self) -> Trend:
        return trend([one.second for one in self.samples], [one.files.get("service", 0) for one in self.samples])


def complaints(outcome: Outcome) -> list[str]:
    """What is not as it must be; empty: all is well."""
    counts = outcome.tally.counts
    found = [f"{name}: {counts[name]}" for name in NEVER if counts[name]]
    for name, killed in outcome.kills.items():
        back = len(killed["recovered_seconds"])
        if back + len(outcome.restarts) < len(killed["moments"]):
            found.append(f"{name}: killed {len(killed['moments'])} times, back {back} times")
    if not counts["right"]:
        found.append("nothing was answered")
    left = outcome.leftovers
    if not left.clean:
        found.append(f"left behind: exit code {left.exit_code}, {[*left.processes, *left.files, *left.shared]}")
    if outcome.log_errors:
        found.append(f"{len(outcome.log_errors)} errors in the service's log, the first: {outcome.log_errors[0][:300]}")
    if outcome.seconds >= LONG_ENOUGH_S and not outcome.restarts:
        found += _growing(outcome)
    return found


def _growing(outcome: Outcome) -> list[str]:
    found = []
    for role in ("service", "rank"):
        one = outcome.memory[role]
        steady = role == "service"  # ranks that were killed begin anew, and so does their line
        if one.growth > MOST_GROWTH or (steady and one.later_per_minute > MOST_SLOPE * one.last):
            found.append(f"memory of {role} grows: {_trend_text(one)}")
    if outcome.files.last - outcome.files.first > MOST_FILES:
        found.append(f"open files grow: {outcome.files.first:g} to {outcome.files.last:g}")
    return found


def make_report(outcome: Outcome, options: argparse.Namespace) -> Report:
    counts, wrong = outcome.tally.counts, complaints(outcome)
    report = Report("soak", _data(outcome, wrong), failed=bool(wrong))
    report.lines += [
        f"{outcome.seconds:.0f} s of {options.ranks} ranks and a worker (npu.mode share); {', '.join(outcome.graphs)}",
        "",
        f"requests  {counts['requests']}, {counts['requests'] / max(1.0, outcome.seconds):.0f} a second; by status "
        + ", ".join(f"{name[7:]}: {counts[name]}" for name in sorted(counts) if name.startswith("status ")),
        f"answers   {counts['right']} right, {counts['wrong']} wrong ({counts['questions']} questions, the rest "
        "jobs and graphs)",
        f"refused   {counts['refused as expected']} as expected, {counts['unexpected statuses']} otherwise; "
        f"{counts['connections left early or not HTTP']} connections left early or not HTTP, "
        f"{counts['questions past their own deadline']} questions past their own deadline, "
        f"{counts['asked to come later']} asked to come later",
        f"jobs      {len(outcome.tally.jobs)} accepted: {counts['jobs done']} done, "
        f"{counts['jobs cancelled']} cancelled, {counts['jobs late']} past their own deadline, "
        f"{counts['jobs failed']} failed, {counts['jobs lost']} lost; of the done {counts['jobs on the ranks']} on the "
        f"ranks, {counts['jobs with rounds of the worker']} with rounds of the worker, "
        f"{counts['jobs given again to new ranks']} given again to new ranks",
        f"graphs    {counts['graphs brought']} brought, {counts['graphs unloaded']} unloaded; "
        f"{counts['event streams']} event streams, {counts['events heard']} events",
        *_kill_lines(outcome),
        *(
            f"restart   SIGTERM at {one['at']:.0f} s with {one['open_jobs']} jobs open; ended after "
            f"{one['seconds_to_end']:.1f} s, ready again {one['seconds_to_ready']:.1f} s after the start"
            for one in outcome.restarts
        ),
        "",
        table(
            ["memory", "first minute", "last minute", "growth", "MiB/min", "of the 2nd half"],
            [
                [role, f"{one.first:.1f} MiB", f"{one.last:.1f} MiB", f"{one.growth:+.1%}", f"{one.per_minute:+.2f}",
                 f"{one.later_per_minute:+.2f}"]
                for role, one in outcome.memory.items()
            ],
        ),
        f"open files of the service: {outcome.files.first:g} in the first minute, {outcome.files.last:g} in the last",
        _left_line(outcome.leftovers),
        "",
        *outcome.tally.details,
        *([f"NOT as it must be: {one}" for one in wrong] or ["nothing wrong, nothing lost, nothing left behind"]),
    ]  # fmt: skip
    report.charts.append(_chart(outcome))
    return report


def _kill_lines(outcome: Outcome) -> list[str]:
    lines = []
    for name, killed in outcome.kills.items():
        back = killed["recovered_seconds"]
        spent = f", after {sorted(back)[len(back) // 2]:.1f} s (median; longest {max(back):.1f} s)" if back else ""
        restarts = outcome.counted["rank pool restarts" if name == "rank" else "worker restarts"]
        absent = outcome.tally.counts["worker not there to be killed"]
        at_work = (
            f"; {absent} times it was not there to be killed; lent to {outcome.counted.get('searches', 0)} jobs and "
            f"batches, {outcome.counted.get('rounds', 0)} rounds"
        )
        lines.append(
            f"{name:8}  killed {len(killed['moments'])} times, back {len(back)} times{spent}; the service counts "
            f"{restarts} {'rank pools started again' if name == 'rank' else 'workers started again'}"
            + (at_work if name == "worker" else "")
        )
    return lines


def _left_line(left: Leftovers) -> str:
    others = f" ({len(left.shared_by_others)} by others)" if left.shared_by_others else ""
    return (
        f"the end: exit code {left.exit_code} {left.seconds:.1f} s after SIGTERM; left: {len(left.processes)} "
        f"processes, {len(left.files)} files besides the journal, {len(left.shared)} in /dev/shm{others}"
    )


def _trend_text(one: Trend) -> str:
    return f"{one.first:.1f} to {one.last:.1f} MiB, {one.later_per_minute:+.2f} MiB/min in the second half"


def _chart(outcome: Outcome) -> Any:
    series = [
        Series(role, [(one.second, one.bytes.get(role, 0) / _MIB) for one in outcome.samples]) for role in ROLES[:3]
    ]  # fmt: skip
    letters = {"worker": "w", "rank": "R"}
    moments = [(at, letters[name]) for name, killed in outcome.kills.items() for at in killed["moments"]]
    return draw_lines(
        "Memory during the soak", "resident MiB; w = worker killed, R = a rank killed", series, x_label="seconds",
        y_logarithmic=False, unit=" MiB", moments=sorted(moments),
    )  # fmt: skip


def _data(outcome: Outcome, wrong: list[str]) -> dict[str, Any]:
    return {
        "seconds": outcome.seconds, "graphs": outcome.graphs, "counts": dict(outcome.tally.counts),
        "jobs": outcome.tally.by_algorithm(), "kills": outcome.kills, "told": outcome.counted,
        "restarts": outcome.restarts, "start_seconds": outcome.starts,
        "memory_mib": {role: dataclasses.asdict(one) for role, one in outcome.memory.items()},
        "open_files": dataclasses.asdict(outcome.files), "leftovers": dataclasses.asdict(outcome.leftovers),
        "samples": [dataclasses.asdict(one) for one in outcome.samples], "log_errors": outcome.log_errors[:20],
        "wrong": wrong, "details": outcome.tally.details,
    }  # fmt: skip
