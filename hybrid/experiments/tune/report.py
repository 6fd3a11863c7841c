"""What a sweep leaves: points.csv, tune.json and tune.html, a page that needs nothing from anywhere.

Invariant: the three are made from the same points; whatever a simulated device has to do with says ``simulated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hybrid.charts.line_charts import CSS
from hybrid.charts.markup import EMPTY, Markup, document, el, top_line
from hybrid.charts.units import DASH, count, seconds, share
from hybrid.devices.profiles import SIMULATED
from hybrid.experiments.measured import TIME_HEADS, headline, simulated, write_files
from hybrid.experiments.tune.advice import Advice, Curve, noise_of, noise_text, searches_of
from hybrid.experiments.tune.figures import break_even_figure, core_figures, engine_figures, prediction_figure
from hybrid.experiments.tune.points import FORMAT_MARK, FORMAT_VERSION, Point, worst
from hybrid.report import style
from hybrid.report.pieces import folded, section
from hybrid.report.tables import Row, table
from hybrid.terminal import plural

CSV_NAME, JSON_NAME, HTML_NAME = "points.csv", "tune.json", "tune.html"
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
        section(
            "What is inside the core", core_figures(found.points), id="core",
            lead="Exact counts; the same for every engine and device.",
        ),
        _prediction_section(found),
        _table_section(found.points),
        section("The configuration", folded("as it was measured with", el("pre", found.config_text)), id="config"),
        el("footer", "Beside this page: points.csv, tune.json (all times), points.jsonl (the journal)."),
    )  # fmt: skip
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
    figures = engine_figures([one for one in found.points if one.setting.engine == engine and one.good])
    lead = (
        "Every setting was measured in turns with the CPU alone, and is drawn beside those very runs: what else the "
        "machine did changes from mark to mark. Gain is the quotient of the two medians; the thin line through it is "
        "its 80% interval, and a device pays where that is above 1. Core 0 is the CPU against itself: what differs "
        "there is noise. Dashed: race, full: share."
    )
    name = engine.replace(" ", "-")
    return section(f"Engine {engine}", figures, id=f"engine-{name}", lead=lead)


def _break_even_section(found: Findings) -> Markup:
    if not found.curves:
        return EMPTY
    said = el("ul", *(el("li", one.sentence) for one in found.curves))
    lead = simulated(
        "Every round takes exactly this long; the search around it is real. Above the dotted line hybrid is faster "
        "than the CPU alone.", "lead",
    )  # fmt: skip
    title = "Break-even: how fast would a device have to be?"
    return section(title, lead, break_even_figure(found.curves, said), id="break-even")


def _prediction_section(found: Findings) -> Markup:
    figure = prediction_figure(found.points)
    lead = (
        "Each mark is a setting; on the dotted line the planner was right, above it too hopeful."
        if figure
        else "Nothing was predicted: this machine is not calibrated (`python run.py calibrate` does it)."
    )
    return section("Predicted against measured", figure, id="predicted", lead=lead)


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
