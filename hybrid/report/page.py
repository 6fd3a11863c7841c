"""The report as one page: what stands in which order, and the sections made of words and tables.

Invariant: any summary and trace give a complete, well-formed page; what is missing is said in words. All pictures,
styles and scripts are inside the page, so it can be mailed, archived and read without a network.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hybrid.charts.lettering import fitted_text
from hybrid.charts.markup import EMPTY, Markup, document, el, join, top_line
from hybrid.charts.units import count, number, plural, seconds, share
from hybrid.charts.wide_plot import stretch
from hybrid.report import style
from hybrid.report.algorithms import draw_algorithm_runs, draw_counters, draw_result, draw_result_cards, draw_spread
from hybrid.report.facts import Facts, as_dict, as_list
from hybrid.report.headline import draw_cards, draw_headline
from hybrid.report.panels import draw_sources, draw_whole_job
from hybrid.report.pieces import figures, folded, muted, section
from hybrid.report.ranks.section import draw_ranks_section
from hybrid.report.tables import Row, round_table, run_table, table

PHASES = {  # in words, and the style of those that have one
    "open": ("open the graph", ""),
    "build": ("build the graph", ""),
    "partition": ("cut the graph into parts", ""),
    "plan": ("plan the split", ""),
    "compile": ("compile kernels", ""),
    "traverse": ("traverse", "push"),
    "run": ("run the algorithm", "push"),
    "gather": ("gather the ranks' results", ""),
    "certify": ("certify", "merge"),
    "compare": ("CPU-only comparison", "pull"),
    "write": ("write the result", ""),
    "start": ("waiting for the worker to start", "start"),
    "other": ("everything else", "other"),
}


def render_page(folder: Path, summary: Mapping[str, Any], trace: Sequence[object], config_text: str) -> str:
    """The whole report as HTML text."""
    facts = Facts(summary, trace)
    written = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    title = f"{facts.graph.get('name') or 'report'} ({'certified' if facts.certified else 'NOT certified'})"
    ran = [str(facts.summary.get("algorithm") or "").upper(), facts.graph.get("name"), facts.summary.get("engine")]
    beside = "Beside this page: summary.json, trace.jsonl (every step), config.yaml, log.txt and the result arrays."
    main = el(
        "main",
        top_line("Tandem report", join([str(part) for part in ran if part], " \N{MIDDLE DOT} "), written),
        *(draw(facts) for draw in (_OF_BFS if facts.is_bfs else _OF_OTHERS)),
        section("Where the seconds went", draw_breakdown(facts.seconds, facts.traced_phases), id="seconds"),
        _certificate_section(facts),
        _config_section(folder, config_text),
        el("footer", beside),
    )
    css, patterns = zip(*(style.PLAIN, style.OF_RANKS)[: 1 + facts.on_ranks], strict=True)
    return document(title, "".join(css), *patterns, main, script=style.SCRIPT)


def npu_sentence(facts: Facts) -> str:
    """What the NPU did for this job, in plain words."""
    if not facts.with_npu:
        return "Nothing: the NPU was off (npu.mode: off) and the CPU did all the work."
    merged, sent = facts.npu_count("rounds_merged"), facts.npu_count("rounds_sent")
    outcome = facts.outcome.rstrip(".")
    if not merged:
        rounds = f"{plural(sent, 'round was', 'rounds were')} sent" if sent else "no round was sent"
        return f"Nothing was merged: {outcome or 'the summary gives no reason'} ({rounds})."
    received, adopted = facts.npu_count("values_received"), facts.npu_count("values_adopted")
    if adopted:
        part = f"{count(adopted)} of {count(received)} values received ({share(adopted, received)})"
        effect = f"{part} were better than the CPU's own and were adopted"
    else:
        effect = f"the CPU already knew every one of the {count(received)} values received, so none was adopted"
    rejected = facts.npu_count("values_rejected")
    refused = f" {plural(rejected, 'value was', 'values were')} rejected." if rejected else ""
    ended = f" Outcome: {outcome}." if outcome else ""
    return f"In {plural(merged, 'merged round')}, {effect}.{refused}{ended}"


def _npu_section(facts: Facts) -> Markup:
    parts = [el("p", npu_sentence(facts), class_="say")]
    if facts.with_npu:
        values = ("sent", "received", "adopted", "rejected")
        named = [
            ("rounds merged", f"{facts.npu_count('rounds_merged'):,} of {facts.npu_count('rounds_sent'):,}"),
            *((f"values {name}", count(facts.npu_count(f"values_{name}"))) for name in values),
            ("worker start", seconds(facts.npu.get("start_seconds"))),
        ]
        parts.append(figures(named))
        parts.append(round_table(facts.rounds) if facts.rounds else muted("No rounds are in the trace."))
    return section("What the NPU changed", *parts, id="npu", long=True)


def _run_section(facts: Facts) -> Markup:
    return section("Runs", run_table(facts.run_rows, with_npu=facts.with_npu), id="runs", long=True)


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
        name, own = PHASES.get(phase, (phase.replace("_", " "), ""))
        style = f"k-{own or f'phase{i % 2}'}"
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


def _certificate_section(facts: Facts) -> Markup:
    repairs, wrong = len(facts.repaired), sum(event.count("changed") for event in facts.repaired)
    after = (
        f"{plural(wrong, 'value')} failed; in {plural(repairs, 'repair')} the result was computed again."
        if repairs
        else "No value had to be thrown away."
    )
    promise = "A wrong worker can therefore not change an answer." if facts.certified else ""
    words = f" {after} {promise}" if facts.is_bfs else f" {after if repairs else ''}"
    again = [
        f"Computed again by {one.get('method')}, because: {one.get('reason')}. Record: {one.get('record') or 'none'}."
        for one in map(as_dict, as_list(facts.summary.get("repairs")))
    ]
    state = "They hold for this result." if facts.certified else "They do NOT all hold for this result."
    return section(
        "What was checked",
        el("ol", *(el("li", str(claim)) for claim in as_list(facts.summary.get("claims"))), class_="proof"),
        el("p", el("b", state, class_="good" if facts.certified else "bad"), words),
        el("ul", *(el("li", one) for one in again)) if again else EMPTY,
        id="certificate",
    )


def _config_section(folder: Path, config_text: str) -> Markup:
    command = f"python run.py --config {shlex.quote(str(folder / 'config.yaml'))}"
    config = el("pre", config_text) if config_text.strip() else muted("No configuration was recorded.")
    parts = [el("p", "From the project's folder:"), el("pre", command), folded("Effective configuration", config)]
    return section("Run it again", *parts, id="config", long=True)


_OF_BFS = (draw_headline, draw_cards, draw_whole_job, draw_ranks_section, draw_sources, _npu_section, _run_section)
_OF_OTHERS = (draw_result, draw_result_cards, draw_spread, draw_algorithm_runs, draw_counters)
