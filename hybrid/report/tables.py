"""The report's tables: runs, rounds, steps, and who worked how long.

Invariant: a table shows every row up to its limit and says in words how many it left out; the pictures' facts are all
here as text too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hybrid.charts.markup import EMPTY, Markup, el, join
from hybrid.charts.units import DASH, compact, count, moment, plural, seconds, share
from hybrid.report.blocks import name_of
from hybrid.report.facts import Event, as_dict
from hybrid.report.frontier import Bar
from hybrid.report.pieces import muted

MAX_ROWS = 1000
TALL = 14  # rows from which a table scrolls in its own box
ACTOR_NAMES = {"coordinator": "Coordinator", "cpu": "CPU engine", "npu": "NPU worker"}


class Row(NamedTuple):
    """The cells of one row, and its style if it has one."""

    cells: Sequence[object]
    style: str | None = None


def table(
    heads: Sequence[str], rows: Sequence[Row], *, text_columns: Iterable[int] = (0,), caption: str = "",
    sums: Sequence[Row] = (),
) -> Markup:  # fmt: skip
    """A table with numbers to the right and the text columns to the left; long ones scroll in their own box.

    The ``sums`` come last, and first where there are many rows, so that they are seen without scrolling.
    """
    rows, left = [*sums, *rows] if len(rows) > TALL else [*rows, *sums], set(text_columns)

    def line(name: str, cells: Iterable[object], style: str | None = None, **more: object) -> Markup:
        drawn = (el(name, cell, **more, class_="s" if i in left else None) for i, cell in enumerate(cells))
        return el("tr", *drawn, class_=style)

    title = el("caption", caption, class_="sr") if caption else EMPTY
    shown = [line("td", *one) for one in rows[:MAX_ROWS]]
    body = el("table", title, el("thead", line("th", heads, scope="col")), el("tbody", *shown))
    more = f"{plural(len(rows) - MAX_ROWS, 'more row is', 'more rows are')} in trace.jsonl and summary.json."
    tall = len(rows) > TALL
    box = el("div", body, class_="wide tall" if tall else "wide", tabindex="0" if tall else None)
    return join([box, muted(more) if len(rows) > MAX_ROWS else EMPTY])


def run_table(runs: Sequence[Mapping[str, Any]], *, with_npu: bool) -> Markup:
    """One row per source, as the summary reports it; the NPU's outcome is a column only where the sources differ."""
    if not runs:
        return muted("The summary lists no runs.")
    outcomes = [str(as_dict(run.get("npu")).get("outcome") or DASH) for run in runs]
    with_outcome = with_npu and len(set(outcomes)) > 1
    heads = ["Source", "Certified", "Reached", "Max level", "Steps", "Edges looked at", "Traverse", "Certify", "TEPS"]
    heads += ["Rounds merged", "Values adopted"] if with_npu else []
    heads += ["NPU outcome"] if with_outcome else []
    rows = []
    for run, outcome in zip(runs, outcomes, strict=True):
        times, npu, certified = as_dict(run.get("seconds")), as_dict(run.get("npu")), bool(run.get("certified"))
        cells: list[object] = [run.get("source", DASH), "yes" if certified else el("b", "NO", class_="bad")]
        cells += [count(run.get(name)) for name in ("reached", "max_level", "steps")]
        cells += [compact(run.get("edges_looked_at")), *(seconds(times.get(name)) for name in ("traverse", "certify"))]
        cells += [compact(run.get("teps"))]
        cells += [count(npu.get("rounds_merged")), count(npu.get("values_adopted"))] if with_npu else []
        cells += [outcome] if with_outcome else []
        rows.append(Row(cells, None if certified else "fault"))
    drawn = table(heads, rows, text_columns=(0, 1, 11), caption="Runs, one per source")
    if with_npu and not with_outcome and outcomes[0] != DASH:
        runs_named = "the run" if len(runs) == 1 else "every run"
        return join([muted(f"NPU outcome of {runs_named}: {outcomes[0]}."), drawn])
    return drawn


def round_table(rounds: Sequence[Event]) -> Markup:
    """One row per round, and their totals."""
    heads = ["Source", "Round", "At", "Round trip", "Sent", "Received", "Adopted", "Rejected", "Iterations", "Compute"]
    heads.append("Outcome")
    names = ("values_sent", "values_received", "values_adopted", "values_rejected")
    rows = []
    for event in rounds:
        adopted, rejected = event.count("values_adopted"), event.count("values_rejected")
        name = event.text("round")
        numbered = re.fullmatch(r"round-(\d{1,18})-(\w+)", name)  # the full id, its directory's name, is in the tip
        shown = el("span", str(int(numbered[1])), title=name) if numbered else name or DASH
        cells: list[object] = [event.source or DASH, shown, moment(event.t0)]
        cells += [seconds(event.duration), *(count(event.facts.get(name)) for name in (*names, "iterations"))]
        cells += [seconds(event.facts.get("compute_s")), event.text("outcome") or DASH]
        rows.append(Row(cells, "fault" if rejected else "hit" if adopted else None))
    totals = [count(sum(event.count(name) for event in rounds)) for name in names]
    trips = seconds(sum(event.duration for event in rounds))
    compute = seconds(sum(event.real("compute_s") for event in rounds) or None)
    iterations = count(sum(event.count("iterations") for event in rounds) or None)
    summed = Row(["all", "", "", trips, *totals, iterations, compute, ""], "sum")
    caption = "Rounds exchanged with the NPU worker"
    return table(heads, rows, text_columns=(0, 1, 10), caption=caption, sums=[summed])


def step_table(bars: Sequence[Bar], *, with_npu: bool) -> Markup:
    """The frontier chart as a table; a column that no step has anything for is left out."""
    binned = any(bar.steps > 1 for bar in bars)
    figure, mean = (compact, " (mean)") if binned else (count, "")
    columns: list[tuple[str, list[object]]] = [
        ("Step", [f"{b.first:,}" if b.steps == 1 else f"{b.first:,}{DASH}{b.last:,}" for b in bars]),
        ("Level", [b.place for b in bars] if any(b.levels[0] for b in bars) else []),
        ("Direction", [b.direction for b in bars]),
        (f"Frontier{mean}", [figure(b.frontier) for b in bars]),
        (f"Edges looked at{mean}", [figure(b.edges) for b in bars]),
        ("Reached", [count(b.reached) for b in bars] if any(b.reached is not None for b in bars) else []),
        ("Time", [seconds(b.duration) for b in bars]),
        ("Adopted from NPU", [count(b.adopted) if b.merges else "" for b in bars] if with_npu else []),
    ]
    used = [(head, values) for head, values in columns if values]
    text = [i for i, (head, _) in enumerate(used) if head == "Direction"]
    rows = [Row(cells) for cells in zip(*(values for _, values in used), strict=True)]
    return table([head for head, _ in used], rows, text_columns=text, caption="Steps of the CPU engine")


def work_table(events: Sequence[Event], total: float) -> Markup:
    """The whole-job picture as a table: activities of each actor, how often and how long."""
    tally: dict[tuple[str, str], list[float]] = {}
    for event in events:
        name = f"step, {name_of(event)}" if event.kind == "step" else name_of(event)
        tally.setdefault((event.actor, name), []).append(event.duration)
    order = {actor: i for i, actor in enumerate(ACTOR_NAMES)}
    rows = []
    for (actor, name), times in sorted(tally.items(), key=lambda item: (order[item[0][0]], -sum(item[1]))):
        spent = sum(times)
        cells = [ACTOR_NAMES[actor], name, f"{len(times):,}", seconds(spent), seconds(max(times)), share(spent, total)]
        rows.append(Row(cells))
    heads = ["Who", "Activity", "Times", "In all", "Longest", "Of the job"]
    return table(heads, rows, text_columns=(0, 1), caption="Who worked how long")
