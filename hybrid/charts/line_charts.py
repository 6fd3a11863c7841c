"""Line charts with whiskers as inline SVG: series over a core's size, a delay, or another time.

Invariant: nothing depends on telling colours apart - series differ in marker and dash as well, and every point carries
its values as text; positions of points that lie outside a plot's range do not exist, for the range is made from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybrid.charts.markup import EMPTY, Markup, el, join
from hybrid.charts.scale import nice_step

WIDTH, HEIGHT = 560.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 14.0, 12.0, 44.0
_COLOURS = ("push", "npu-line", "merge", "pack", "async-line", "bad", "coord", "ink")
_LABEL_PX = 46.0  # an x label needs so much room
CSS = Markup(
    """
.plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 18px 26px; margin-top: 12px; }
@media (max-width: 860px) { .plots { grid-template-columns: 1fr; } }
.plots figure { margin: 0; }
.plots figcaption { font-weight: 600; font-size: 14px; margin-bottom: 4px; }
.plots figcaption span { font-weight: 400; color: var(--muted); display: block; font-size: 13px; }
.plots figure > svg.lines { width: 100%; height: auto; display: block; }
svg.lines .s { fill: none; stroke-width: 1.8; }
svg.lines .race { stroke-dasharray: 6 4; }
svg.lines .w { stroke-width: 1; opacity: .55; }
svg.lines .even { stroke: var(--muted); stroke-dasharray: 2 3; }
svg.lines .d { stroke: var(--card); stroke-width: 1; }
svg.lines .d.hollow { fill: var(--card); stroke-width: 1.6; }
.sim { display: inline-block; border: 1px solid var(--npu-line); border-radius: 6px; }
.sim { padding: 0 7px; font-size: 12.5px; }
"""
    + "".join(
        f".c{i} {{ stroke: var(--{name}); }} .f{i} {{ fill: var(--{name}); }} "
        f"svg.lines .d.hollow.c{i} {{ stroke: var(--{name}); }}\n"
        for i, name in enumerate(_COLOURS)
    )
)


@dataclass(frozen=True)
class Mark:
    """One point of a series; ``low`` and ``high`` are the spread of the repeats."""

    x: float
    y: float
    tip: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """A line: ``colour`` counts through the palette, ``dashed`` tells the mode."""

    name: str
    marks: tuple[Mark, ...]
    colour: int = 0
    dashed: bool = False
    line: bool = True


@dataclass(frozen=True)
class Axis:
    """From values to [0, 1]. A logarithmic one has a place of its own for zero, left of everything."""

    low: float
    high: float
    log: bool
    label: str
    tell: Callable[[float], str]
    zero: float | None = None  # what zero counts as

    def at(self, value: float) -> float:
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        place = self.zero if value <= 0 and self.zero is not None else value
        return math.log(place / self.low) / math.log(self.high / self.low)

    def ticks(self, wanted: int = 5) -> list[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            wide = self.high / self.low > 60
            found = [f * 10.0**d for d in range(first, last + 1) for f in ((1,) if wide else (1, 2, 5))]
        else:
            step = nice_step((self.high - self.low) / wanted)
            found = [i * step for i in range(math.floor(self.low / step), math.ceil(self.high / step) + 1)]
        return [value for value in found if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]


def axis(
    values: Sequence[float], label: str, tell: Callable[[float], str], *, log: bool = False, from_zero: bool = False
) -> Axis:
    """An axis that holds all ``values``."""
    usable = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(usable), max(usable)) if usable else (1.0, 2.0)
    zero = None
    if log:
        if any(value <= 0 for value in values):
            zero = low = low / 2
        low, high = low / 1.15, high * 1.15
    else:
        low = min(0.0, low) if from_zero else low
        room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        low, high = low if from_zero else low - room, high + room
    return Axis(low, high, log, label, tell, zero)


def draw(
    title: str, about: str, series: Sequence[Series], x: Axis, y: Axis, *,
    x_ticks: Sequence[float] | None = None, even: float | None = None, diagonal: bool = False,
) -> Markup:  # fmt: skip
    """One figure with its legend; ``even`` is a horizontal line, ``diagonal`` the line of equality."""
    if not any(one.marks for one in series):
        return EMPTY
    parts = [_frame(x, y, x_ticks)]
    if even is not None and 0 <= y.at(even) <= 1:
        parts.append(_line(_LEFT, _y(y, even), WIDTH - _RIGHT, _y(y, even), "even"))
    if diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        parts.append(_line(_x(x, low), _y(y, low), _x(x, high), _y(y, high), "even"))
    parts += [_draw_series(one, x, y) for one in series]
    drawing = el("svg", el("title", title), *parts, class_="lines", viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", role="img")
    legend = el("ul", *(el("li", _sample(one), one.name) for one in series if one.marks), class_="legend")
    return el("figure", el("figcaption", title, el("span", about)), drawing, legend)


def _x(x: Axis, value: float) -> float:
    return _LEFT + x.at(value) * (WIDTH - _LEFT - _RIGHT)


def _y(y: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - y.at(value) * (HEIGHT - _TOP - _BOTTOM)


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    return el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)


def _frame(x: Axis, y: Axis, x_ticks: Sequence[float] | None) -> Markup:
    parts = []
    for value in y.ticks():
        at = _y(y, value)
        parts.append(_line(_LEFT, at, WIDTH - _RIGHT, at, "grid"))
        parts.append(el("text", y.tell(value), x=_LEFT - 6, y=at + 4, text_anchor="end", class_="tick"))
    last = -math.inf
    for value in x.ticks() if x_ticks is None else x_ticks:
        at = _x(x, value)
        parts.append(_line(at, HEIGHT - _BOTTOM, at, HEIGHT - _BOTTOM + 4, "base"))
        if at - last >= _LABEL_PX:
            parts.append(el("text", x.tell(value), x=at, y=HEIGHT - _BOTTOM + 17, class_="tick"))
            last = at
    parts.append(_line(_LEFT, HEIGHT - _BOTTOM, WIDTH - _RIGHT, HEIGHT - _BOTTOM, "base"))
    parts.append(el("text", x.label, x=(_LEFT + WIDTH - _RIGHT) / 2, y=HEIGHT - 8, class_="tick"))
    middle = (HEIGHT - _BOTTOM + _TOP) / 2
    turned = f"rotate(-90 12 {middle:.0f})"
    parts.append(el("text", y.label, x=12.0, y=middle, transform=turned, class_="tick"))
    return join(parts)


def _draw_series(series: Series, x: Axis, y: Axis) -> Markup:
    parts = []
    marks = sorted(series.marks, key=lambda one: one.x)
    if series.line and len(marks) > 1:
        path = "M" + "L".join(f"{_x(x, one.x):.1f} {_y(y, one.y):.1f}" for one in marks)
        parts.append(el("path", d=path, class_=f"s c{_colour(series)}{' race' if series.dashed else ''}"))
    for one in marks:
        at = _x(x, one.x)
        if one.low is not None and one.high is not None:
            parts.append(_line(at, _y(y, one.low), at, _y(y, one.high), f"w c{_colour(series)}"))
        parts.append(el("g", el("title", f"{series.name}: {one.tip}"), _marker(series, at, _y(y, one.y)), class_="m"))
    return join(parts)


def _marker(series: Series, at: float, y: float) -> Markup:
    i = _colour(series)
    style = f"d hollow c{i}" if series.dashed else f"d f{i}"
    if i % 3 == 0:
        return el("circle", cx=at, cy=y, r=4, class_=style)
    if i % 3 == 1:
        return el("rect", x=at - 3.7, y=y - 3.7, width=7.4, height=7.4, class_=style)
    corners = f"{at:.1f},{y - 5:.1f} {at + 5:.1f},{y + 4:.1f} {at - 5:.1f},{y + 4:.1f}"
    return el("polygon", points=corners, class_=style)


def _sample(series: Series) -> Markup:
    stroke = _line(0, 7, 26, 7, f"s c{_colour(series)}{' race' if series.dashed else ''}") if series.line else EMPTY
    return el("svg", stroke, _marker(series, 13, 7), class_="lines", width=26, height=14, aria_hidden="true")


def _colour(series: Series) -> int:
    return series.colour % len(_COLOURS)
