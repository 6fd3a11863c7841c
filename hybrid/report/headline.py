"""The top of the report: certified or not, does the NPU pay, and the key figures.

Invariant: the first words of the page are the state of the certificate, as the summary has it; an uncertified result
never looks like a good one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybrid.charts.markup import EMPTY, Markup, el
from hybrid.charts.units import DASH, compact, count, number, plural, ratio, seconds, share, whole
from hybrid.report.facts import Facts, as_dict
from hybrid.report.pieces import meter, meters, muted


def draw_headline(facts: Facts) -> Markup:
    """The state of the certificate in large letters, and the verdict on the NPU beside it."""
    verdict = as_dict(facts.summary.get("verdict"))
    repeats = whole(verdict.get("repeats"))
    often = f", {plural(repeats, 'repeat')} each, in turns; medians" if repeats else ""
    how = muted(f"Traversal time without and with the NPU, measured in this job{often}.") if verdict else EMPTY
    notes = [how, draw_warning(facts), draw_prediction(as_dict(facts.summary.get("predicted")))]
    state, said = "Certified" if facts.certified else "NOT certified", _certificate_sentence(facts)
    words = draw_state(facts.certified, state, said, el("p", verdict_text(facts), class_="say"), *notes)
    bars = _draw_comparison(number(verdict.get("cpu_only_seconds")), number(verdict.get("hybrid_seconds")))
    style = "verdict" if facts.certified else "verdict failed"
    return el("section", words, el("div", bars), class_=style, id="verdict")


def _draw_comparison(cpu_only: float | None, hybrid: float | None) -> Markup:
    """Two bars to one linear scale, if both are known: what the CPU took alone and what the hybrid job took."""
    if cpu_only is None or hybrid is None or max(cpu_only, hybrid) <= 0:
        return EMPTY
    rows = [
        (name, meter(max(0.4, 100 * value / max(cpu_only, hybrid)), style, 14), seconds(value))
        for name, value, style in (("CPU only", cpu_only, "k-push"), ("hybrid", hybrid, "k-compute"))
    ]
    return meters("Traversal time, same scale", rows)


def draw_prediction(predicted: dict[str, object]) -> Markup:
    """What the planner had expected, beside what came of it; nothing where nothing was predicted."""
    if not predicted:
        return EMPTY
    compared = []
    for name, way in (("cpu_only", "CPU-only"), ("hybrid", f"hybrid ({predicted.get('mode')})")):
        expected, measured = (number(predicted.get(f"{kind}{name}_seconds")) for kind in ("", "measured_"))
        if expected is not None:
            off = measured / expected if measured and expected else 0.0
            error = "" if not off else f" ({off:.2f} times as long)" if off >= 1 else f" ({1 / off:.2f} times as fast)"
            compared.append(f"{way} {seconds(expected)}, measured {seconds(measured)}{error}")
    device = str(predicted.get("device") or "unknown")
    truth = "measured on this machine" if predicted.get("kind") == "measured" else "a model, not measured"
    words = f"Predicted {'; '.join(compared)}." if compared else "The planner:"
    reason = str(predicted.get("reason") or "").rstrip(".")
    why = "" if reason in ("", "as configured") else f" {reason[0].upper()}{reason[1:]}."
    return muted(f"{words} Device {device} ({truth}).{why}")


def draw_state(certified: bool, state: str, said: str, *notes: Markup) -> Markup:
    """The state of the check in large letters behind a tick or a cross, what it means, and notes."""
    shape = "M9 18.5l6 6L27 12" if certified else "M11 11l14 14M25 11L11 25"
    colour = "var(--good)" if certified else "var(--bad)"
    disc = el("circle", cx=18, cy=18, r=18, style=f"fill:{colour}")
    stroke = "fill:none;stroke:var(--card);stroke-width:4;stroke-linecap:round;stroke-linejoin:round"
    mark = el("path", d=shape, style=stroke)
    sign = el("svg", disc, mark, width=36, height=36, viewBox="0 0 36 36", aria_hidden="true")
    return el("div", el("h1", sign, state), el("p", said), *notes)


def _certificate_sentence(facts: Facts) -> str:
    if facts.certified:
        of_all = f" of all {len(facts.runs):,} sources" if len(facts.runs) > 1 else ""
        return f"Every level and parent{of_all} was checked against the graph: the answer is exact."
    failed = [str(run.get("source")) for run in facts.run_rows if not run.get("certified")]
    listed = ", ".join(failed[:8]) + (f" and {len(failed) - 8:,} more" if len(failed) > 8 else "")
    named = f" Not certified: {'source' if len(failed) == 1 else 'sources'} {listed}." if failed else ""
    fix = "run the job again with --set npu.mode=off" if facts.with_npu else "see log.txt for what went wrong"
    return f"Do not use these levels: the certificate does not hold.{named} Fix: {fix}."


def verdict_text(facts: Facts) -> str:
    """The summary's own sentence on whether the NPU pays, or one made of its figures."""
    verdict = as_dict(facts.summary.get("verdict"))
    if not verdict:
        if not facts.with_npu:
            return "CPU only: the NPU was off in this job."
        return "No verdict on the NPU: CPU-only was not measured in this job."
    if verdict.get("text"):
        return str(verdict["text"])
    gain = number(verdict.get("ratio"))
    pays = "" if gain is None else ": the NPU pays here" if gain > 1 else ": the NPU does not pay here"
    return (
        f"CPU-only {seconds(verdict.get('cpu_only_seconds'))}, hybrid {seconds(verdict.get('hybrid_seconds'))}"
        f"{pays} ({ratio(gain)})"
    )


def draw_warning(facts: Facts) -> Markup:
    """That the machine was busy, if it was."""
    warning = as_dict(facts.summary.get("machine")).get("warning")
    return el("p", f"The machine was {warning}.", class_="bad") if warning else EMPTY


def draw_cards(facts: Facts) -> Markup:
    """The key figures."""
    summary, times = facts.summary, facts.seconds
    engine = f"{summary['engine']} engine" if summary.get("engine") else ""
    ranks = plural(whole(facts.ranks.get("ranks")), "rank") if facts.on_ranks else ""
    traversing = f"{seconds(times['traverse'])} of it traversing" if "traverse" in times else ""
    cards = [
        *graph_cards(facts.graph, summary.get("algorithm")),
        card("Reached", count(summary.get("reached")), _reach(facts)),
        card("Max level", count(summary.get("max_level")), "steps from the source"),
        card("TEPS", compact(summary.get("teps")), "traversed edges/second"),
        card("Total time", seconds(times.get("total", facts.total or None)), traversing),
        card("Sources", count(len(facts.runs)), ", ".join(part for part in (engine, ranks) if part)),
        card("Core", count(facts.core.get("size")), _core(facts)),
        _device_card(facts),
    ]
    return el("dl", *cards, class_="cards")


def graph_cards(graph: Mapping[str, Any], algorithm: object) -> list[Markup]:
    """What ran on which graph."""
    isolated = f"{count(graph['isolated'])} isolated" if "isolated" in graph else ""
    directed = graph.get("directed")
    kind = "" if directed is None else "directed" if directed else "undirected"
    return [
        card("Graph", graph.get("name") or DASH, str(algorithm or ""), text=True),
        card("Vertices", count(graph.get("vertices")), isolated),
        card("Edges", count(graph.get("edges")), kind),
    ]


def _core(facts: Facts) -> str:
    if not whole(facts.core.get("size")):
        return "no dense core"
    density = number(facts.core.get("density"))
    about = f", {share(density, 1)} dense" if density is not None else ""
    return f"{compact(facts.core.get('edges'))} {'edge' if facts.core.get('edges') == 1 else 'edges'}{about}"


def card(name: str, value: object, below: str = "", *, text: bool = False) -> Markup:
    """One key figure under its name; ``text``: in smaller letters."""
    shown = el("dd", value, class_="text" if text else None)
    return el("div", el("dt", name), shown, el("dd", below, class_="sub") if below else EMPTY)


def _reach(facts: Facts) -> str:
    reached = whole(facts.summary.get("reached"))
    each = [whole(run.get("reached")) for run in facts.run_rows]
    if len(each) > 1 and reached == sum(each):
        return f"in all, from {len(each):,} sources"
    vertices = whole(facts.graph.get("vertices"))
    if reached <= 1:
        return "only the source itself" if reached else "nothing"
    return f"{share(reached, vertices)} of the vertices" if 0 < reached <= vertices else ""


def _device_card(facts: Facts) -> Markup:
    if not facts.with_npu:
        return card("NPU device", "off", "npu.mode: off", text=True)
    name, worker = str(facts.npu.get("device") or "none"), facts.npu.get("worker")
    device = f"{name} (MindSpore)" if name.upper() == "CPU" else name
    about = f"mode {facts.mode}" + (f", worker {worker}" if isinstance(worker, str) and worker else "")
    return card("NPU device", device, about, text=True)
