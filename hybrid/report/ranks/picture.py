"""The picture of ranks over time: a lane per rank, grouped by machine, with the rounds of the machine's worker.

A lane is a stack of areas over time - compute at the bottom, then pack, then wait - each a rectangle in the area's
pattern, clipped to its outline: the pattern keeps its size whatever the page's width, and ten thousand events are some
kilobytes. The longest events can also be pointed at. Invariant: the size of a picture is bounded by its budgets, not by
the number of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid.charts.lettering import CHARACTER, fitted_text
from hybrid.charts.markup import EMPTY, Markup, el, join
from hybrid.charts.scale import TimeScale
from hybrid.charts.units import compact, plural, seconds
from hybrid.charts.wide_plot import NAMES_PX, band, stretch, time_axis, wide_plot
from hybrid.report.blocks import MOMENTS, block_of, gather, name_of, tip_of
from hybrid.report.facts import Event
from hybrid.report.ranks.lanes import STACK, Columns, Machine, RankLane, Times, columns_of, style_of
from hybrid.report.timeline import AXIS, NARROWEST, extent

HEADING = 22
SMALL = 14  # lanes lower than this have small names, plain colours and no words inside
UNITS = 10_000  # of an outline's width
LEVELS = 20  # of its height
POINTABLE = 0.4  # per cent of the width; shorter events cannot be pointed at
WORD_FROM = 5.0  # per cent of the width from which an event may carry its name
ROUNDS = 120  # blocks in all workers' lanes of a picture


@dataclass(frozen=True)
class Budget:
    """What one picture may take: columns per lane, and events that can be pointed at."""

    columns: int
    pointable: int


@dataclass(frozen=True)
class _Row:
    """Where something stands: a machine's name, its worker, or a lane."""

    y: int
    height: int
    machine: Machine
    lane: RankLane | None = None
    heading: bool = False

    @property
    def baseline(self) -> float:
        return self.y + self.height / 2 + (4 if self.height >= SMALL else 3)


def draw_ranks(machines: Sequence[Machine], scale: TimeScale, budget: Budget, *, name: str, title: str) -> Markup:
    """The picture; ``name`` makes its ids its own."""
    rows, height = _place(machines)
    drawn = [
        *(band(row.y, row.height) for row in rows if not row.heading),
        time_axis(scale, height),
        *(_draw_row(row, i, scale, budget, name, len(machines)) for i, row in enumerate(rows)),
        _draw_pointable(rows, scale, budget.pointable),
    ]
    names = [_draw_name(row, rows) for row in rows]
    style = "plot ranks dense" if is_dense(machines) else "plot ranks"
    return wide_plot(name, title, drawn, names, height, about=describe(machines, scale), scale=scale, style=style)


def describe(machines: Sequence[Machine], scale: TimeScale) -> str:
    """The picture in words, for screen readers."""
    lanes = [lane for machine in machines for lane in machine.lanes]
    ranks = sum(len(lane.ranks) for lane in lanes)
    head = f"{plural(ranks, 'rank')} on {plural(len(machines), 'machine')} over {seconds(scale.span)}."
    if len(lanes) > 16:
        totals = {style: sum(lane.times[style] for lane in lanes) for style in STACK}
        return f"{head} All ranks together: {_times_in_words(totals)}."
    return " ".join([head, *(f"{lane.title.capitalize()}: {_times_in_words(lane.times)}." for lane in lanes)])


def _times_in_words(times: Times) -> str:
    compute = sum(times[style] for style in STACK if style not in ("pack", "wait"))
    directions = [f"{style} {seconds(times[style])}" for style in STACK[:3] if times[style]]
    of_it = f" ({', '.join(directions)})" if directions else ""
    return f"compute {seconds(compute)}{of_it}, pack {seconds(times['pack'])}, wait {seconds(times['wait'])}"


# ------------------------------------------------------------------------------------------- where things stand


def is_dense(machines: Sequence[Machine]) -> bool:
    """Whether the lanes are too low for patterns and words."""
    return _lane_height(machines) < SMALL


def _lane_height(machines: Sequence[Machine]) -> int:
    lanes = sum(len(machine.lanes) for machine in machines)
    return next((high for most, high in ((6, 26), (12, 20), (24, 15), (40, 12)) if lanes <= most), 10)


def _place(machines: Sequence[Machine]) -> tuple[list[_Row], int]:
    """All rows, and the height of the picture. Machines of one rank each need no heading."""
    lanes, height = sum(len(machine.lanes) for machine in machines), _lane_height(machines)
    gap = 5 if height >= SMALL else 2
    headings = len(machines) > 1 and lanes > len(machines)
    y, rows = AXIS, []
    for machine in machines:
        if headings:
            rows.append(_Row(y, HEADING, machine, heading=True))
            y += HEADING
        for lane in machine.lanes:
            rows.append(_Row(y, height, machine, lane))
            y += height + gap
        if machine.rounds:
            rows.append(_Row(y, height, machine))
            y += height + gap
        y += 4 if headings else 0
    return rows, y + 2


def _draw_name(row: _Row, rows: Sequence[_Row]) -> Markup:
    """A lane's name; with its machine's where that has no heading of its own."""
    if row.heading:
        return EMPTY
    small = row.height < SMALL
    text = "NPU worker" if row.lane is None else row.lane.title
    if row.lane is not None and rows[0].lane is not None and rows[0].machine is not rows[-1].machine:
        most = int(NAMES_PX / (CHARACTER if small else CHARACTER + 1))
        text = f"{row.lane.ranks[0]} {row.machine.name}"
        text = text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return el("text", text, x=0, y=row.baseline, class_="lane small" if small else "lane")


# ------------------------------------------------------------------------------------------------- what is drawn


def _draw_row(row: _Row, number: int, scale: TimeScale, budget: Budget, name: str, machines: int) -> Markup:
    if row.heading:
        return _draw_heading(row)
    if row.lane is None:
        return _draw_rounds(row, scale, max(12, ROUNDS // machines))
    columns = columns_of(row.lane, scale, budget.columns)
    tip = el("title", _tip_of_lane(row.lane))
    if not columns.shares:
        words = fitted_text("nothing recorded", 50, row.baseline, 100, class_="t-muted") if row.height >= SMALL else ""
        return el("g", tip, band(row.y, row.height), words, class_="m")
    areas = [
        _draw_area(row, f"{name}-{number}-{style}", style, outline)
        for style, outline in outlines_of(columns, scale).items()
    ]
    return el("g", tip, *areas, class_="m")


def _draw_heading(row: _Row) -> Markup:
    ranks = sum(len(lane.ranks) for lane in row.machine.lanes)
    text = f"{row.machine.host}: {plural(ranks, 'rank')}"
    return fitted_text(text, 0, row.y + 16, 100, class_="t-host", anchor="start", cut=True)


def _tip_of_lane(lane: RankLane) -> str:
    mean = " in all" if len(lane.ranks) > 1 else ""
    return f"{lane.title.capitalize()} on {lane.host}: {_times_in_words(lane.times)}{mean}"


def outlines_of(columns: Columns, scale: TimeScale) -> dict[str, str]:
    """The areas' outlines as SVG paths on UNITS x LEVELS, in the order of drawing: the top of the stack first.

    Each reaches down to the lane's bottom and is covered there by those below it; where a style has no share of a
    column, its outline has no height.
    """
    x = [round(UNITS * scale.at(edge) / 100) for edge in columns.edges.tolist()]
    used = [style for style in STACK if style in columns.shares]
    tops = np.cumsum([columns.shares[style] for style in used], axis=0)
    outlines = {}
    for style, top in reversed(list(zip(used, tops, strict=True))):
        present = columns.shares[style] > 0.5 / LEVELS / 4
        outlines[style] = _outline(x, np.where(present, np.rint(LEVELS * top), 0).astype(int).tolist())
    return outlines


def _outline(x: Sequence[int], heights: Sequence[int]) -> str:
    parts = [f"M0 {LEVELS}"]
    at, height = 0, 0
    for left, wanted in zip(x, [*heights, 0], strict=True):
        if wanted == height:
            continue
        if left > at:
            parts.append(f"h{left - at}")
        parts.append(f"v{height - wanted}")
        at, height = max(at, left), wanted
    return "".join([*parts, "z"])


def _draw_area(row: _Row, identity: str, style: str, outline: str) -> Markup:
    path = el("path", d=outline, transform=f"scale({1 / UNITS:g} {1 / LEVELS:g})")
    clip = el("clipPath", path, id=identity, clipPathUnits="objectBoundingBox")
    rect = el("rect", x=0, y=row.y, width="100%", height=row.height, class_=f"r-{style}", clip_path=f"url(#{identity})")
    return join([clip, rect])


def _draw_rounds(row: _Row, scale: TimeScale, budget: int) -> Markup:
    events = [e for e in row.machine.rounds if e.kind not in MOMENTS and scale.shows(e.t0, e.t1)]
    blocks = gather([block_of(e, by_direction=True) for e in events], scale, narrow=NARROWEST, budget=budget)
    parts = []
    for block in blocks:
        x, width = extent(block.t0, block.t1, scale)
        rect = stretch(x, row.y, width, row.height, f"k-{block.style}")
        adopted = 0 if block.event is None else block.event.count("values_adopted")
        name = f"{block.name}, +{compact(adopted)}" if adopted else block.name
        words = _draw_words(name, row, x, width, f"t-{block.style}")
        parts.append(el("g", el("title", f"Worker on {row.machine.host}: {block.tip}"), rect, words, class_="m"))
    return join(parts)


def _draw_words(text: str, row: _Row, x: float, width: float, style: str) -> Markup:
    if not text or width < WORD_FROM or row.height <= SMALL:
        return EMPTY
    return fitted_text(text, x + width / 2, row.baseline, width, class_=style)


def _draw_pointable(rows: Sequence[_Row], scale: TimeScale, most: int) -> Markup:
    """Over the areas: the longest events, each with its tip and, where there is room, its name."""
    shortest = scale.span * POINTABLE / 100
    found: list[tuple[Event, _Row]] = [
        (event, row)
        for row in rows
        if row.lane is not None and len(row.lane.ranks) == 1
        for event in row.lane.events
        if event.duration >= shortest and scale.shows(event.t0, event.t1)
    ]
    found.sort(key=lambda pair: -pair[0].duration)
    parts = []
    for event, row in found[:most]:
        assert row.lane is not None
        x, width = extent(event.t0, event.t1, scale)
        rect = stretch(x, row.y, width, row.height, None)
        # Waiting is most of many pictures, and its pattern says so: words would only hide the rest.
        named = EMPTY if event.kind == "wait" else name_of(event)
        words = _draw_words(named, row, x, width, f"r-t-{style_of(event)}")
        tip = el("title", f"{row.lane.title.capitalize()}: {tip_of(event)}")
        parts.append(el("g", tip, rect, words, class_="m point"))
    return join(parts)
