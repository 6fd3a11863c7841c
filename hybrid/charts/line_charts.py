"""Line charts with whiskers as inline SVG: series over a core's size, a delay, or another time.

Invariant: nothing depends on colour - series differ in marker and dash as well, and every point carries
its values as text; the range of a plot is made from its points, so that none lies outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.charts.axes import Axis, Frame, line, marker, path
from hybrid.charts.markup import EMPTY, Markup, el, join

WIDTH, HEIGHT = 560.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 14.0, 12.0, 44.0
_COLOURS = 8  # .c0 to .c7 of the style sheet
CSS = Path(__file__).with_name("lines.css").read_text(encoding="utf-8")


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
    """A line: ``colour`` counts through the palette, ``dashed`` shows the mode."""

    name: str
    marks: tuple[Mark, ...]
    colour: int = 0
    dashed: bool = False
    line: bool = True


def draw(
    title: str, about: str, series: Sequence[Series], x: Axis, y: Axis, *,
    x_ticks: Sequence[float] | None = None, even: float | None = None, diagonal: bool = False,
) -> Markup:  # fmt: skip
    """One figure with its legend; ``even`` is a horizontal line, ``diagonal`` the line of equality."""
    if not any(one.marks for one in series):
        return EMPTY
    series = [replace(one, colour=one.colour % _COLOURS) for one in series]
    frame = Frame(_LEFT, _TOP, WIDTH - _RIGHT, HEIGHT - _BOTTOM, x, y)
    parts = [frame.draw(x_ticks)]
    if even is not None and 0 <= y.at(even) <= 1:
        parts.append(line(frame.left, frame.up(even), frame.right, frame.up(even), "even"))
    if diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        parts.append(line(frame.across(low), frame.up(low), frame.across(high), frame.up(high), "even"))
    parts += [_draw_series(one, frame) for one in series]
    drawing = el("svg", el("title", title), *parts, class_="lines", viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", role="img")
    legend = el("ul", *(el("li", _sample(one), one.name) for one in series if one.marks), class_="legend")
    return el("figure", el("figcaption", title, el("span", about)), drawing, legend)


def _draw_series(series: Series, frame: Frame) -> Markup:
    parts = []
    marks = sorted(series.marks, key=lambda one: one.x)
    if series.line and len(marks) > 1:
        through = path([(frame.across(one.x), frame.up(one.y)) for one in marks])
        parts.append(el("path", d=through, class_=_stroke(series)))
    for one in marks:
        at = frame.across(one.x)
        if one.low is not None and one.high is not None:
            parts.append(line(at, frame.up(one.low), at, frame.up(one.high), f"w c{series.colour}"))
        tip = el("title", f"{series.name}: {one.tip}")
        parts.append(el("g", tip, _marker(series, at, frame.up(one.y)), class_="m"))
    return join(parts)


def _marker(series: Series, x: float, y: float) -> Markup:
    i = series.colour
    return marker(i, x, y, class_=f"d hollow c{i}" if series.dashed else f"d f{i}")


def _sample(series: Series) -> Markup:
    stroke = line(0, 7, 26, 7, _stroke(series)) if series.line else EMPTY
    return el("svg", stroke, _marker(series, 13, 7), class_="lines", width=26, height=14, aria_hidden="true")


def _stroke(series: Series) -> str:
    return f"s c{series.colour}{' race' if series.dashed else ''}"
