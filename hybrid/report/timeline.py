"""The picture of who worked when: lanes for coordinator, CPU engine and NPU worker over time, as SVG.

Horizontal positions are per cent of the width and vertical ones pixels, so the picture follows the page's width, and a
zoom only has to widen it. Invariant: every event of the window is inside some block, arrow or badge; text is shown only
where its block is wide enough for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hybrid.charts.lettering import fits, fitted_text
from hybrid.charts.markup import EMPTY, Markup, el, join, percent
from hybrid.charts.scale import TimeScale, window
from hybrid.charts.units import plural, seconds
from hybrid.charts.wide_plot import band, stretch, time_axis, wide_plot
from hybrid.report.blocks import MOMENTS, Block, Merge, block_of, gather, gather_merges, join_waits
from hybrid.report.facts import Event, SourceRun, span_of

AXIS = 26
LANE = 28
STRIP = 14
GAP = 12
ARROWS = 40  # between the CPU's lane and the NPU's: room for the merge arrows and their labels
NARROWEST = 0.22  # per cent; about two pixels
SEPARATE_FROM = 0.5  # per cent; narrower neighbours are drawn without a line between them
LABEL_FROM = 2.0  # per cent; narrower blocks never have room for a word
MAX_BADGES = 12


@dataclass(frozen=True)
class Lane:
    """One horizontal band of the picture; ``ready`` is when its worker was up."""

    actor: str
    title: str
    y: int
    height: int = LANE
    ready: float = 0.0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def _lanes(cpu: str, *, with_npu: bool, with_sources: bool) -> list[Lane]:
    y = AXIS + (STRIP + GAP - 4 if with_sources else 0)
    return [
        *([Lane("source", "Source", AXIS, STRIP)] if with_sources else []),
        Lane("coordinator", "Coordinator", y),
        Lane("cpu", cpu, y + LANE + GAP),
        *([Lane("npu", "NPU worker", y + 2 * LANE + GAP + ARROWS)] if with_npu else []),
    ]


def incidents_of(events: Iterable[Event]) -> list[tuple[Event, str]]:
    """What a reader must not miss, in words: deaths, repairs, work taken back. The first MAX_BADGES are numbered."""
    found = []
    for event in events:
        about = f" (source {event.source})" if event.source is not None else ""
        match event.kind:
            case "death":
                text = f"The worker died{about}: {event.text('cause') or 'cause unknown'}."
            case "take_back":
                text = f"The CPU took the core's edges back{about}: {event.text('why') or 'no reason recorded'}."
            case "repair":
                text = f"A result failed its check and was computed again{about}: {event.text('findings')}."
            case _:
                continue
        found.append((event, text.replace("..", ".")))
    return found


def draw_timeline(
    shown: Sequence[Event], known: Sequence[Event], scale: TimeScale, *, name: str, title: str, cpu: str,
    with_npu: bool, budget: int, runs: Sequence[SourceRun] | None = None,
) -> Markup:  # fmt: skip
    """The events ``shown`` in their lanes, in about ``budget`` blocks; ``known`` has all of the worker's life.

    With ``runs`` it is an overview: a strip says which source it is, and a click on a block chooses that.
    Without, it is of one source, large enough for the directions of its steps.
    """
    enlarged = runs is None
    lanes = _lanes(cpu, with_npu=with_npu, with_sources=bool(runs))
    place = {lane.actor: lane for lane in lanes}
    body = [_draw_sources(lanes[0], runs, scale)] if runs else []
    if with_npu:
        body.append(_draw_worker_life(place["npu"], known, scale))
    for lane in (one for one in lanes if one.actor != "source"):
        own = join_waits(e for e in shown if e.actor == lane.actor and e.kind not in MOMENTS)
        blocks = gather([block_of(e, by_direction=enlarged) for e in own], scale, narrow=NARROWEST, budget=budget)
        body += [draw_block(block, _room(lane, block, blocks), scale, pickable=not enlarged) for block in blocks]
    if with_npu:
        merges = gather_merges(shown, scale, apart=0.8, budget=max(8, budget // 3))
        body.append(_draw_merges(merges, place["cpu"], place["npu"], scale, label_zero=enlarged))
    body.append(_draw_badges(incidents_of(shown if enlarged else known), place, scale))
    about = _describe(shown, scale, with_npu=with_npu)
    return draw_lanes(lanes, scale, body, 8, name, title, about)


def traversal_window(runs: Sequence[SourceRun], since: float = 0.0) -> TimeScale | None:
    """From the first to the last thing that CPU or NPU began after ``since`` for any source, with a small margin.

    None when fewer than two sources are in it: one source has its own picture.
    """
    own = [e for run in runs for e in run.events if e.actor != "coordinator" and e.t0 >= since]
    if len({e.source for e in own}) < 2:
        return None
    start, end = span_of(own)
    margin = 0.01 * (end - start)
    return window(max(0.0, start - margin), end + margin)


def window_of(run: SourceRun) -> TimeScale | None:
    """The window of one source's picture; None when the trace has nothing about it."""
    own = [e for e in run.events if e.actor != "coordinator"] or run.events
    if not own:
        return None
    start, end = span_of(own)
    # The certificate follows the traversal and may take far longer: show that it comes, without shrinking the rest.
    later = [e.t1 for e in run.events if e.t1 > end]
    room = 0.15 * (end - start)
    return window(start, min(max(later), end + room) if later else end)


def _room(lane: Lane, block: Block, others: Sequence[Block]) -> Lane:
    """The block's part of its lane: a round sent while the worker starts lies below the start, each half as high."""
    if block.style not in ("start", "round"):
        return lane
    starts = block.style == "start"
    if not any(o.style == ("round" if starts else "start") and o.t0 < block.t1 and block.t0 < o.t1 for o in others):
        return lane
    half = lane.height // 2
    y = lane.y if starts else lane.y + half
    # The worker computes only after its start.
    ready = max((o.t1 for o in others if o.style == "start" and o.t0 < block.t1), default=0.0)
    return Lane(lane.actor, lane.title, y, half, ready)


def extent(t0: float, t1: float, scale: TimeScale) -> tuple[float, float]:
    """Left edge and width in per cent, at least NARROWEST wide and inside the picture."""
    left, right = scale.at(t0), scale.at(t1)
    width = max(right - left, NARROWEST)
    return min(left, 100 - width), width


def draw_block(block: Block, lane: Lane, scale: TimeScale, *, pickable: bool = False) -> Markup:
    """The block in its lane, with its name where there is room; a click on a ``pickable`` one chooses its source."""
    x, width = extent(block.t0, block.t1, scale)
    style = f"k-{block.style}" if width >= SEPARATE_FROM else f"k-{block.style} thin"
    parts = [el("title", block.tip), stretch(x, lane.y, width, lane.height, style)]
    # Only how long the worker computed is recorded: put in the middle of the round, after the worker was up.
    earliest, latest = max(block.t0, lane.ready), block.t1 - block.inner
    begun = (earliest + latest) / 2 if earliest < latest else latest
    if block.inner > 0 and scale.shows(begun, begun + block.inner):
        inset = lane.height // 6
        left, inner = extent(begun, begun + block.inner, scale)
        parts.append(stretch(left, lane.y + inset, inner, lane.height - 2 * inset, "k-compute"))
    if block.name and width >= LABEL_FROM:
        longer = f"{block.name} {seconds(block.busy)}"
        text = longer if fits(longer, width) else block.name
        parts.append(fitted_text(text, x + width / 2, lane.middle + 4, width, class_=f"t-{block.style}"))
    return el("g", *parts, class_="m", data_source=block.source if pickable else None)


def _draw_sources(lane: Lane, runs: Sequence[SourceRun], scale: TimeScale) -> Markup:
    parts = []
    known = [(number, run, *span_of(run.events)) for number, run in enumerate(runs) if run.events]
    for number, run, start, end in known:
        if scale.shows(start, end):
            x, width = extent(start, end, scale)
            tip = f"Source {run.source}: {seconds(end - start)} from {seconds(start)}. Click to see it below"
            rect = stretch(x, lane.y, width, lane.height, f"k-source{number % 2}")
            label = fitted_text(run.source, x + width / 2, lane.middle + 4, width, class_="t-source")
            label = label if width >= LABEL_FROM else EMPTY
            parts.append(el("g", el("title", tip), rect, label, class_="m pick", data_source=run.source))
    return join(parts)


def _lives(events: Sequence[Event], end: float) -> list[tuple[float, float, Event | None]]:
    """When the worker was up: (from, to, its death or None) per start; a foreign worker may not announce one."""
    lives: list[tuple[float, float, Event | None]] = []
    begin: float | None = None
    for event in (e for e in events if e.actor == "npu"):
        if event.kind in MOMENTS:
            death = event if event.kind == "death" else None
            if begin is not None or death is not None:
                lives.append((event.t0 if begin is None else begin, event.t0, death))
            begin = None
        elif begin is None:
            begin = event.t0
    return lives if begin is None else [*lives, (begin, end, None)]


def _draw_worker_life(lane: Lane, events: Sequence[Event], scale: TimeScale) -> Markup:
    """A thin line while the worker is up, and a crossed-out lane once it is dead."""
    parts = []
    lives = _lives(events, scale.end)
    for number, (begin, finish, death) in enumerate(lives):
        if finish > begin and scale.shows(begin, finish):
            x, width = extent(begin, finish, scale)
            tip = el("title", "The worker is up; where no round is drawn it is idle")
            parts.append(el("g", tip, stretch(x, lane.middle - 1.5, width, 3, "k-alive"), class_="m"))
        until = lives[number + 1][0] if number + 1 < len(lives) else scale.end
        if death is not None and until > scale.start and scale.shows(finish, until):
            x, width = extent(death.t0, until, scale)
            cause, room = death.text("cause") or "cause unknown", max(0.0, width - 1)
            tip = el("title", f"The worker died at {seconds(death.t0)}: {cause}")
            rect, y = stretch(x, lane.y, width, lane.height, "k-dead"), lane.middle + 4
            label = fitted_text(f"dead: {cause}", x, y, room, class_="t-dead", anchor="start", dx=14, cut=True)
            parts.append(el("g", tip, rect, label, class_="m"))
    own = [e for e in events if e.actor == "npu"]
    if lives and not any(e.kind in ("round", "death") for e in own):
        left = scale.at(max((e.t1 for e in own if e.kind == "start"), default=scale.start))
        right = scale.at(lives[-1][1])
        parts.append(fitted_text("no round exchanged", (left + right) / 2, lane.y + 9, right - left, class_="t-muted"))
    return join(parts)


def _draw_merges(merges: Sequence[Merge], cpu: Lane, npu: Lane, scale: TimeScale, *, label_zero: bool) -> Markup:
    """Arrows from the NPU's lane up to the CPU's, with the number of values adopted."""
    parts = []
    positions = [scale.at(merge.t) for merge in merges]
    top, length = cpu.y + cpu.height + 2, npu.y - cpu.y - cpu.height - 4
    for i, (merge, x) in enumerate(zip(merges, positions, strict=True)):
        following = positions[i + 1] if i + 1 < len(positions) else 100.0
        outline = f"M0 0l5 9h-4v{length - 9}h-2v-{length - 9}h-4z"
        shape = el("path", d=outline, class_="gift" if merge.adopted else "gift none")
        arrow = el("svg", shape, x=percent(x), y=top, class_="at")
        if i + 1 == len(positions) and x > 93:
            # No room at the right edge: the last label shares the gap before its arrow with the label before.
            room, side, dx = (x - (positions[i - 1] if i else 0.0)) / 2, "end", -7
        else:
            crowded = i + 2 == len(positions) and following > 93
            room, side, dx = (following - x) / (2 if crowded else 1), "start", 7
        label = fitted_text(merge.label, x, top + length / 2 + 9, room, class_="t-gift", anchor=side, dx=dx)
        label = label if merge.adopted or label_zero else EMPTY
        parts.append(el("g", el("title", merge.tip), arrow, label, class_="m"))
    return join(parts)


def _draw_badges(incidents: Sequence[tuple[Event, str]], place: dict[str, Lane], scale: TimeScale) -> Markup:
    parts = []
    for number, (event, text) in enumerate(incidents[:MAX_BADGES], start=1):
        lane = place.get(event.actor)
        if lane is None or not scale.start <= event.t0 <= scale.end:
            continue
        numbered = el("text", number, y=4, class_="t-badge")
        mark = el("g", el("title", text), el("circle", r=8, class_="badge"), numbered, class_="m")
        x = min(99.0, max(1.0, scale.at(event.t0)))
        parts.append(el("svg", mark, x=percent(x), y=lane.y, class_="at"))
    return join(parts)


def draw_lanes(
    lanes: Sequence[Lane], scale: TimeScale, body: Sequence[Markup], below: int, name: str, title: str, about: str
) -> Markup:
    """Lanes over time, with what is drawn in them and so many pixels ``below`` the last."""
    height = lanes[-1].y + lanes[-1].height + below
    names = [el("text", lane.title, x=0, y=lane.middle + 4, class_="lane") for lane in lanes]
    drawn = [*(band(lane.y, lane.height) for lane in lanes), time_axis(scale, height), *body]
    return wide_plot(name, title, drawn, names, height, about=about, scale=scale)


def _describe(events: Sequence[Event], scale: TimeScale, *, with_npu: bool) -> str:
    """The picture in words, for screen readers."""
    busy = {actor: sum(e.duration for e in events if e.actor == actor) for actor in ("coordinator", "cpu", "npu")}
    waits = sum(e.duration for e in events if e.kind == "wait")
    sentences = [
        f"{seconds(scale.span)} from {seconds(scale.start)} into the job.",
        f"Coordinator busy {seconds(busy['coordinator'])}, CPU engine {seconds(busy['cpu'] - waits)}.",
    ]
    if with_npu:
        merges = [e.count("adopted") for e in events if e.kind == "merge"]
        worker = f"NPU worker starting or in rounds {seconds(busy['npu'])}."
        sentences.append(f"CPU engine waiting {seconds(waits)}; {worker}")
        sentences.append(f"{plural(len(merges), 'merge')}, {plural(sum(merges), 'value')} adopted.")
    return " ".join([*sentences, *(text for _, text in incidents_of(events)[:MAX_BADGES])])
