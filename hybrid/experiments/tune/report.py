"""What a sweep leaves: points.csv, tune.json and tune.html, a page that needs nothing from anywhere.

Invariant: the three are made from the same points; whatever a simulated device has to do with says ``simulated``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.charts.axes import Axis, axis
from hybrid.charts.line_charts import CSS, Mark, Series, draw
from hybrid.charts.markup import EMPTY, Markup, document, el, top_line
from hybrid.charts.units import DASH, compact, count, ratio, seconds, share, tick
from hybrid.devices.profiles import SIMULATED
from hybrid.experiments.measured import TIME_HEADS, draw_gains, headline, simulated, write_files
from hybrid.experiments.tune.advice import Advice, Curve, noise_of, noise_text, searches_of
from hybrid.experiments.tune.points import FORMAT_MARK, FORMAT_VERSION, Point, worst
from hybrid.report import style
from hybrid.report.pieces import folded, muted, section
from hybrid.report.tables import Row, table
from hybrid.terminal import plural

CSV_NAME, JSON_NAME, HTML_NAME = "points.csv", "tune.json", "tune.html"
_CPU_COLOUR = 6
_NO_NPU = "Devices called simulated are clocks, not devices: no real NPU was used for their figures."


@dataclass(frozen=True)
class Findings:
    """All that is known at the end of a sweep."""

    identity: dict[str, Any]  # configuration, graph, machine
    config_text: str
    points: Sequence[Point]
    curves: Sequence[Curve]
    advice: Advice
    written: str
    warning: str = ""  # that the machine was busy


def write_findings(folder: Path, found: Findings) -> None:
    """All three files."""
    rows = [flat(one) for one in found.points]
    write_files(folder, (CSV_NAME, JSON_NAME, HTML_NAME), rows, as_json(found), render(found))


def flat(point: Point) -> dict[str, Any]:
    """A point as one row of a table."""
    setting, good = point.setting, point.good
    low, high = point.spread if good else (None, None)
    return {
        "engine": setting.engine, "device": setting.device, "simulated": setting.simulated, "mode": setting.mode,
        "batch": setting.batch,
        "k": setting.k, "threshold": point.threshold, "edges_inside": point.inside, "share_of_edges": point.part,
        "density": point.density, "ran_on": point.ran_on,
        "cpu_only_s": point.cpu_only_s if good else None, "cpu_only_worst_s": worst(point.cpu_only) if good else None,
        "hybrid_s": point.hybrid_s if good else None, "hybrid_worst_s": worst(point.hybrid) if good else None,
        "gain": point.gain if good else None, "gain_least": low, "gain_most": high,
        "pays": point.pays if good else None,
        "rounds_sent": point.rounds_sent, "rounds_merged": point.rounds_merged,
        "values_adopted": point.values_adopted, "values_received": point.values_received,
        "edges_looked_at_cpu_only": point.edges_cpu_only, "edges_looked_at_hybrid": point.edges_hybrid,
        "predicted_cpu_only_s": point.predicted_cpu_only_s, "predicted_s": point.predicted_s,
        "on_clock_s": point.on_clock_s, "searches_certified": point.certified, "failure": point.failure,
        "measured_at": point.measured_at,
    }  # fmt: skip


def as_json(found: Findings) -> dict[str, Any]:
    """Everything, with all times."""
    return {
        "format": FORMAT_MARK,
        "format_version": FORMAT_VERSION,
        "written": found.written,
        **found.identity,
        "note": _NO_NPU,
        "points": [{**flat(one), "times": {"cpu_only": one.cpu_only, "hybrid": one.hybrid}} for one in found.points],
        "break_even": [{"simulated": True, **asdict(one), "sentence": one.sentence} for one in found.curves],
        "noise": noise_of(found.points),
        "warning": found.warning,
        "recommendation": asdict(found.advice),
    }


def render(found: Findings) -> str:
    """The page."""
    graph = found.identity["graph"]
    where = f"{found.identity['host']}, {plural(found.identity['threads'], 'thread')}"
    main = el(
        "main",
        top_line("Tandem tuning", graph["name"], f"{where}; {found.written}"),
        _headline(found),
        *(_engine_section(found, engine) for engine in dict.fromkeys(one.setting.engine for one in found.points)),
        _break_even_section(found),
        _core_section(found.points),
        _prediction_section(found.points),
        _table_section(found.points),
        section("The configuration", folded("as it was measured with", el("pre", found.config_text)), id="config"),
        el("footer", "Beside this page: points.csv, tune.json (all times), points.jsonl (the journal)."),
    )
    return document(f"tuning {graph['name']}", style.CSS + CSS, main)


def _headline(found: Findings) -> Markup:
    graph, good = found.identity["graph"], [one for one in found.points if one.good]
    proven = sum(one.certified for one in good)
    facts = (
        f"{plural(graph['n'], 'vertex')} with edges, {plural(graph['m'], 'arc')}; {plural(len(good), 'setting')}, each "
        f"measured {plural(len(good[0].cpu_only), 'time')} from {plural(searches_of(good), 'source')} in turns with "
        f"the CPU alone; {'certified' if proven == 1 else 'all certified'}: {plural(proven, 'search')}."
    )
    failed = [one for one in found.points if not one.good]
    failures = [el("li", el("b", "!"), f"{one.setting.describe()}: {one.failure}") for one in failed]
    advice, noise = found.advice, noise_text(found.points)
    paying = "The simulated device would pay" if advice.device.startswith(SIMULATED) else "The device pays"
    notes = [
        el("p", noise, class_="bad") if noise else EMPTY,
        simulated(_NO_NPU) if any(one.setting.simulated for one in found.points) else EMPTY,
        el("ul", *failures, class_="incidents") if failures else EMPTY,
    ]
    return headline(paying if advice.k else "CPU alone", advice.sentence, facts, found.warning, *notes, id="advice")


def _engine_section(found: Findings, engine: str) -> Markup:
    """Time, gain, adopted values and edges looked at, over the core's size."""
    points = [one for one in found.points if one.setting.engine == engine and one.good]
    lead = (
        "Every setting was measured in turns with the CPU alone, and is drawn beside those very runs: what else the "
        "machine did changes from mark to mark. Gain is the quotient of the two medians; the thin line through it is "
        "its 80% interval, and a device pays where that is above 1. Core 0 is the CPU against itself: what differs "
        "there is noise. Dashed: race, full: share."
    )
    title, name = f"Engine {engine}", f"engine-{engine.replace(' ', '-')}"
    sizes = sorted({one.setting.k for one in points})
    if not sizes:
        return section(title, muted("No setting of this engine could be measured."), id=name, lead=lead)
    gains = [value for one in points for value in (*one.spread, one.gain)] + [1.0]
    edges = [value for one in points for value in (one.edges_hybrid, one.edges_cpu_only)]
    cores = [one for one in points if one.setting.k]
    of_size = {k: [one.edges_cpu_only for one in points if one.setting.k == k] for k in sizes}
    edge_alone = tuple(Mark(k, float(np.median(edges_of)), f"k = {k:,}") for k, edges_of in of_size.items())
    adopted = _by_setting(cores, lambda one: _plain_mark(one, one.values_adopted))
    looked_at = _by_setting(points, lambda one: _plain_mark(one, one.edges_hybrid))
    plots = el(
        "div",
        *_time_figures(points, sizes),
        _over_size(
            "Gain", "the two times of each mark divided, with its interval; above 1 the device helps",
            _by_setting(points, _gain_mark), sizes, axis(gains, "gain", ratio, log=True), even=1.0,
        ),
        _over_size(
            "Values adopted", "per search: found by the device before the CPU", adopted, sizes,
            _from_zero([one.values_adopted for one in cores], "values", compact),
        ),
        _over_size(
            "Edges looked at", "per search, by the CPU", [Series("CPU only", edge_alone, _CPU_COLOUR), *looked_at],
            sizes, _from_zero(edges, "edges", compact),
        ),
        class_="plots",
    )  # fmt: skip
    return section(title, plots, id=name, lead=lead)


def _break_even_section(found: Findings) -> Markup:
    if not found.curves:
        return EMPTY
    engines = list(dict.fromkeys((one.engine, one.k) for one in found.curves))
    series = []
    for curve in found.curves:
        marks = tuple(
            Mark(delay, gain, f"{_delay(delay)}: {ratio(gain)}", *spread)
            for delay, gain, spread in zip(curve.delays_s, curve.gains, curve.spreads, strict=True)
        )
        name = f"simulated: {curve.engine}, {curve.mode}, k = {count(curve.k)}"
        series.append(Series(name, marks, engines.index((curve.engine, curve.k)), curve.mode == "race"))
    title, about = "Gain over the delay of a round (simulated)", "the oracle is a device that needs no time"
    figure = draw_gains(title, about, series, "delay of every round", _delay)
    said = el("ul", *(el("li", one.sentence) for one in found.curves))
    lead = simulated(
        "Every round takes exactly this long; the search around it is real. Above the dotted line hybrid is faster "
        "than the CPU alone.", "lead",
    )  # fmt: skip
    plots = el("div", figure, said, class_="plots")
    return section("Break-even: how fast would a device have to be?", lead, plots, id="break-even")


def _prediction_section(points: Sequence[Point]) -> Markup:
    """Predicted over measured, of every setting that has both."""
    both = [one for one in points if one.good and one.predicted_s]
    if not both:
        lead = "Nothing was predicted: this machine is not calibrated (`python run.py calibrate` does it)."
        return section("Predicted against measured", id="predicted", lead=lead)

    def mark(one: Point) -> Mark:
        assert one.predicted_s is not None
        tip = f"{one.setting.describe()}: predicted {seconds(one.predicted_s)}, measured {seconds(one.hybrid_s)}"
        return Mark(one.predicted_s, one.hybrid_s, tip)

    series = [replace(one, line=False) for one in _by_setting(both, mark, by_mode=True)]
    every = [value for one in both for value in (one.predicted_s or 0.0, one.hybrid_s)]
    x, y = (axis(every, label, tick, log=True) for label in ("predicted", "measured"))
    about = "of all sources together, by the planner and by the clock"
    plots = el("div", draw("Hybrid time", about, series, x, y, diagonal=True), class_="plots")
    lead = "Each mark is a setting; on the dotted line the planner was right, above it too hopeful."
    return section("Predicted against measured", plots, id="predicted", lead=lead)


def _table_section(points: Sequence[Point]) -> Markup:
    heads = ["Engine", "Device", "Mode", "Core", "Degree from", "Inside", *TIME_HEADS, "Adopted", "Looked at",
             "Predicted", "Proven"]  # fmt: skip
    rows = []
    for one in points:
        setting = one.setting
        device = setting.device if setting.simulated or not one.ran_on else f"{setting.device} ({one.ran_on})"
        cells: list[object] = [setting.engine, device, setting.mode]
        cells += [count(setting.k), count(one.threshold), share(one.part, 1)]
        if one.good:
            cells += [*one.time_cells(), count(round(one.values_adopted)), count(round(one.edges_hybrid))]
            cells += [seconds(one.predicted_s), count(one.certified)]
        else:
            cells += [*[DASH] * 7, el("span", "failed", class_="bad")]
        rows.append(Row(cells, "fault" if not one.good else "hit" if one.pays else None))
    body = table(heads, rows, text_columns=(0, 1, 2), caption="All points")
    return section("All points", body, id="points", long=True)


# -------------------------------------------------------------------------------------------------- the figures


def _core_section(points: Sequence[Point]) -> Markup:
    """Share of edges inside, and density, over the core's size."""
    by_size = {one.setting.k: one for one in sorted(points, key=lambda one: one.setting.k)}
    inside = {k: (one.part, f"{plural(one.inside, 'edge')}, {share(one.part, 1)}") for k, one in by_size.items()}
    density = {k: (one.density, share(one.density, 1)) for k, one in by_size.items() if k}

    def figure(title: str, about: str, name: str, colour: int, label: str, of: dict[int, tuple[float, str]]) -> Markup:
        series = Series(name, tuple(Mark(k, value, tip) for k, (value, tip) in of.items()), colour)
        y = _from_zero([value for value, _ in of.values()], label, lambda part: f"{100 * part:.3g} %")
        return _over_size(title, about, [series], list(by_size), y)

    plots = [
        figure("Edges inside the core", "of all edges", "share of all edges", 0, "share", inside),
        figure("Density of the core", "edges inside, of all pairs", "density", 2, "density", density),
    ]
    lead = "Exact counts; the same for every engine and device."
    return section("What is inside the core", el("div", *plots, class_="plots"), id="core", lead=lead)


def _by_setting(points: Sequence[Point], mark: Callable[[Point], Mark], *, by_mode: bool = False) -> list[Series]:
    """A series per device and mode; the point without a core, where there is one, is the start of each."""
    start = [one for one in points if not one.setting.k]
    cores: dict[str, set[int]] = {}
    for one in points:
        if one.setting.k:
            cores.setdefault(one.setting.device, set()).add(one.setting.k)
    most = max(map(len, cores.values()), default=0)
    found = []
    for i, device in enumerate(cores):
        own = [one for one in points if one.setting.device == device]
        if not by_mode and 2 * len(cores[device]) < most:
            continue  # no curve over k, but points of the break-even figure
        for mode in dict.fromkeys(one.setting.mode for one in own):
            marks = [mark(one) for one in own if one.setting.mode == mode]
            if not by_mode:
                marks = [*map(mark, start[:1]), *marks]
            ran_on = next((one.ran_on for one in own if one.ran_on), "")
            name = device if device == ran_on or not ran_on else f"{device} (ran on: {ran_on})"
            found.append(Series(f"{name}, {mode}", tuple(marks), i, mode == "race"))
    return found


def _time_figures(points: Sequence[Point], sizes: Sequence[int]) -> list[Markup]:
    """Each device and mode beside the CPU alone that was measured in turns with it: the load changes over a sweep."""
    hybrid = _by_setting(points, lambda one: _time_mark(one, one.hybrid, one.hybrid_s))
    beside = _by_setting(points, lambda one: _time_mark(one, one.cpu_only, one.cpu_only_s))
    every = [
        value for one in [*hybrid, *beside] for mark in one.marks for value in (mark.low or mark.y, mark.high or mark.y)
    ]
    y = axis(every, "time", tick, log=True)
    found = []
    for one, alone in zip(hybrid, beside, strict=True):
        beside_it = replace(alone, name="CPU only, in turns with it", colour=_CPU_COLOUR)
        about = "of all sources together, median; thin: from the fastest to the slowest repeat"
        found.append(_over_size(f"Time: {one.name}", about, [beside_it, one], sizes, y))
    return found


def _time_mark(point: Point, times: Sequence[Sequence[float]], median_s: float) -> Mark:
    sums = np.sum(times, axis=1)
    low, high = min(median_s, float(sums.min())), max(median_s, float(sums.max()))
    tip = f"{_core(point)}: median {seconds(median_s)}, repeats {seconds(low)} to {seconds(high)}"
    return Mark(point.setting.k, median_s, tip, low, high)


def _gain_mark(point: Point) -> Mark:
    return Mark(point.setting.k, point.gain, f"{_core(point)}: {point.compared.describe()}", *point.spread)


def _plain_mark(point: Point, value: float) -> Mark:
    return Mark(point.setting.k, value, f"{_core(point)}: {count(round(value))}")


def _core(point: Point) -> str:
    k = point.setting.k
    return f"k = {k:,}, degree from {count(point.threshold)}" if k else "no core"


def _over_size(
    title: str, about: str, series: Sequence[Series], sizes: Sequence[int], y: Axis, even: float | None = None
) -> Markup:
    x = axis(sizes, "vertices in the core (k)", count, log=True)
    return draw(title, about, series, x, y, x_ticks=sizes, even=even)


def _from_zero(values: Sequence[float], label: str, text: Callable[[float], str]) -> Axis:
    return axis([0.0, *values], label, text, from_zero=True)


def _delay(value: float) -> str:
    return "oracle" if value <= 0 else tick(value)
