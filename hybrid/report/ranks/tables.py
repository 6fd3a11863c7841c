"""The ranks in numbers: one row per rank, and what travelled by phase and encoding.

Invariant: every bar stands beside its number; the rows add up to the row of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybrid.charts.markup import EMPTY, Markup, el, percent
from hybrid.charts.units import DASH, count, number, seconds, share, significant, size, whole
from hybrid.report.facts import as_dict
from hybrid.report.pieces import meter
from hybrid.report.ranks.lanes import short_names
from hybrid.report.tables import TALL, Row, table

PHASES = {
    "reduce": "reduce: mirrors to masters",
    "broadcast": "broadcast: masters to mirrors",
    "fold": "fold: mirrors to masters",
    "spread": "spread: masters to mirrors",
    "core": "core: masters to and from workers",
    "parents": "parents: once, at the end",
}
ENCODINGS = {
    "whole": "whole array",
    "bitset": "bitset",
    "offsets": "offsets",
    "offsets16": "offsets, 16 bit",
    "offsets32": "offsets, 32 bit",
    "ids": "ids",
    "values": "values",
    "nothing": "empty: nothing new",
}
KINDS = ("compute", "pack", "wait")
FIGURES: dict[str, tuple[str, Callable[[object], str]]] = {
    "arcs": ("Arcs", count),
    "masters": ("Masters", count),
    "mirrors": ("Mirrors", count),
    "compute_s": ("Compute", seconds),
    "pack_s": ("Pack", seconds),
    "wait_s": ("Wait", seconds),
    "bytes": ("Sent", size),
    "messages": ("Messages", count),
    "rounds": ("Rounds", count),
    "relaxations": ("Relaxations", count),
    "redundant_relaxations": ("Redundant", count),
}
BAR_AFTER = 6  # figures: the bar of a rank's time stands behind its three times


def real(facts: Mapping[str, Any], name: str) -> float:
    """A figure that must not be negative; 0 when it is missing."""
    return max(0.0, number(facts.get(name)) or 0.0)


def rank_table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """One row per rank, their sums, and the largest against the mean."""
    hosts = short_names({str(one.get("host") or DASH) for one in rows})
    several = len(hosts) > 1
    text = (0, 1) if several else (0,)
    longest = max((sum(real(one, f"{kind}_s") for kind in KINDS) for one in rows), default=0.0)

    def draw(first: str, host: str, values: Mapping[str, str], bar: Markup, style: str | None = None) -> Row:
        cells: list[object] = [first, *([host] if several else []), *(values[name] for name in FIGURES)]
        cells.insert(len(text) + BAR_AFTER, bar)
        return Row(cells, style)

    body = []
    for one in rows:
        own = {name: written(one.get(name)) for name, (_, written) in FIGURES.items()}
        body.append(draw(count(one.get("rank")), hosts[str(one.get("host") or DASH)], own, _time_bar(one, longest)))
    if len(rows) > 1:
        sums = {name: written(_sum(rows, name)) for name, (_, written) in FIGURES.items()} | {"rounds": ""}
        uneven = {name: _uneven(rows, name) for name in FIGURES}
        below = [draw("all", "", sums, EMPTY, "sum"), draw("largest / mean", "", uneven, EMPTY, "sum")]
        # They come first when there are many rows, so that they are seen without scrolling.
        body = [*below, *body] if len(rows) > TALL else [*body, *below]
    heads = ["Rank", *(["Machine"] if several else []), *(head for head, _ in FIGURES.values())]
    heads.insert(len(text) + BAR_AFTER, "Its time")
    caption = "Ranks: what each held, did and sent, over all sources"
    return el("div", table(heads, body, text_columns=text, caption=caption), class_="each")


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> float | int:
    values = [one.get(name) for one in rows]
    return sum(real(one, name) for one in rows) if name.endswith("_s") else sum(whole(value) for value in values)


def _uneven(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    values = [real(one, name) for one in rows]
    total = sum(values)
    return f"{max(values) * len(values) / total:.2f}" if total else DASH


def _time_bar(one: Mapping[str, Any], longest: float) -> Markup:
    """Compute, pack and wait as one bar; the longest of all ranks fills the cell."""
    if longest <= 0:
        return EMPTY
    x, parts = 0.0, []
    for kind in KINDS:
        width = 100 * real(one, f"{kind}_s") / longest
        parts.append(el("rect", x=percent(x), width=percent(width), height=12, class_=f"r-{kind}"))
        x += width
    whole_time = sum(real(one, f"{kind}_s") for kind in KINDS)
    tip = ", ".join(f"{kind} {share(real(one, f'{kind}_s'), whole_time)}" for kind in KINDS)
    return el("svg", el("title", tip), *parts, class_="times", width=110, height=12, role="img")


def traffic_table(traffic: Mapping[str, Any]) -> Markup:
    """Bytes and messages by phase and encoding, as bars with their numbers. Nothing when nothing travelled."""
    found = [
        (phase, encoding, real(tally, "bytes"), real(tally, "messages"))
        for phase, forms in traffic.items()
        for encoding, tally in ((name, as_dict(value)) for name, value in as_dict(forms).items())
    ]
    found = [one for one in found if one[2] or one[3]]
    if not found:
        return EMPTY
    order = {name: i for i, name in enumerate(ENCODINGS)}
    found.sort(key=lambda one: (list(traffic).index(one[0]), order.get(one[1], len(order))))
    most_bytes, most_messages = max(one[2] for one in found), max(one[3] for one in found)
    rows, previous = [], None
    for phase, encoding, sent, messages in found:
        each = sent / messages if messages else 0.0
        cells: list[object] = [
            "" if phase == previous else PHASES.get(phase, phase),
            ENCODINGS.get(encoding, encoding),
            _bar(sent, most_bytes, "r-bytes"),
            size(sent),
            _bar(messages, most_messages, "r-messages"),
            count(messages),
            f"{size(float(significant(each).replace(',', '')))}" if sent else DASH,
        ]
        rows.append(Row(cells))
        previous = phase
    heads = ["Phase", "Encoding", "Bytes", "", "Messages", "", "Per message"]
    body = table(heads, rows, text_columns=(0, 1, 2, 4), caption="Bytes and messages by phase and encoding")
    return el("div", body, class_="traffic")


def _bar(value: float, most: float, style: str) -> Markup:
    if not value or not most:
        return EMPTY
    return meter(max(1.0, 100 * value / most), style)
