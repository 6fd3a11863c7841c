"""Pictures as self-contained SVG: horizontal bars and lines, on logarithmic or linear axes.

Invariant: bars carry their values, lines their names and a mark of their own, so nothing depends on colour alone;
nothing is loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybrid.charts.axes import Frame, axis, line, marker, path
from hybrid.charts.markup import Markup, el, join
from hybrid.charts.units import compact, tick

WIDTH = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 190, 64, 46
_LETTER = 7.6  # width of a letter in a bar's name, about
_BAR, _GAP = 22, 10
_PLOT_HEIGHT = 380
_NAME_GAP = 17
_MOST_TICKS = 16  # more x values than that get round ticks instead of one each
_LINEAR_SPAN = 20  # a bar this much shorter than the longest is still to be seen
# Okabe-Ito: distinct for any colour vision; marks differ as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a64d79", "#8a6d00", "#56b4e9", "#555555", "#e69f00")
_STYLE = """
svg { background: #fff; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
text { fill: #18202c; } .title { font-size: 17px; font-weight: 600; } .sub, .tick { fill: #586374; font-size: 12px; }
.grid { stroke: #d9dee6; stroke-width: 1; } .base, .moment { stroke: #586374; stroke-width: 1; }
.tick { text-anchor: middle; } text[text-anchor=end] { text-anchor: end; } .ours { font-weight: 600; }
.moment { stroke-dasharray: 2 4; }
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


def draw_bars(title: str, subtitle: str, bars: Sequence[Bar], *, unit: str = "s") -> Chart:
    """Horizontal bars from zero; where the values differ by orders of magnitude, on a logarithmic axis that says so."""
    height = _TOP + max(1, len(bars)) * (_BAR + _GAP) + _BOTTOM
    values = [bar.value for bar in bars]
    logarithmic = bool(values) and max(values) > _LINEAR_SPAN * min(values)
    parts = [*_headings(title, subtitle + ("; logarithmic axis" if logarithmic else ""))]
    if not bars:
        return Chart(height, join([*parts, el("text", "nothing to show", x=_LEFT, y=_TOP + 16, class_="sub")]))
    left = max(_LEFT, 34 + _LETTER * max(len(bar.name) for bar in bars))
    inner, bottom = WIDTH - left - _RIGHT, height - _BOTTOM
    along = axis(values, "", _tick_text(unit), log=logarithmic, from_zero=True, rounded=True)
    for value in along.ticks():
        x = left + inner * along.at(value)
        parts.append(line(x, _TOP - 6, x, bottom, "grid"))
        parts.append(el("text", along.text(value), x=x, y=bottom + 18, class_="tick"))
    for i, bar in enumerate(bars):
        y = _TOP + i * (_BAR + _GAP)
        width = max(2.0, inner * along.at(bar.value)) if bar.value > 0 else 2.0
        weight = "ours" if bar.ours else None
        parts.append(el("text", bar.name, x=left - 10, y=y + 16, text_anchor="end", class_=weight))
        parts.append(el("rect", x=left, y=y, width=width, height=_BAR, fill=_COLOURS[0 if bar.ours else 6], rx=2))
        parts.append(el("text", bar.label, x=left + width + 8, y=y + 16))
    parts.append(line(left, _TOP - 6, left, bottom, "base"))
    return Chart(height, join(parts))


def draw_lines(
    title: str, subtitle: str, series: Sequence[Series], *, x_label: str, x_logarithmic: bool = False,
    y_logarithmic: bool = True, unit: str = "s", moments: Sequence[tuple[float, str]] = (),
) -> Chart:  # fmt: skip
    """Lines with a mark at every point, named at their right end; ``moments`` are x and a letter for what happened."""
    height = _TOP + _PLOT_HEIGHT + _BOTTOM + 14
    shown = [Series(one.name, [(x, y) for x, y in one.points if y > 0 or not y_logarithmic]) for one in series]
    shown = [one for one in shown if one.points]
    parts = [*_headings(title, subtitle)]
    if not shown:
        return Chart(height, join([*parts, el("text", "nothing to show", x=_LEFT, y=_TOP + 16, class_="sub")]))
    across = sorted({x for one in shown for x, _ in one.points})
    values = [y for one in shown for _, y in one.points]
    x_axis = axis(across, x_label, compact, log=x_logarithmic and across[0] > 0)
    y_axis = axis(values, "", _tick_text(unit), log=y_logarithmic, from_zero=True, rounded=True)
    frame = Frame(_LEFT, _TOP, WIDTH - 220, _TOP + _PLOT_HEIGHT, x_axis, y_axis)
    parts.append(frame.draw(across if len(across) <= _MOST_TICKS else None))
    for moment, letter in moments:
        x = min(frame.right, max(frame.left, frame.across(moment)))
        parts.append(line(x, _TOP, x, frame.bottom, "moment"))
        parts.append(el("text", letter, x=x, y=_TOP - 4, class_="tick"))
    ends = []
    for i, one in enumerate(shown):
        places = [(frame.across(x), frame.up(y)) for x, y in one.points]
        parts.append(_draw_line(places, i))
        ends.append((places[-1][1], i, one.name))
    parts += _names(ends, frame.right + 18, frame.bottom)
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


def _tick_text(unit: str) -> Callable[[float], str]:
    """How a value of this unit is written at an axis."""
    return tick if unit == "s" else lambda value: f"{value:,.0f}{unit}" if value >= 10 else f"{value:g}{unit}"


def _headings(title: str, subtitle: str) -> list[Markup]:
    return [el("text", title, x=24, y=28, class_="title"), el("text", subtitle, x=24, y=47, class_="sub")]


def _draw_line(places: list[tuple[float, float]], index: int) -> Markup:
    colour = _COLOURS[index % len(_COLOURS)]
    marks = [marker(index, x, y, fill=colour) for x, y in places] if len(places) <= 64 else []
    dash = "6 4" if index >= len(_COLOURS) else None
    through = el("path", d=path(places), fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash)
    return el("g", through, *marks)


def _names(ends: list[tuple[float, int, str]], x: float, bottom: float) -> list[Markup]:
    """The lines' names at their ends, pushed apart where they would touch, none below ``bottom``."""
    ordered = sorted(ends)
    places = spread([wanted for wanted, _, _ in ordered], _NAME_GAP, bottom)
    parts = []
    for y, (_, index, name) in zip(places, ordered, strict=True):
        parts.append(marker(index, x, y, fill=_COLOURS[index % len(_COLOURS)]))
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
