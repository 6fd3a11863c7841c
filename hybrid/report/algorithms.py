"""The sections of a report on an algorithm other than BFS: what came out, how its values are spread, the runs.

Invariant: every bar of the picture is also a row of a table; any summary gives well-formed sections.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid.charts.lettering import CHARACTER, NARROW_PAGE, fitted_text
from hybrid.charts.markup import EMPTY, Markup, el, percent
from hybrid.charts.scale import LogScale
from hybrid.charts.units import DASH, compact, count, number, plural, seconds, share, whole
from hybrid.charts.wide_plot import across, count_axis, stretch, tick_name, wide_plot
from hybrid.report.facts import Facts, as_dict, as_list
from hybrid.report.headline import card, draw_state, draw_warning, graph_cards
from hybrid.report.pieces import figures, folded, meter, meters, muted, section
from hybrid.report.tables import Row, table

HEIGHT = 170
TOP = 24
MAX_BARS = 64
FEWEST_SLOTS = 8  # three bars need not be as wide as the page

HOW = {
    "proof": "Every value was checked against the graph by code that shares nothing with what computed it.",
    "computed again": "A second computation, made in another way, gives the same values.",
    "sample": "A second computation of a sample, made in another way, gives the same values. `validate` checks all.",
    "sum of all": "A second computation, made in another way, gives the same weighted sum of all values.",
}


def draw_result(facts: Facts) -> Markup:
    """The state of the check in large letters, and the answer beside it."""
    summary, verdict, check = facts.summary, facts.summary.get("verdict"), facts.summary.get("check")
    state, said = "NOT certified", "Do not use these values: the check does not hold. Fix: see log.txt."
    if facts.certified:
        state = "Certified" if check in ("proof", "computed again") else "Checked"
        said = HOW.get(str(check), "What was checked is listed below.")
    notes = [
        el("p", _sentence(str(summary.get("headline") or "")), class_="say"),
        el("p", f"Not converged: {summary['unfinished']}.", class_="bad") if summary.get("unfinished") else EMPTY,
        el("p", _sentence(verdict["text"]), class_="say") if verdict else EMPTY,
        draw_warning(facts),
        muted(f"NPU: {facts.outcome}.") if facts.outcome else EMPTY,
    ]
    words = draw_state(facts.certified, state, said, *notes)
    return el("section", words, class_="verdict alone" if facts.certified else "verdict alone failed", id="verdict")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else "The summary has no headline."


def draw_result_cards(facts: Facts) -> Markup:
    """The key figures: graph, facts, options, time."""
    summary, spent = facts.summary, facts.seconds
    options = {name: value for name, value in as_dict(summary.get("options")).items() if value is not None}
    cards = [
        *graph_cards(facts.graph, summary.get("title")),
        *(card(_words(name), _fact(name, value)) for name, value in as_dict(summary.get("facts")).items()),
        *(card(_words(name.rpartition(".")[2]), str(value), name, text=True) for name, value in options.items()),
        card("Run", seconds(spent.get("run")), plural(whole(summary.get("threads")), "thread")),
        card("Check", seconds(spent.get("certify")), ""),
        card("Total time", seconds(spent.get("total", facts.total or None)), ""),
    ]
    return el("dl", *cards, class_="cards")


def _words(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _fact(name: str, value: object) -> str:
    if name.endswith("vertex"):  # an id is no amount
        return DASH if value is None else str(value)
    return share(value, 1) if name.endswith("share") else figure(value)


def figure(value: object) -> str:
    """Any number of a result: whole ones in full, others with four digits, tiny ones with an exponent."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    found = number(value)
    if found is None:
        return DASH if value is None else str(value)
    return count(value) if found.is_integer() and abs(found) < 1e15 else f"{found:.4g}"


def draw_spread(facts: Facts) -> Markup:
    """How the values are spread: a picture, the same as a table, and the largest."""
    spread = as_dict(facts.summary.get("spread"))
    name, groups = str(spread.get("of") or "value"), spread.get("what") == "groups"
    bars = [bar for bar in map(_bar, as_list(spread.get("bins"))) if bar is not None][:MAX_BARS]
    if not bars:
        return EMPTY
    meaning = str(as_dict(facts.summary.get("columns")).get(name) or "")
    counted, unit = ("size", "groups") if groups else (name, "vertices")
    title = f"How large the groups are ({name})" if groups else f"How the values are spread ({name})"
    lead = [f"{name}.npy: {meaning}." if meaning else "", f"Bars are {unit}, on a logarithmic scale."]
    if whole(spread.get("unreached")):
        lead.append(f"{plural(whole(spread['unreached']), 'vertex', 'vertices')} not reached.")
    if len(as_list(facts.summary.get("sources"))) > 1:
        lead.append(f"Of source {as_list(facts.summary.get('sources'))[0]}, the first.")
    total = sum(amount for _, _, amount in bars)
    rows = [Row([_range(low, high), count(amount), share(amount, total)]) for low, high, amount in bars]
    as_table = table([_words(counted), _words(unit), "Share"], rows, caption=title)
    parts = [_draw_bars(bars, counted, unit, title), folded("The same as a table", as_table)]
    parts += _draw_top(as_list(spread.get("top")), name, groups=groups)
    return section(title, *parts, id="spread", lead=" ".join(part for part in lead if part))


def _bar(raw: object) -> tuple[float, float, int] | None:
    cells = as_list(raw)
    low, high = (number(cell) for cell in cells[:2]) if len(cells) == 3 else (None, None)
    return None if low is None or high is None else (low, high, whole(cells[2]))


def _range(low: float, high: float) -> str:
    return figure(low) if low == high else f"{figure(low)} {DASH} {figure(high)}"


def _draw_bars(bars: Sequence[tuple[float, float, int]], counted: str, unit: str, title: str) -> Markup:
    """Bars from left to right, with their lower ends below."""
    scale, floor = LogScale(max(amount for *_, amount in bars), HEIGHT), TOP + HEIGHT
    slot = 100 / max(len(bars), FEWEST_SLOTS)
    names_below = [compact(low) if low.is_integer() else f"{low:.3g}" for low, *_ in bars]
    every = math.ceil((max(map(len, names_below)) * CHARACTER + 10) / (slot / 100 * NARROW_PAGE))
    grid, labels = count_axis(scale, floor)
    columns = []
    for i, (low, high, amount) in enumerate(bars):
        middle, height = (i + 0.5) * slot, scale.of(amount)
        parts = [el("title", f"{counted} {_range(low, high)}: {count(amount)} {unit}")]
        if amount:
            parts.append(stretch(middle - slot * 0.4, floor - height, slot * 0.8, height, "k-push"))
            parts.append(fitted_text(compact(amount), middle, floor - height - 5, slot, class_="t-value"))
        if i % every == 0:
            first = i == 0 and every > 1  # would reach over the picture's edge
            at, anchor = (slot * 0.1, "start") if first else (middle, None)
            parts.append(el("text", names_below[i], x=percent(at), y=floor + 16, class_="tick", text_anchor=anchor))
        columns.append(el("g", *parts, class_="m"))
    drawn = [grid, *columns, across(floor, "base")]
    names = [labels, tick_name(unit, 11), tick_name(counted, floor + 16)]
    return wide_plot("spread", title, drawn, names, floor + 24)


def _draw_top(top: Sequence[object], name: str, *, groups: bool) -> list[Markup]:
    pairs = [as_list(one) for one in top if len(as_list(one)) == 2]
    if len({str(value) for _, value in pairs}) < 2:  # none stands out
        return []
    most = max(number(value) or 0.0 for _, value in pairs)
    rows = []
    for one, value in pairs:
        part = 100 * (number(value) or 0.0) / most if most > 0 else 0.0
        rows.append((str(one), meter(max(part, 0.4), "k-push"), figure(value)))
    title = f"The largest groups: {name}, vertices" if groups else f"The largest values: vertex, {name}"
    return [el("h3", title), meters(title, rows)]


def draw_algorithm_runs(facts: Facts) -> Markup:
    """One row per source, where the algorithm has sources."""
    runs = [run for run in facts.run_rows if "source" in run]
    if not runs:
        return EMPTY
    names = list(dict.fromkeys(name for run in runs for name in _counted(run)))
    rows = []
    for run in runs:
        counted, times = _counted(run), as_dict(run.get("seconds"))
        cells = [str(run.get("source")), *(figure(counted.get(name)) for name in names)]
        rows.append(Row([*cells, *(seconds(times.get(name)) for name in ("run", "certify"))]))
    runs_table = table(["Source", *map(_words, names), "Run", "Check"], rows, caption="Runs, one per source")
    return section("Sources", runs_table, id="runs", long=True)


def _counted(run: Mapping[str, Any]) -> dict[str, Any]:
    return as_dict(run.get("facts")) | as_dict(run.get("counters"))


def draw_counters(facts: Facts) -> Markup:
    """What the run of an algorithm without sources counted on its way."""
    runs = [run for run in facts.run_rows if "source" not in run]
    counters = as_dict(runs[0].get("counters")) if runs else {}
    if not counters:
        return EMPTY
    named = [(_words(name), figure(value)) for name, value in counters.items()]
    return section("On the way", figures(named), id="counters")
