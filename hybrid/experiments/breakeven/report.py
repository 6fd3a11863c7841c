"""What the break-even experiment leaves: breakeven.csv, breakeven.json and breakeven.html, which needs no network.

Invariant: the three are made from the same points, and all of them say ``simulated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid.charts.line_charts import CSS, Mark, Series
from hybrid.charts.markup import Markup, document, el, top_line
from hybrid.charts.units import count, ratio, seconds, share
from hybrid.experiments.breakeven.experiment import Curve, Point, as_json, curves_of, rate_text
from hybrid.experiments.measured import TIME_HEADS, draw_gains, headline, simulated, write_files
from hybrid.report import style
from hybrid.report.pieces import section
from hybrid.report.tables import Row, table
from hybrid.terminal import plural

CSV_NAME, JSON_NAME, HTML_NAME = "breakeven.csv", "breakeven.json", "breakeven.html"
NOTE = "The device is a clock, not a device: no real NPU was used. The CPU's side is real, measured and proven right."


def write_break_even(folder: Path, identity: dict[str, Any], points: Sequence[Point]) -> None:
    """All three files."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"format": "tandem-breakeven", "format_version": 1, "note": NOTE, **identity, **as_json(points)}
    rows = [one.flat() for one in points]
    write_files(folder, (CSV_NAME, JSON_NAME, HTML_NAME), rows, whole, render(identity, points))


def render(identity: dict[str, Any], points: Sequence[Point]) -> str:
    """The page."""
    graph, curves = identity["graph"], curves_of(points)
    algorithms = list(dict.fromkeys(curve.algorithm for curve in curves))
    where = f"{identity['host']}, {plural(identity['threads'], 'thread')}; {identity['written']}"
    main = el(
        "main",
        top_line("Tandem break-even", graph["name"], where),
        _headline(identity, points, curves),
        *(_algorithm_section(name, [one for one in curves if one.algorithm == name]) for name in algorithms),
        _table_section(points),
        el("footer", f"Beside this page: {CSV_NAME}, {JSON_NAME} (all times)."),
    )
    return document(f"break-even on {graph['name']}", style.CSS + CSS, main)


def _headline(identity: dict[str, Any], points: Sequence[Point], curves: Sequence[Curve]) -> Markup:
    graph = identity["graph"]
    paying = [point for point in points if point.pays]
    best = max(paying or points, key=lambda one: one.gain)
    case, at_once = best.case, f", {best.case.batch} at once" if best.case.batch > 1 else ""
    title = f"Some device would pay: up to {ratio(best.gain)}" if paying else "No device would clearly pay"
    where = f"{case.algorithm}{at_once}, k = {count(case.k)}, {case.device.name}: {best.compared.describe()}"
    leads = (
        "The best" if paying else "The largest gain may be chance" if best.gain > 1 else "None was faster; the nearest"
    )
    facts = (
        f"{plural(graph['n'], 'vertex')} with edges, {plural(graph['m'], 'arc')}; {plural(len(points), 'point')} in "
        f"{plural(len(curves), 'curve')}, each measured {plural(len(best.hybrid), 'time')} in turns with the CPU alone."
    )
    return headline(title, f"{leads}: {where}.", facts, identity.get("warning", ""), simulated(NOTE), id="best")


def _algorithm_section(name: str, curves: Sequence[Curve]) -> Markup:
    rates = sorted({curve.flops for curve in curves}, reverse=True)
    colours = list(dict.fromkeys((one.k, one.batch) for one in curves))
    series = []
    for curve in curves:
        marks = []
        for point in curve.points:
            latency_s = point.case.device.latency_s
            tip = f"{curve.name}, {_latency_text(latency_s)}: {ratio(point.gain)}"
            marks.append(Mark(latency_s, point.gain, tip, *point.spread))
        colour = colours.index((curve.k, curve.batch))
        series.append(Series(f"simulated: {curve.name}", tuple(marks), colour, curve.flops < rates[0]))
    title, about = f"Gain over the latency of a round: {name} (simulated)", "0 and any rate is the oracle"
    figure = draw_gains(title, about, series, "latency of a round", _latency_text)
    said = el("ul", *(el("li", curve.sentence) for curve in curves))
    lead = "Above the dotted line hybrid is faster than the CPU alone. Thin lines: 80% intervals. Full: at "
    explained = lead + rate_text(rates[0]) + ("; dashed: slower ones." if len(rates) > 1 else ".")
    return section(name, el("div", figure, said, class_="plots"), id=name, lead=explained)


def _table_section(points: Sequence[Point]) -> Markup:
    heads, rows = ["Algorithm", "Device", "Core", "At once", "Inside", *TIME_HEADS], []
    for one in points:
        case = one.case
        cells = [case.algorithm, case.device.name, count(case.k), count(case.batch), share(one.inside, 1)]
        rows.append(Row([*cells, *one.time_cells()], "hit" if one.pays else None))
    body = table(heads, rows, text_columns=(0, 1), caption="All points")
    return section("All points", body, id="points", long=True)


def _latency_text(value: float) -> str:
    return "0" if value <= 0 else seconds(value)
