"""Who worked when: the whole job, its traversal phase enlarged, and one panel per source with time line and frontier.

Invariant: each source up to MAX_PANELS has a panel and a button, in the order of the summary; one panel is open at
first; the number of marks over all panels is bounded, so the page stays small.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.charts.markup import EMPTY, Markup, el
from hybrid.charts.scale import TimeScale, window
from hybrid.charts.units import compact, moment, number, plural, seconds, whole
from hybrid.report.facts import MAX_PANELS, Event, Facts, SourceRun, as_dict
from hybrid.report.frontier import Bar, bars_of, draw_frontier, sign_key
from hybrid.report.pieces import Panel, draw_panels, folded, legend, legend_item, muted, section, zoomable
from hybrid.report.tables import step_table, work_table
from hybrid.report.timeline import MAX_BADGES, draw_timeline, incidents_of, traversal_window, window_of

OVERVIEW = 220  # blocks in a lane of the whole job
MARKS = 1600  # blocks in all the sources' time lines together
BARS = 1600  # bars in all the frontier charts together
ENLARGE_BELOW = 0.45  # the traversal phase gets its own picture when it is a smaller part of the job than this
LEGEND = {
    "coordinator": "coordinator",
    "cpu": "CPU step",
    "push": "push step",
    "pull": "pull step",
    "async": "asynchronous step",
    "mixed": "both directions",
    "pack": "makes and reads messages",
    "wait": "CPU waits for the NPU",
    "start": "worker starts",
    "round": "round: files there and back",
    "compute": "NPU computes",
    "dead": "worker dead",
    "warn": "repair or core taken back",
    "edges": "edges looked at",
}


def draw_whole_job(facts: Facts) -> Markup:
    """The picture of the job over all sources."""
    if not facts.events:
        note = "The trace is empty: nothing to draw. Fix: look for trace.jsonl and log.txt beside this report."
        return section("Who worked when", el("p", note), id="timeline")
    scale = window(0.0, facts.total)
    whole_job, about = "The whole job", f"{seconds(scale.span)} from start to end"
    parts = [_overview(facts, scale, "job", whole_job, whole_job, about)]
    # A first source that waits for the worker to start would squeeze all others: then enlarge what came after.
    for begin in sorted({0.0, facts.ready}):
        inner = traversal_window(facts.runs, begin)
        if inner is None or inner.span >= ENLARGE_BELOW * scale.span:
            continue
        what = "The traversals, enlarged" if begin == 0 else "After the worker's start, enlarged"
        # A wedge leads from the whole job to its enlarged part.
        left, right = scale.at(inner.start), max(scale.at(inner.end), scale.at(inner.start) + 0.3)
        wedge = el("polygon", points=f"{left:.2f},0 {right:.2f},0 100,20 0,20")
        look = {"class_": "lens", "height": 20, "viewBox": "0 0 100 20", "preserveAspectRatio": "none"}
        parts.append(el("svg", wedge, **look, aria_hidden="true"))
        parts.append(_overview(facts, inner, "phase", what, "The traversal phase", since(inner)))
        break
    parts += [_legend(facts, facts.events, by_direction=False), _incident_list(facts.events)]
    if facts.left_out:
        parts.append(muted(f"{plural(facts.left_out, 'trace record')} had no usable time and could not be drawn."))
    parts.append(folded("The same as a table", work_table(facts.events, facts.total)))
    return section("Who worked when", *parts, id="timeline", lead=_lead(facts))


def _overview(facts: Facts, scale: TimeScale, name: str, heading: str, title: str, about: str) -> Markup:
    shown = [event for event in facts.events if scale.shows(event.t0, event.t1)]
    drawing = draw_timeline(
        shown, facts.events, scale, name=name, title=f"{title}: who worked when", cpu=facts.cpu,
        with_npu=facts.with_npu, budget=OVERVIEW, runs=facts.runs,
    )  # fmt: skip
    return zoomable(name, heading, drawing, about)


def _lead(facts: Facts) -> str:
    if whole(facts.ranks.get("ranks")) > 1:
        worker = " and its machine's worker" if facts.with_npu else ""
        return f"Rank 0{worker} stand{'' if worker else 's'} here for all ranks; every one of them is drawn below."
    if not facts.with_npu:
        return "The NPU was off (npu.mode: off), so there is no NPU lane: the CPU did all the work."
    if not any(event.kind == "merge" for event in facts.events):
        why = facts.outcome.rstrip(".")
        return f"No answer of the NPU was merged{': ' + why if why else ''}."
    return (
        "Green arrows are merges: values that the NPU found first and the CPU adopted. "
        "Grey ones brought nothing new. Click a stretch to see its source below."
    )


def since(scale: TimeScale) -> str:
    """How much of the job a picture shows."""
    return f"{seconds(scale.span)}, beginning {seconds(scale.start)} into the job"


def _legend(facts: Facts, events: Sequence[Event], *, by_direction: bool) -> Markup:
    kinds = {event.kind for event in events}
    steps = [event.text("direction") if by_direction else "cpu" for event in events if event.kind == "step"]
    used = {*steps, *({"wait", "pack", "start", "round"} & kinds)}
    also = {
        "coordinator": any(event.actor == "coordinator" for event in events),
        "compute": any(event.kind == "round" and event.real("compute_s") for event in events),
        "dead": "death" in kinds,
        "warn": bool(kinds & {"repair", "take_back"}),
    }
    used |= {style for style, seen in also.items() if seen}
    named = LEGEND | ({"wait": "rank 0 waits: in communication"} if facts.on_ranks else {})
    items = [legend_item(f"k-{style}", text) for style, text in named.items() if style in used]
    if facts.with_npu and "merge" in kinds:
        arrow = el("path", d="M9 0l5 7h-4v6h-2v-6h-4z", class_="gift")
        swatch = el("svg", arrow, width=18, height=13, aria_hidden="true")
        items.append(el("li", swatch, "merge, +values adopted"))
    return legend(items)


def _incident_list(events: Sequence[Event]) -> Markup:
    found = incidents_of(events)
    items = [
        el("li", el("b", number), el("span", f"{moment(event.t0)}: {text}"))
        for number, (event, text) in enumerate(found[:MAX_BADGES], start=1)
    ]
    if len(found) > MAX_BADGES:
        items.append(el("li", f"and {len(found) - MAX_BADGES:,} more in trace.jsonl."))
    return el("ul", *items, class_="incidents") if items else EMPTY


def draw_sources(facts: Facts) -> Markup:
    """Buttons to choose a source, and a panel for each: its time line enlarged, its frontier, its steps."""
    shown = list(facts.runs[:MAX_PANELS])
    if not shown:
        return EMPTY
    # The one to open first: one that the NPU helped, best begun with the worker up; else one with steps.
    helped = [i for i, run in enumerate(shown) if run.adopted]
    warm = [i for i in helped if shown[i].events[0].t0 >= facts.ready]
    opened = next(iter([*warm, *helped, *(i for i, run in enumerate(shown) if run.steps), 0]))
    shared = [event for event in facts.events if event.source is None or event.actor == "npu"]
    panels = []
    for i, run in enumerate(shown):
        gift = el("small", f"+{compact(run.adopted)}") if run.adopted else EMPTY
        panels.append(Panel(run.source, _details(facts, shared, run, i, len(shown)), gift))
    left_out = f"The first {len(shown)} of {len(facts.runs):,} sources are drawn; the table below has more."
    note = muted(left_out) if len(facts.runs) > len(shown) else EMPTY
    title, lead = f"Source {shown[0].source} in detail", ""
    if len(shown) > 1:
        title = "One source at a time"
        lead = "Choose a source. A green figure is the number of values adopted from the NPU."
    return section(title, *draw_panels(panels, opened, note), id="sources", lead=lead, long=True)


def _details(facts: Facts, shared: Sequence[Event], run: SourceRun, index: int, panels: int) -> list[Markup]:
    name = f"s{index}"
    title, scale = f"Time line of source {run.source}", window_of(run)
    if scale is None:
        return [el("p", describe_run(facts, run)), muted("The trace has nothing about this source.")]
    candidates = [*run.events, *(event for event in shared if event.source is None)]
    shown = sorted((e for e in candidates if scale.shows(e.t0, e.t1)), key=lambda e: (e.t0, e.t1))
    drawing = draw_timeline(
        shown, shared, scale, name=name, title=title, cpu=facts.cpu, with_npu=facts.with_npu,
        budget=max(24, min(300, MARKS // panels)),
    )  # fmt: skip
    bars = bars_of(run, max(24, min(60, BARS // panels)))
    nothing = muted("No steps: nothing is reachable from this source but itself.")
    return [
        el("p", describe_run(facts, run)),
        zoomable(name, title, drawing, since(scale)),
        _legend(facts, shown, by_direction=True),
        _incident_list(shown),
        *(_frontier(facts, run, index, bars) if bars else [nothing]),
    ]


def _frontier(facts: Facts, run: SourceRun, index: int, bars: Sequence[Bar]) -> list[Markup]:
    steps = bars[-1].last
    binned = bars[0].steps
    words = ["Logarithmic scales."] + (["Rank 0's share of the work."] if facts.on_ranks else [])
    if binned > 1:
        words.append(
            f"{steps:,} steps, {binned:,} to a bar: a bar is their mean, the thin line reaches to the largest frontier."
        )
    if key := sign_key(bars):
        words.append(f"{key}.")
    if any(bar.merges for bar in bars):
        words.append("A green flag marks where values from the NPU came in.")
    used = {bar.direction for bar in bars}
    named = [style for style in ("push", "pull", "async", "mixed") if style in used]
    fills = [legend_item(f"k-{style}", LEGEND[style]) for style in (*named, "edges")]
    return [
        el("h3", "Frontier and direction per step"),
        muted(" ".join(words)),
        draw_frontier(run, bars, f"f{index}"),
        legend(fills),
        folded("Steps as a table", step_table(bars, with_npu=facts.with_npu)),
    ]


def describe_run(facts: Facts, run: SourceRun) -> str:
    """The source's run in one or two sentences."""
    own = as_dict(run.run)
    npu, times = as_dict(own.get("npu")), as_dict(own.get("seconds"))
    parts = []
    if number(own.get("reached")) is not None:
        reached = whole(own["reached"])
        far = f"Reached {plural(reached, 'vertex')} in {plural(own.get('max_level'), 'level')}"
        parts.append("Reached only itself" if reached <= 1 else far)
    if "traverse" in times:
        parts.append(f"traversed in {seconds(times['traverse'])}")
    if own:
        parts.append("certified" if own.get("certified") else "NOT certified")
    sentence = ", ".join(parts) + "." if parts else "The summary has no run for this source."
    if not facts.with_npu:
        return sentence
    merged, adopted = whole(npu.get("rounds_merged")), whole(npu.get("values_adopted"))
    if merged:
        return f"{sentence} {plural(merged, 'NPU round')} merged, {plural(adopted, 'value')} adopted."
    why = str(npu.get("outcome") or "").strip().rstrip(".")
    return f"{sentence} No NPU round was merged{': ' + why if why else ''}."
