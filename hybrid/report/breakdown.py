"""Where the seconds went.

Invariant: every segment is also a row of a table, so nothing depends on telling colours apart; shares add up
to the whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.charts.lettering import fitted_text
from hybrid.charts.markup import Markup, el, join
from hybrid.charts.units import number, seconds, share
from hybrid.charts.wide_plot import stretch
from hybrid.report.pieces import muted
from hybrid.report.tables import Row, table

PHASES = {
    "open": "open the graph",
    "build": "build the graph",
    "generate": "generate the graph",
    "partition": "cut the graph into parts",
    "plan": "plan the split",
    "compile": "compile kernels",
    "traverse": "traverse",
    "run": "run the algorithm",
    "gather": "gather the ranks' results",
    "certify": "certify",
    "compare": "CPU-only comparison",
    "write": "write the result",
    "start": "waiting for the worker to start",
    "other": "everything else",
}
PHASE_STYLES = {
    "traverse": "push",
    "run": "push",
    "certify": "merge",
    "compare": "pull",
    "other": "other",
    "start": "start",
}


def phases_of(
    seconds_by_phase: Mapping[str, object], traced: Mapping[str, float]
) -> tuple[list[tuple[str, float]], float]:
    """(phase, seconds) in the order given, then the rest, and the whole they are shares of.

    What the summary does not name is taken from the trace, as far as the rest reaches.
    """
    known = [(name, value) for name, raw in seconds_by_phase.items() if name != "total" and (value := number(raw))]
    spent = sum(value for _, value in known)
    total = number(seconds_by_phase.get("total")) or 0.0
    rest = total - spent
    if rest > 0.005 * total:
        for phase, spent in traced.items():
            if phase not in seconds_by_phase:
                known.append((phase, min(spent, rest)))
                rest -= min(spent, rest)
        known.append(("other", rest))
    return [(name, value) for name, value in known if value > 0], max(total, spent)


def draw_breakdown(seconds_by_phase: Mapping[str, object], traced: Mapping[str, float]) -> Markup:
    """One bar for the whole job, a segment per phase, and the same as a table."""
    phases, total = phases_of(seconds_by_phase, traced)
    if not phases or total <= 0:
        return muted("The summary has no times.")
    x, segments, rows = 0.0, [], []
    for i, (phase, spent) in enumerate(phases):
        width = 100 * spent / total
        style = f"k-{PHASE_STYLES.get(phase, f'phase{i % 2}')}"
        name = PHASES.get(phase, phase.replace("_", " "))
        tip = el("title", f"{name}: {seconds(spent)}, {share(spent, total)}")
        parts = [tip, stretch(x, 0, max(width, 0.15), 34, style)]
        if width >= 1.2:
            parts.append(fitted_text(name, x + width / 2, 22, width, class_=f"t-{style[2:]}"))
        segments.append(el("g", *parts, class_="m seg"))
        fill, square = el("rect", width=14, height=14, class_=style), {"class_": "swatch", "width": 14, "height": 14}
        swatch = el("svg", fill, **square, aria_hidden="true")
        rows.append(Row([join([swatch, " ", name]), seconds(spent), share(spent, total)]))
        x += width
    title, look = el("title", "Where the seconds went", id="seconds-t"), {"class_": "plot", "width": "100%"}
    drawing = el("svg", title, *segments, **look, height=34, role="img", aria_labelledby="seconds-t")
    rows.append(Row(["total", seconds(total), ""], "sum"))
    return join([el("div", drawing, class_="bar"), table(["Phase", "Time", "Share"], rows)])
