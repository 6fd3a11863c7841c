"""The pieces of a page: sections, notes, figures, legends, tabs with their panels, time lines that can be zoomed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hybrid.charts.markup import EMPTY, Markup, el, join, percent


def section(title: str, *parts: Markup, id: str, lead: str = "", long: bool = False) -> Markup:
    """A box with its title; a ``long`` one may be broken over pages of paper."""
    head = [el("h2", title), el("p", lead, class_="lead") if lead else EMPTY]
    return el("section", *head, *parts, id=id, class_="long" if long else None)


def muted(text: str) -> Markup:
    return el("p", text, class_="muted")


def folded(title: str, body: Markup) -> Markup:
    """Closed until the reader opens it."""
    return el("details", el("summary", title), body)


def figures(named: Iterable[tuple[str, object]]) -> Markup:
    """(name, figure) side by side."""
    return el("ul", *(el("li", el("b", value), el("span", name)) for name, value in named), class_="flow")


def legend(items: Sequence[Markup], style: str = "legend") -> Markup:
    return el("ul", *items, class_=style) if items else EMPTY


def legend_item(style: str, text: str) -> Markup:
    """What a fill means."""
    rect = el("rect", x=0.5, y=0.5, width=17, height=12, rx=2, class_=style)
    return el("li", el("svg", rect, width=18, height=13, aria_hidden="true"), text)


def meter(part: float, style: str, height: int = 12) -> Markup:
    """A bar of ``part`` per cent of its cell."""
    bar = el("rect", width=percent(part), height=height, rx=2, class_=style)
    return el("svg", bar, width="100%", height=height, aria_hidden="true")


def meters(caption: str, rows: Iterable[tuple[str, Markup, str]]) -> Markup:
    """(name, meter, figure) below each other."""
    drawn = [
        el("tr", el("th", name, scope="row"), el("td", bar, class_="fill"), el("td", value))
        for name, bar, value in rows
    ]
    return el("table", el("caption", caption, class_="sr"), *drawn, class_="versus")


def zoomable(name: str, title: str, drawing: Markup, about: str) -> Markup:
    """A time line under its title, with buttons that widen it."""
    buttons = [
        el("button", f"{factor}\N{MULTIPLICATION SIGN}", type="button", data_zoom=factor,
           aria_pressed="true" if factor == 1 else "false")
        for factor in (1, 4, 16, 64)
    ]  # fmt: skip
    label = f"Zoom: {title}"
    zoom = el("div", "Zoom", *buttons, class_="zoom", role="group", aria_label=label, data_for=f"{name}-view")
    heading = el("h3", title, " ", el("span", about, class_="muted"))
    return join([el("div", heading, zoom, class_="row"), el("div", drawing, id=f"{name}-view")])


@dataclass(frozen=True)
class Panel:
    """What is shown of one source, and what stands behind its name on the tab."""

    source: str
    body: Sequence[Markup]
    note: Markup = EMPTY


def draw_panels(panels: Sequence[Panel], opened: int, note: Markup = EMPTY, prefix: str = "") -> list[Markup]:
    """Buttons to choose a source, if there are several, the ``note``, and the panels, of which the script shows one.

    ``prefix`` makes the ids of this group its own.
    """
    tabbed = len(panels) > 1
    tabs, bodies = [], []
    for i, one in enumerate(panels):
        tab, panel, on = f"{prefix}tab-{i}", f"{prefix}source-{i}", i == opened
        tabs.append(
            el("a", one.source, one.note, href=f"#{panel}", id=tab, role="tab", aria_controls=panel,
               aria_selected="true" if on else "false", data_source=one.source)
        )  # fmt: skip
        bodies.append(
            el("div", *one.body, class_="panel on" if on else "panel", id=panel, role="tabpanel" if tabbed else None,
               aria_labelledby=tab if tabbed else None, data_source=one.source)
        )  # fmt: skip
    buttons = el("div", *tabs, class_="tabs", role="tablist", aria_label="Source") if tabbed else EMPTY
    return [buttons, note, *bodies]
