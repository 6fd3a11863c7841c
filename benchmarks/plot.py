"""Pictures as self-contained SVG, by hand: horizontal bars and lines, on logarithmic or linear axes.

Invariant: bars carry their values, lines their names and a mark of their own, so nothing depends on colour alone;
nothing is loaded from anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hybrid.charts.markup import Markup, el, join
from hybrid.charts.units import compact

WIDTH = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 190, 64, 46
_LETTER = 7.6  # width of a letter in a bar's name, about
_BAR, _GAP = 22, 10
_PLOT_HEIGHT = 380
_NAME_GAP = 17
_LINEAR_SPAN = 20  # a bar this much shorter than the longest is still to be seen
# Okabe-Ito: told apart with any colour vision; marks differ as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a64d79", "#8a6d00", "#56b4e9", "#555555", "#e69f00")
_MARKS = ("circle", "square", "diamond", "triangle")
_STYLE = """
svg { background: #fff; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
text { fill: #18202c; } .title { font-size: 17px; font-weight: 600; } .sub, .tick { fill: #586374; font-size: 12px; }
.grid { stroke: #d9dee6; stroke-width: 1; } .axis { stroke: #586374; stroke-width: 1; }
.end { text-anchor: end; } .mid { text-anchor: middle; } .ours { font-weight: 600; }
"""


@dataclass(frozen=True)
class Chart:
    """A finished drawing, as wide as all others."""

    height: int
    body: Markup


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length in the axis' unit, and what stands behind it."""

    name: str
    value: float
    label: str
    ours: bool = False


@dataclass(frozen=True)
class Series:
    """One line: its name and its points, in ascending x."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """How values become positions: ``logarithmic`` or linear, and how ticks are written."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...] = field(default=())

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def log_axis(values: Sequence[float]) -> Axis:
    """From a round number below the least value to one above the largest; a tick at each 1, 2 and 5."""
    positive = [value for value in values if value > 0] or [1.0]
    marks = [mark * 10.0**power for power in range(-10, 16) for mark in (1, 2, 5)]
    low = max(mark for mark in marks if mark <= min(positive) * 0.9)
    high = min(mark for mark in marks if mark >= max(positive) * 1.01)
    inside = [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]
    decades = [mark for mark in inside if math.isclose(math.log10(mark), round(math.log10(mark)), abs_tol=1e-9)]
    return Axis(low, high, True, tuple(inside if len(inside) <= 8 else decades))


def linear_axis(values: Sequence[float]) -> Axis:
    """From zero to a round number above the largest value."""
    top = max([*values, 1e-12])
    power = 10.0 ** math.floor(math.log10(top / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if top / (factor * power) <= 6)
    last = math.ceil(top / step)
    return Axis(0.0, last * step, False, tuple(i * step for i in range(last + 1)))


def draw_bars(title: str, subtitle: str, bars: Sequence[Bar], *, unit: str = "s") -> Chart:
    """Horizontal bars from zero; where the values differ by orders of magnitude, on a logarithmic axis that says so."""
    height = _TOP + max(1, len(bars)) * (_BAR + _GAP) + _BOTTOM
    values = [bar.value for bar in bars]
    logarithmic = bool(values) and max(values) > _LINEAR_SPAN * min(values)
    parts = [*_headings(title, subtitle + ("; logarithmic axis" if logarithmic else ""))]
    if not bars:
        return Chart(height, join([*parts, el("text", "nothing to show", x=_LEFT, y=_TOP + 16, class_="sub")]))
    axis = log_axis(values) if logarithmic else linear_axis(values)
    left = max(_LEFT, 34 + _LETTER * max(len(bar.name) for bar in bars))
    inner, bottom = WIDTH - left - _RIGHT, height - _BOTTOM
    for tick in axis.ticks:
        x = left + inner * axis.share(tick)
        parts.append(el("line", x1=x, x2=x, y1=_TOP - 6, y2=bottom, class_="grid"))
        parts.append(el("text", tick_text(tick, unit), x=x, y=bottom + 18, class_="tick mid"))
    for i, bar in enumerate(bars):
        y = _TOP + i * (_BAR + _GAP)
        width = max(2.0, inner * axis.share(bar.value)) if bar.value > 0 else 2.0
        weight = "end ours" if bar.ours else "end"
        parts.append(el("text", bar.name, x=left - 10, y=y + 16, class_=weight))
        parts.append(el("rect", x=left, y=y, width=width, height=_BAR, fill=_COLOURS[0 if bar.ours else 6], rx=2))
        parts.append(el("text", bar.label, x=left + width + 8, y=y + 16))
    parts.append(el("line", x1=left, x2=left, y1=_TOP - 6, y2=bottom, class_="axis"))
    return Chart(height, join(parts))


def draw_lines(
    title: str,
    subtitle: str,
    series: Sequence[Series],
    *,
    x_label: str,
    x_logarithmic: bool = False,
    y_logarithmic: bool = True,
    unit: str = "s",
    moments: Sequence[tuple[float, str]] = (),
) -> Chart:
    """Lines with a mark at every point, named at their right end; ``moments`` are x and a letter for what happened."""
    height = _TOP + _PLOT_HEIGHT + _BOTTOM + 14
    shown = [line for line in series if line.points]
    parts = [*_headings(title, subtitle)]
    if not shown:
        return Chart(height, join([*parts, el("text", "nothing to show", x=_LEFT, y=_TOP + 16, class_="sub")]))
    across = sorted({x for line in shown for x, _ in line.points})
    values = [y for line in shown for _, y in line.points if y > 0 or not y_logarithmic]
    y_axis = log_axis(values) if y_logarithmic else linear_axis(values)
    if x_logarithmic and across[0] > 0:
        x_axis = Axis(across[0], across[-1] if len(across) > 1 else across[0] * 2, True, tuple(across))
    else:
        x_axis = Axis(across[0], across[-1] if len(across) > 1 else across[0] + 1, False, tuple(_thinned(across)))
    left, inner, bottom = _LEFT, WIDTH - _LEFT - 220, _TOP + _PLOT_HEIGHT
    for tick in y_axis.ticks:
        y = bottom - _PLOT_HEIGHT * y_axis.share(tick)
        parts.append(el("line", x1=left, x2=left + inner, y1=y, y2=y, class_="grid"))
        parts.append(el("text", tick_text(tick, unit), x=left - 8, y=y + 4, class_="tick end"))
    for tick in x_axis.ticks:
        x = left + inner * x_axis.share(tick)
        parts.append(el("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(el("text", compact(tick), x=x, y=bottom + 19, class_="tick mid"))
    parts.append(el("line", x1=left, x2=left + inner, y1=bottom, y2=bottom, class_="axis"))
    parts.append(el("text", x_label, x=left + inner / 2, y=bottom + 40, class_="sub mid"))
    for moment, letter in moments:
        x = left + inner * min(1.0, max(0.0, x_axis.share(moment)))
        parts.append(el("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="axis", stroke_dasharray="2 4"))
        parts.append(el("text", letter, x=x, y=_TOP - 4, class_="tick mid"))
    ends = []
    for i, line in enumerate(shown):
        spots = [
            (left + inner * x_axis.share(x), bottom - _PLOT_HEIGHT * y_axis.share(y))
            for x, y in line.points
            if y > 0 or not y_logarithmic
        ]
        parts.append(_line(spots, i))
        if spots:
            ends.append((spots[-1][1], i, line.name))
    parts += _names(ends, left + inner + 18, bottom)
    return Chart(height, join(parts))


def write_plot(charts: Sequence[Chart], *, html: bool) -> str:
    """All charts below each other, as one SVG or one page."""
    y, groups = 0, []
    for chart in charts:
        groups.append(el("g", chart.body, transform=f"translate(0,{y})"))
        y += chart.height
    height = max(y, 40)
    drawing = el(
        "svg", el("style", Markup(_STYLE)), el("rect", width=WIDTH, height=height, fill="#fff"), *groups,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}", width=WIDTH, height=height,
    )  # fmt: skip
    if not html:
        return f"{drawing}\n"
    head = el("head", el("meta", charset="utf-8"), el("title", "Tandem benchmark"))
    return f"<!doctype html>\n{el('html', head, el('body', drawing), lang='en')}\n"


def tick_text(value: float, unit: str) -> str:
    """A value as an axis label."""
    if unit != "s":
        return f"{value:,.0f}{unit}" if value >= 10 else f"{value:g}{unit}"
    if value >= 1:
        return f"{value:g} s"
    return f"{value * 1e3:g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"


def _headings(title: str, subtitle: str) -> list[Markup]:
    return [el("text", title, x=24, y=28, class_="title"), el("text", subtitle, x=24, y=47, class_="sub")]


def _thinned(values: list[float]) -> list[float]:
    every = max(1, math.ceil(len(values) / 16))
    return values[::every]


def _line(spots: list[tuple[float, float]], index: int) -> Markup:
    colour = _COLOURS[index % len(_COLOURS)]
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    marks = [_mark(x, y, index, colour) for x, y in spots] if len(spots) <= 64 else []
    dash = "6 4" if index >= len(_COLOURS) else None
    return el("g", el("path", d=path, fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash), *marks)


def _mark(x: float, y: float, index: int, colour: str) -> Markup:
    kind = _MARKS[index % len(_MARKS)]
    if kind == "circle":
        return el("circle", cx=x, cy=y, r=4, fill=colour)
    if kind == "square":
        return el("rect", x=x - 3.5, y=y - 3.5, width=7, height=7, fill=colour)
    corners = [(0, -5), (5, 0), (0, 5), (-5, 0)] if kind == "diamond" else [(0, -5), (5, 4), (-5, 4)]
    return el("polygon", points=" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners), fill=colour)


def _names(ends: list[tuple[float, int, str]], x: float, bottom: float) -> list[Markup]:
    """The lines' names at their ends, pushed apart where they would touch, none below ``bottom``."""
    ordered = sorted(ends)
    places = spread([wanted for wanted, _, _ in ordered], _NAME_GAP, bottom)
    parts = []
    for y, (_, index, name) in zip(places, ordered, strict=True):
        parts.append(_mark(x, y, index, _COLOURS[index % len(_COLOURS)]))
        parts.append(el("text", name, x=x + 12, y=y + 4))
    return parts


def spread(wanted: Sequence[float], gap: float, last: float) -> list[float]:
    """Ascending places at least ``gap`` apart, near the wanted ones, the last no further than ``last``."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + gap) if places else place)
    limit = last
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], limit)
        limit = places[i] - gap
    return places
