"""The picture of ranks over time: a lane per rank, grouped by machine, with the rounds of the machine's worker.

A search lasts milliseconds and a quantum of work microseconds, so a lane is drawn as columns, each filled by the shares
of its time. They are a stack of areas - compute at the bottom, then pack, then wait - each a rectangle in the area's
pattern, clipped to its outline: the pattern keeps its size whatever the page's width, and ten thousand events are some
kilobytes. The longest events can also be pointed at. Invariant: of few events the columns begin and end with them, so
that a share is 0 or 1; of many they are equally wide, and no more than asked for. A column's shares add up to at most
1; what is missing was not recorded. The size of a picture is bounded by its budget, not by the number of events.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hybrid.charts.lettering import CHARACTER, fitted_text
from hybrid.charts.markup import EMPTY, Markup, el, join
from hybrid.charts.scale import TimeScale
from hybrid.charts.units import DASH, compact, number, plural, seconds, whole
from hybrid.charts.wide_plot import NAMES_PX, band, stretch, time_axis, wide_plot
from hybrid.report.blocks import DIRECTIONS, MOMENTS, block_of, gather, name_of, tip_of
from hybrid.report.facts import Event, as_dict, as_list
from hybrid.report.timeline import AXIS, NARROWEST, extent

STACK = (*DIRECTIONS, "compute", "pack", "wait")  # from the bottom of a lane to its top
MAX_LANES = 64
UNKNOWN_HOST = "unknown machine"
HEADING = 22
SMALL = 14  # lanes lower than this have small names, plain colours and no words inside
UNITS = 10_000  # of an outline's width
LEVELS = 20  # of its height
POINTABLE = 0.4  # per cent of the width; shorter events cannot be pointed at
WORD_FROM = 5.0  # per cent of the width from which an event may carry its name
ROUNDS = 120  # blocks in all workers' lanes of a picture
Times = dict[str, float]


@dataclass(frozen=True)
class RankLane:
    """One rank's lane, or that of several neighbours of a machine when there are more ranks than lanes."""

    ranks: tuple[int, ...]
    host: str
    events: Sequence[Event] = field(repr=False)

    @property
    def title(self) -> str:
        first, last = self.ranks[0], self.ranks[-1]
        return f"rank {first}" if first == last else f"ranks {first}{DASH}{last}"

    @cached_property
    def times(self) -> Times:
        """Seconds by what they were spent on, over all of the lane's ranks."""
        times = dict.fromkeys(STACK, 0.0)
        for event in self.events:
            times[style_of(event)] += event.duration
        return times


@dataclass(frozen=True)
class Machine:
    """A machine's ranks, and what its worker did."""

    host: str
    name: str  # the host's, without a domain that all share
    lanes: tuple[RankLane, ...]
    rounds: Sequence[Event] = field(repr=False)


@dataclass(frozen=True)
class Columns:
    """``edges`` in seconds, one more than columns; ``shares[style]`` per column, only of styles that occur."""

    edges: np.ndarray
    shares: Mapping[str, np.ndarray]


def hosts_of(ranks: Mapping[str, object]) -> dict[int, str]:
    """Each rank's machine, from the ``ranks`` section of a summary; by rank."""
    hosts: dict[int, str] = {}
    for row in as_list(ranks.get("per_rank")):
        facts = as_dict(row)
        rank = number(facts.get("rank"))
        if rank is not None and rank >= 0:
            hosts[whole(facts["rank"])] = str(facts.get("host") or UNKNOWN_HOST)
    return dict(sorted(hosts.items()))


def short_names(hosts: Collection[str]) -> dict[str, str]:
    """Each host's name without the domain, if all are in the same one; addresses stay as they are."""
    parts = {host: host.partition(".") for host in hosts}
    domains = {domain for _, _, domain in parts.values()}
    first = {host: name for host, (name, _, _) in parts.items()}
    if len(domains) == 1 and all(first.values()) and not any(name.isdigit() for name in first.values()):
        return first
    return {host: host for host in hosts}


def style_of(event: Event) -> str:
    """What the time of a rank's event counts as."""
    if event.kind == "step":
        direction = event.text("direction")
        return direction if direction in DIRECTIONS else "compute"
    return event.kind if event.kind in ("pack", "wait") else "compute"


def machines_of(hosts: Mapping[int, str], events: Mapping[int, Sequence[Event]]) -> list[Machine]:
    """The machines in the order of their first ranks, with the given events; at most MAX_LANES lanes or few more."""
    named = {rank: hosts.get(rank, UNKNOWN_HOST) for rank in sorted({*hosts, *events})}
    together = -(-len(named) // MAX_LANES)  # ranks to a lane
    if together > 1 and len(set(named.values())) > MAX_LANES // 2:
        named = dict.fromkeys(named, f"{len(set(named.values())):,} machines")
    ranks_on: dict[str, list[int]] = {}
    for rank, host in named.items():
        ranks_on.setdefault(host, []).append(rank)
    names = short_names(ranks_on)
    machines = []
    for host, ranks in ranks_on.items():
        own = {rank: events.get(rank, ()) for rank in ranks}
        dealt = [tuple(ranks[i : i + together]) for i in range(0, len(ranks), together)]
        lanes = [RankLane(some, host, [e for one in some for e in own[one] if e.actor != "npu"]) for some in dealt]
        rounds = sorted((e for some in own.values() for e in some if e.actor == "npu"), key=lambda e: (e.t0, e.t1))
        machines.append(Machine(host, names[host], tuple(lanes), rounds))
    return machines


def columns_of(lane: RankLane, scale: TimeScale, most: int) -> Columns:
    """The lane as at most ``most`` columns."""
    times: dict[str, list[tuple[float, float]]] = {}
    for event in lane.events:
        if scale.shows(event.t0, event.t1):
            span = (max(event.t0, scale.start) - scale.start, min(event.t1, scale.end) - scale.start)
            times.setdefault(style_of(event), []).append(span)
    spans = {style: np.array(times[style]) for style in STACK if style in times}
    edges = np.unique(np.concatenate([[0.0, scale.span], *(span.ravel() for span in spans.values())]))
    if edges.size > most + 1:
        edges = np.linspace(0.0, scale.span, most + 1)
    width = np.diff(edges) * len(lane.ranks)
    shares = {
        style: np.diff(_elapsed(span[:, 0], edges) - _elapsed(span[:, 1], edges)) / width
        for style, span in spans.items()
    }
    if shares:
        crowded = np.maximum(1.0, np.sum(list(shares.values()), axis=0))  # damage: one rank twice at a time
        shares = {style: np.clip(share / crowded, 0.0, 1.0) for style, share in shares.items()}
    return Columns(edges + scale.start, shares)


def _elapsed(since: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """The sum over ``since`` of the time that has passed since each, at each moment."""
    since = np.sort(since)
    before = np.concatenate([[0.0], np.cumsum(since)])
    begun = np.searchsorted(since, moments, side="right")
    return np.asarray(begun * moments - before[begun])


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


def draw_ranks(
    machines: Sequence[Machine], scale: TimeScale, *, columns: int, pointable: int, name: str, title: str
) -> Markup:
    """The picture, with so many columns per lane and events to point at; ``name`` makes its ids its own."""
    rows, height = _place(machines)
    drawn = [
        *(band(row.y, row.height) for row in rows if not row.heading),
        time_axis(scale, height),
        *(_draw_row(row, f"{name}-{i}", scale, columns, len(machines)) for i, row in enumerate(rows)),
        _draw_pointable(rows, scale, pointable),
    ]
    names = [_draw_name(row, rows) for row in rows if not row.heading]
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
    small = row.height < SMALL
    text = "NPU worker" if row.lane is None else row.lane.title
    if row.lane is not None and rows[0].lane is not None and rows[0].machine is not rows[-1].machine:
        most = int(NAMES_PX / (CHARACTER if small else CHARACTER + 1))
        text = f"{row.lane.ranks[0]} {row.machine.name}"
        text = text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return el("text", text, x=0, y=row.baseline, class_="lane small" if small else "lane")


# ------------------------------------------------------------------------------------------------- what is drawn


def _draw_row(row: _Row, name: str, scale: TimeScale, most: int, machines: int) -> Markup:
    if row.heading:
        text = f"{row.machine.host}: {plural(sum(len(lane.ranks) for lane in row.machine.lanes), 'rank')}"
        return fitted_text(text, 0, row.y + 16, 100, class_="t-host", anchor="start", cut=True)
    lane = row.lane
    if lane is None:
        return _draw_rounds(row, scale, max(12, ROUNDS // machines))
    columns, mean = columns_of(lane, scale, most), " in all" if len(lane.ranks) > 1 else ""
    tip = el("title", f"{lane.title.capitalize()} on {lane.host}: {_times_in_words(lane.times)}{mean}")
    if not columns.shares:
        words = fitted_text("nothing recorded", 50, row.baseline, 100, class_="t-muted") if row.height >= SMALL else ""
        return el("g", tip, band(row.y, row.height), words, class_="m")
    drawn = [tip]
    for style, outline in outlines_of(columns, scale).items():
        path = el("path", d=outline, transform=f"scale({1 / UNITS:g} {1 / LEVELS:g})")
        clip, place = f"{name}-{style}", {"x": 0, "y": row.y, "width": "100%", "height": row.height}
        drawn.append(el("clipPath", path, id=clip, clipPathUnits="objectBoundingBox"))
        drawn.append(el("rect", **place, class_=f"r-{style}", clip_path=f"url(#{clip})"))
    return el("g", *drawn, class_="m")


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
    found = [
        (event, row, row.lane.title.capitalize())
        for row in rows
        if row.lane is not None and len(row.lane.ranks) == 1
        for event in row.lane.events
        if event.duration >= shortest and scale.shows(event.t0, event.t1)
    ]
    parts = []
    for event, row, rank in sorted(found, key=lambda one: -one[0].duration)[:most]:
        x, width = extent(event.t0, event.t1, scale)
        rect = stretch(x, row.y, width, row.height, None)
        # Waiting is most of many pictures, and its pattern says so: words would only hide the rest.
        named = EMPTY if event.kind == "wait" else name_of(event)
        words = _draw_words(named, row, x, width, f"r-t-{style_of(event)}")
        parts.append(el("g", el("title", f"{rank}: {tip_of(event)}"), rect, words, class_="m point"))
    return join(parts)
