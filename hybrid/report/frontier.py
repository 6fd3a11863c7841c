"""Frontier and direction per step of one source, as a bar chart.

Invariant: direction is shown by fill pattern and by a written word or sign, never by colour alone; more steps than bars
are binned, every step is in exactly one bar, and the chart says how many are in one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.charts.lettering import CHARACTER, NARROW_PAGE, fitted_text
from hybrid.charts.markup import Markup, el, percent
from hybrid.charts.scale import LogScale
from hybrid.charts.units import compact, count, number, plural, seconds
from hybrid.charts.wide_plot import across, count_axis, stretch, tick_name, wide_plot
from hybrid.report.blocks import DIRECTIONS
from hybrid.report.facts import Event, SourceRun

FRONTIER_HEIGHT = 150
EDGES_HEIGHT = 64
TOP = 36
FLAG = 18  # where the flags of merges begin, above the tallest bar
WORD_SLOT = 5.5  # per cent of the width from which a bar has room for the word of its direction
SIGNS = {"push": "\N{DOWNWARDS ARROW}", "pull": "\N{UPWARDS ARROW}", "async": "~", "mixed": "\N{PLUS-MINUS SIGN}"}
SIGN_WORDS = {"push": "push, top-down", "pull": "pull, bottom-up", "async": "asynchronous", "mixed": "both directions"}


@dataclass(frozen=True)
class Bar:
    """One step or several neighbouring ones: means per step, the largest frontier, what the NPU gave just before."""

    first: int
    last: int
    levels: tuple[str, str]
    direction: str
    frontier: float
    frontier_most: int
    edges: float
    reached: int | None
    duration: float
    merges: int
    adopted: int

    @property
    def steps(self) -> int:
        return self.last - self.first + 1

    @property
    def place(self) -> str:
        if self.steps == 1:
            return self.levels[0] or str(self.first)
        low, high = (level or str(step) for level, step in zip(self.levels, (self.first, self.last), strict=True))
        return f"{low}\N{EN DASH}{high}" if low != high else low


def bars_of(run: SourceRun, most: int) -> list[Bar]:
    """The steps of a source as at most ``most`` bars of equally many steps."""
    steps = run.steps
    size = max(1, -(-len(steps) // most))
    merged = _merges_before_steps(steps, run.merges)
    return [_bar(steps[i : i + size], i + 1, merged[i : i + size]) for i in range(0, len(steps), size)]


def _merges_before_steps(steps: Sequence[Event], merges: Sequence[Event]) -> list[tuple[int, int]]:
    """For each step (merges, values adopted) since the step before it; merges after the last step count there."""
    counts = [(0, 0)] * len(steps)
    position = 0
    for merge in merges:
        while position < len(steps) - 1 and steps[position].t0 < merge.t0:
            position += 1
        if steps:
            rounds, adopted = counts[position]
            counts[position] = (rounds + 1, adopted + merge.count("adopted"))
    return counts


def _bar(steps: Sequence[Event], first: int, merged: Sequence[tuple[int, int]]) -> Bar:
    directions = Counter(step.text("direction") or "?" for step in steps)
    reached = number(steps[-1].facts.get("reached"))
    return Bar(
        first=first,
        last=first + len(steps) - 1,
        levels=(_level(steps[0]), _level(steps[-1])),
        direction=directions.most_common(1)[0][0] if len(directions) == 1 else "mixed",
        frontier=sum(step.count("frontier") for step in steps) / len(steps),
        frontier_most=max(step.count("frontier") for step in steps),
        edges=sum(step.count("edges") for step in steps) / len(steps),
        reached=None if reached is None else int(reached),
        duration=sum(step.duration for step in steps),
        merges=sum(rounds for rounds, _ in merged),
        adopted=sum(adopted for _, adopted in merged),
    )


def _level(step: Event) -> str:
    """The step's level; empty when it has none, as in the asynchronous engine (none, or -1)."""
    return "" if step.text("level").startswith("-") else step.text("level")


def draw_frontier(run: SourceRun, bars: Sequence[Bar], name: str) -> Markup:
    """Frontier size (tall) and edges looked at (small) per step, both on logarithmic scales."""
    frontier = LogScale(max(bar.frontier_most for bar in bars), FRONTIER_HEIGHT)
    edges = LogScale(max(bar.edges for bar in bars), EDGES_HEIGHT)
    floor = TOP + FRONTIER_HEIGHT
    edges_floor = floor + 42 + 18 + EDGES_HEIGHT
    slot = slot_of(bars)
    axes = [count_axis(frontier, floor), count_axis(edges, edges_floor, wanted=2)]
    columns = [
        _draw_bar(bar, place, i * slot, slot, (frontier, floor), (edges, edges_floor))
        for i, (bar, place) in enumerate(zip(bars, _places(bars, slot), strict=True))
    ]
    captions = [
        el("text", text, x=2, y=y, class_="caption")
        for text, y in (("edges looked at", floor + 56), ("frontier vertices", 11))
    ]
    drawn = [*(grid for grid, _ in axes), *captions, *columns, across(floor, "base"), across(edges_floor, "base")]
    below = [tick_name("direction", floor + 16), tick_name("level" if bars[0].levels[0] else "step", floor + 32)]
    names = [*(labels for _, labels in axes), *below]
    title = f"Frontier and direction per step, source {run.source}"
    return wide_plot(name, title, drawn, names, edges_floor + 6, about=describe_bars(bars))


def slot_of(bars: Sequence[Bar]) -> float:
    """Width of one bar's place in per cent; a traversal of two steps need not have bars as wide as the page."""
    return 100 / max(len(bars), 6)


def _places(bars: Sequence[Bar], slot: float) -> list[str]:
    """The level or step under each bar; where they would collide only every so many bars have one."""
    longest = max(len(bar.place) for bar in bars) * CHARACTER + 8
    room = slot / 100 * NARROW_PAGE
    if longest <= room:
        return [bar.place for bar in bars]
    starts = [bar.levels[0] or str(bar.first) for bar in bars]
    every = math.ceil((max(map(len, starts)) * CHARACTER + 16) / room)
    return [start if i % every == 0 else "" for i, start in enumerate(starts)]


def sign_key(bars: Sequence[Bar]) -> str:
    """What the signs under narrow bars mean; empty when the bars carry words."""
    if slot_of(bars) >= WORD_SLOT:
        return ""
    used = {bar.direction for bar in bars}
    return ", ".join(f"{SIGNS[name]} {SIGN_WORDS[name]}" for name in SIGNS if name in used)


def _draw_bar(
    bar: Bar, place: str, x: float, slot: float, frontier: tuple[LogScale, float], edges: tuple[LogScale, float]
) -> Markup:
    style = f"k-{bar.direction}" if bar.direction in (*DIRECTIONS, "mixed") else "k-cpu"
    width, middle = slot * 0.76, x + slot / 2
    left = middle - width / 2
    scale, floor = frontier
    height, most = scale.of(bar.frontier), scale.of(bar.frontier_most)
    parts, x_at = [el("title", tip_of_bar(bar)), stretch(left, floor - height, width, height, style)], percent(middle)
    if most - height > 1.5:
        parts.append(el("line", x1=x_at, x2=x_at, y1=floor - height, y2=floor - most, class_="whisker"))
    if slot >= 3.8:
        parts.append(fitted_text(compact(bar.frontier), middle, floor - max(height, most) - 5, slot, class_="t-value"))
    word = bar.direction if slot >= WORD_SLOT else SIGNS.get(bar.direction, "?")
    parts.append(el("text", word, x=x_at, y=floor + 16, class_="t-value"))
    if place:
        parts.append(el("text", place, x=x_at, y=floor + 32, class_="tick"))
    scale, floor = edges
    height = scale.of(bar.edges)
    if height:
        parts.append(stretch(left, floor - height, width, height, "k-edges"))
    if bar.merges:  # a flag at the left edge: here the NPU's values came in
        outline = f"M-1 0h10l-3 4 3 4h-8v{frontier[1] - FLAG - 8}h-2z"
        flag = el("path", d=outline, class_="gift" if bar.adopted else "gift none")
        parts.append(el("svg", flag, x=percent(x), y=FLAG, class_="at"))
    return el("g", *parts, class_="m")


def tip_of_bar(bar: Bar) -> str:
    what = f"Step {bar.first}" if bar.steps == 1 else f"Steps {bar.first:,} to {bar.last:,} (means per step)"
    level = f", level {bar.place}" if bar.levels[0] else ""
    most = f", at most {count(bar.frontier_most)}" if bar.steps > 1 else ""
    npu = f". {plural(bar.merges, 'NPU merge')} here, {plural(bar.adopted, 'value')} adopted" if bar.merges else ""
    looked = f"edges looked at {compact(bar.edges)}. {seconds(bar.duration)}"
    return f"{what}{level}: {bar.direction}. frontier {compact(bar.frontier)}{most}. {looked}{npu}"


def describe_bars(bars: Sequence[Bar]) -> str:
    tally = Counter(bar.direction for bar in bars for _ in range(bar.steps))
    parts = ", ".join(f"{amount:,} {direction}" for direction, amount in tally.most_common())
    most = max(bars, key=lambda bar: bar.frontier_most)
    largest = f"Largest frontier {count(most.frontier_most)}, at level or step {most.place}."
    return f"{plural(bars[-1].last, 'step')}: {parts}. {largest}"
