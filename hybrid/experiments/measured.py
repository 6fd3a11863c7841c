"""What all experiments share: times measured in turns with the CPU alone, the three files, pieces of their page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from hybrid.charts.axes import axis
from hybrid.charts.line_charts import Series, draw
from hybrid.charts.markup import EMPTY, Markup, el
from hybrid.charts.units import ratio, seconds
from hybrid.job.verdict import Comparison, Times, compare
from hybrid.report.pieces import muted
from hybrid.results.atomic_write import atomic_write

TIME_HEADS = ("CPU only", "Hybrid", "Gain", "80% interval")


class Measured:
    """A device against the CPU alone: every repeat's seconds, of both in turns."""

    cpu_only: Times
    hybrid: Times

    @cached_property
    def compared(self) -> Comparison:
        return compare(self.cpu_only, self.hybrid)

    @property
    def cpu_only_s(self) -> float:
        return self.compared.first_s

    @property
    def hybrid_s(self) -> float:
        return self.compared.second_s

    @property
    def gain(self) -> float:
        """Above 1: faster than the CPU alone; the quotient of the two times above."""
        return self.compared.gain

    @property
    def spread(self) -> tuple[float, float]:
        """The interval that the gain is in (hybrid/job/verdict.py)."""
        return self.compared.spread

    @property
    def pays(self) -> bool:
        """Faster for certain, and by more than counts as equal; what was measured once never is."""
        return self.compared.faster

    def time_cells(self) -> list[str]:
        """The cells under TIME_HEADS."""
        low, high = self.spread
        return [seconds(self.cpu_only_s), seconds(self.hybrid_s), ratio(self.gain), f"{low:.2f}-{high:.2f}"]


def headline(title: str, say: str, facts: str, warning: str, *notes: Markup, id: str) -> Markup:
    """The top of a page: what came out, of what measurements, and whether the machine was busy."""
    busy = el("p", f"The machine was {warning}.", class_="bad") if warning else EMPTY
    parts = [el("h1", title), el("p", say, class_="say"), muted(facts), busy, *notes]
    return el("section", *parts, class_="verdict alone", id=id)


def simulated(note: str, style: str = "muted") -> Markup:
    """A sentence that is marked as being about devices that are not there."""
    return el("p", el("span", "simulated", class_="sim"), " ", note, class_=style)


def draw_gains(title: str, about: str, series: Sequence[Series], label: str, text: Callable[[float], str]) -> Markup:
    """Gains, each with its interval, over what a round takes."""
    marks = [mark for one in series for mark in one.marks]
    places = sorted({mark.x for mark in marks})
    gains = [end for mark in marks for end in (mark.low, mark.high) if end is not None]
    x, y = axis(places, label, text, log=True), axis([*gains, 1.0], "gain", ratio, log=True)
    return draw(title, about, series, x, y, x_ticks=places, even=1.0)


def write_files(
    folder: Path, names: tuple[str, str, str], rows: Sequence[dict[str, Any]], whole: dict[str, Any], page: str
) -> None:
    """The rows as CSV, everything as JSON, and the page, each whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for name, content in zip(names, (text.getvalue(), json.dumps(whole, indent=1) + "\n", page), strict=True):
        atomic_write(folder / name, content)
