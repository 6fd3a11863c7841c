"""The axes of charts in pixels: from values to places, round ticks, the frame around a plot, and the marks in it.

Invariant: an axis is made from the values that it shows, so that each of them has its place inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybrid.charts.markup import Markup, el, join
from hybrid.charts.scale import nice_step

_LABEL_PX = 46.0  # an x label needs so much room
_MOST_TICKS = 8  # on a logarithmic axis; beyond them only powers of ten


@dataclass(frozen=True)
class Axis:
    """From values to [0, 1]. A logarithmic one has a place of its own for zero, left of everything."""

    low: float
    high: float
    log: bool
    label: str
    text: Callable[[float], str]  # a tick's
    zero: float | None = None  # what zero counts as

    def at(self, value: float) -> float:
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        place = self.zero if value <= 0 and self.zero is not None else value
        return math.log(place / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        if not self.log:
            step = nice_step((self.high - self.low) / 5)
            first, last = math.floor(self.low / step), math.ceil(self.high / step)
            return self._inside([i * step for i in range(first, last + 1)])
        found = self._inside(_round_numbers(self.low, self.high))
        powers = self._inside(_round_numbers(self.low, self.high, (1,)))
        return powers if len(found) > _MOST_TICKS else found

    def _inside(self, values: Sequence[float]) -> list[float]:
        return [value for value in values if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]


def axis(
    values: Sequence[float], label: str, text: Callable[[float], str], *,
    log: bool = False, from_zero: bool = False, rounded: bool = False,
) -> Axis:  # fmt: skip
    """An axis that holds all ``values``; ``rounded``: it ends at round numbers (a linear one at its upper end)."""
    usable = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(usable), max(usable)) if usable else (1.0, 2.0)
    zero = None
    if log and rounded:
        low = max(one for one in _round_numbers(low / 10, high) if one <= 0.9 * low)
        high = min(one for one in _round_numbers(low, high * 10) if one >= 1.01 * high)
    elif log:
        if any(value <= 0 for value in values):
            zero = low = low / 2
        low, high = low / 1.15, high * 1.15
    else:
        low = min(0.0, low) if from_zero else low
        if rounded:
            step = nice_step((high - low or 1.0) / 5)
            high = step * max(1, math.ceil(high / step - 1e-9))
        else:
            room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
            low, high = low if from_zero else low - room, high + room
    return Axis(low, high, log, label, text, zero)


def _round_numbers(low: float, high: float, factors: Sequence[int] = (1, 2, 5)) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [factor * 10.0**decade for decade in decades for factor in factors]


@dataclass(frozen=True)
class Frame:
    """A plot's rectangle in pixels, with what its sides mean."""

    left: float
    top: float
    right: float
    bottom: float
    x: Axis
    y: Axis

    def across(self, value: float) -> float:
        return self.left + self.x.at(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        return self.bottom - self.y.at(value) * (self.bottom - self.top)

    def draw(self, x_ticks: Sequence[float] | None = None) -> Markup:
        """The horizontal grid, ticks and labels at the left and below; those that would touch are left out."""
        parts = []
        for value in self.y.ticks():
            at = self.up(value)
            parts.append(line(self.left, at, self.right, at, "grid"))
            parts.append(el("text", self.y.text(value), x=self.left - 6, y=at + 4, text_anchor="end", class_="tick"))
        last = -math.inf
        for value in self.x.ticks() if x_ticks is None else x_ticks:
            at = self.across(value)
            parts.append(line(at, self.bottom, at, self.bottom + 4, "base"))
            if at - last >= _LABEL_PX:
                parts.append(el("text", self.x.text(value), x=at, y=self.bottom + 17, class_="tick"))
                last = at
        parts.append(line(self.left, self.bottom, self.right, self.bottom, "base"))
        parts.append(el("text", self.x.label, x=(self.left + self.right) / 2, y=self.bottom + 36, class_="tick"))
        if self.y.label:
            middle = (self.bottom + self.top) / 2
            look = {"transform": f"rotate(-90 12 {middle:.0f})", "class_": "tick"}
            parts.append(el("text", self.y.label, x=12.0, y=middle, **look))
        return join(parts)


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    return el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)


def path(places: Sequence[tuple[float, float]]) -> str:
    """The ``d`` of a line through these places."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def marker(index: int, x: float, y: float, **attributes: object) -> Markup:
    """The mark of a chart's series number ``index``: neighbours differ in shape."""
    shape = index % 4
    if shape == 0:
        return el("circle", cx=x, cy=y, r=4, **attributes)
    if shape == 1:
        return el("rect", x=x - 3.7, y=y - 3.7, width=7.4, height=7.4, **attributes)
    corners = [(0, -5), (5, 4), (-5, 4)] if shape == 2 else [(0, -5), (5, 0), (0, 5), (-5, 0)]
    return el("polygon", points=" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners), **attributes)
