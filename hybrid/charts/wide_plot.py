"""A picture as wide as the page, with a column of names at its left; it scrolls sideways when the reader zooms in.

Horizontal places are per cent and vertical ones pixels, so that the picture follows the page's width, and a zoom only
has to widen it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hybrid.charts.markup import EMPTY, Markup, el, join, percent
from hybrid.charts.scale import LogScale, TimeScale
from hybrid.charts.units import compact, tick

NAMES_PX = 96
_TICK_AT = 88  # right end of a tick's label in the column of names


def wide_plot(
    name: str, title: str, body: Iterable[Markup], names: Iterable[Markup], height: float, *, about: str = "",
    scale: TimeScale | None = None, style: str = "plot",
) -> Markup:  # fmt: skip
    """``body`` beside ``names``; ``name`` makes the ids of title and description (``about``) its own.

    With a ``scale`` the picture is over time and can be zoomed.
    """
    said = [el("title", title, id=f"{name}-t"), el("desc", about, id=f"{name}-d") if about else EMPTY]
    ids, span = f"{name}-t {name}-d" if about else f"{name}-t", scale and f"{scale.span:.9g}"
    look: dict[str, object] = {"class_": style, "height": height, "width": "100%", "role": "img"}
    drawing = el("svg", *said, *body, **look, aria_labelledby=ids, data_span=span)
    column = el("svg", *names, class_="names", width=NAMES_PX, height=height, aria_hidden="true")
    return el("div", column, el("div", drawing, class_="scroll", tabindex=scale and "0"), class_="timeline")


def stretch(x: float, y: float, width: float, height: float, style: str | None) -> Markup:
    """A rectangle from ``x`` on, ``width`` per cent wide."""
    return el("rect", x=percent(x), y=y, width=percent(width), height=height, class_=style)


def band(y: float, height: float) -> Markup:
    """The ground of a row."""
    return el("rect", x=0, y=y, width="100%", height=height, class_="band")


def time_axis(scale: TimeScale, height: float) -> Markup:
    """Ticks with their times at the top, and lines down from them."""
    parts = []
    for value in scale.ticks():
        x = 100 * value / scale.span
        parts.append(el("line", x1=percent(x), x2=percent(x), y1=18, y2=height, class_="grid"))
        anchor = "start" if x < 2 else "end" if x > 97 else None
        parts.append(el("text", tick(value), x=percent(x), y=12, class_="tick", text_anchor=anchor))
    return el("g", *parts, class_="axis")


def count_axis(scale: LogScale, floor: float, wanted: int = 5) -> tuple[Markup, Markup]:
    """Lines across for the ticks of counts above ``floor``, and their labels for the column of names."""
    ticks = [(compact(value), round(floor - scale.of(value), 1)) for value in scale.ticks(wanted)]
    return join(across(y, "grid") for _, y in ticks), join(tick_name(text, y + 4) for text, y in ticks)


def across(y: float, style: str) -> Markup:
    """A line from the left edge to the right."""
    return el("line", x1=0, x2="100%", y1=y, y2=y, class_=style)


def tick_name(text: str, y: float) -> Markup:
    """A label in the column of names."""
    return el("text", text, x=_TICK_AT, y=y, class_="tick", text_anchor="end")
