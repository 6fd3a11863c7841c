"""The section on a job's ranks: how many, how even, what each did when, and what went over the wire.

Invariant: pictures are drawn of as many of the slowest sources as the page has room for, at least of one; the section
says which are missing. Without a trace of the ranks, or without their numbers, it says so and shows the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybrid.charts.markup import EMPTY, Markup, el, percent
from hybrid.charts.scale import window
from hybrid.charts.units import DASH, SPACE, compact, count, number, plural, seconds, share, significant, size, whole
from hybrid.report.blocks import DIRECTIONS
from hybrid.report.facts import Event, Facts, as_dict, as_list, span_of
from hybrid.report.panels import LEGEND as STEPS
from hybrid.report.panels import since
from hybrid.report.pieces import Panel, draw_panels, figures, legend, legend_item, meter, muted, section, zoomable
from hybrid.report.ranks.picture import (
    MAX_LANES,
    STACK,
    Machine,
    draw_ranks,
    hosts_of,
    is_dense,
    machines_of,
    short_names,
    style_of,
)
from hybrid.report.tables import Row, table

COLUMNS = 20_000  # in all lanes of all pictures together
LEAST_COLUMNS, MOST_COLUMNS = 120, 600  # per lane
POINTABLE = 900  # events that can be pointed at, in all pictures together
MAX_PICTURES = 24
POLICIES = {
    "oec": "outgoing edge-cut",
    "iec": "incoming edge-cut",
    "cvc": "Cartesian vertex-cut",
    "uvc": "hybrid vertex-cut",
    "2d": "2D grid",
}
SYNCS = {"bsp": "in rounds together (BSP)", "basp": "asynchronously (BASP)"}
LEGEND = {
    **{direction: STEPS[direction] for direction in DIRECTIONS},
    "compute": "other work",
    "pack": "pack: makes and reads messages",
    "wait": "wait: in communication",
}
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
Search = Mapping[int, Sequence[Event]]  # one source's events, by rank


def draw_ranks_section(facts: Facts) -> Markup:
    """The whole section; nothing for a job without ranks."""
    if not facts.on_ranks:
        return EMPTY
    ranks = facts.ranks
    rows = [as_dict(one) for one in as_list(ranks.get("per_rank")) if as_dict(one)]
    parts = [
        _draw_figures(facts, rows),
        *_draw_pictures(facts),
        el("h3", "Each rank"),
        el("p", say_balance(ranks, rows)),
        rank_table(rows) if rows else muted("The summary lists no ranks."),
        el("h3", "What went over the wire"),
        el("p", say_bytes(as_dict(ranks.get("totals")), len(rows))),
        traffic_table(as_dict(as_dict(ranks.get("totals")).get("traffic"))),
    ]
    return section("Ranks over time", *parts, id="ranks", lead=say_ranks(ranks), long=True)


# ----------------------------------------------------------------------------------------------------- in words


def say_ranks(ranks: Mapping[str, Any]) -> str:
    """How many ranks on which machines, how the graph was cut, how they communicate."""
    hosts = as_dict(ranks.get("hosts"))
    on = f"on {next(iter(hosts))}" if len(hosts) == 1 else f"on {plural(len(hosts), 'machine')}" if hosts else ""
    policy, sync = str(ranks.get("policy") or ""), str(ranks.get("sync") or "")
    grid = [whole(side) for side in as_list(ranks.get("grid"))]
    shape = f" of {grid[0]} x {grid[1]}" if len(grid) == 2 and policy in ("cvc", "2d") else ""
    cut = f"cut by {policy} ({POLICIES.get(policy, 'a policy of its own')}{shape})" if policy else ""
    together = f"working {SYNCS[sync]}" if sync in SYNCS else ""
    words = [f"{plural(whole(ranks.get('ranks')), 'rank')} {on}".strip(), cut, together]
    return ", ".join(word for word in words if word) + "."


def say_balance(ranks: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """How evenly the work was spread."""
    if len(rows) < 2:
        return "Over all sources. With a single rank there is nothing to balance."
    imbalance, uneven = number(ranks.get("load_imbalance")), ""
    if imbalance is not None:
        busiest = count(max(rows, key=lambda one: real(one, "compute_s")).get("rank"))
        longest = f"rank {busiest} computed longest, {imbalance:.2f} times the mean"
        uneven = f" Load imbalance {imbalance:.2f}: {longest}."
    spent = ", ".join(f"{_part_of_time(rows, kind)}{SPACE}{kind}" for kind in KINDS)
    return f"Over all sources.{uneven} Of the ranks' time {spent}."


def say_bytes(totals: Mapping[str, Any], ranks: int) -> str:
    """Bytes sent against what pairs of id and value would have taken."""
    sent, pairs = real(totals, "bytes"), real(totals, "pair_bytes")
    if not sent:
        return "Nothing was sent." + (" A single rank has no other to send to." if ranks == 1 else "")
    in_messages = f"{size(sent)} in {plural(whole(totals.get('messages')), 'message')}"
    if not pairs:
        return f"{in_messages}. What (id, value) pairs would have taken was not counted for this engine."
    return (
        f"{in_messages}; an (id, value) pair of 8 bytes for every update would have been {size(pairs)}: "
        f"{_fraction(sent / pairs)} of that was sent."
    )


def _fraction(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _draw_figures(facts: Facts, rows: Sequence[Mapping[str, Any]]) -> Markup:
    ranks, totals = facts.ranks, as_dict(facts.ranks.get("totals"))
    pairs, reached = real(totals, "pair_bytes"), real(facts.summary, "reached")
    relaxations = real(totals, "relaxations")
    ratios = {"load imbalance": "load_imbalance", "arc imbalance": "arc_imbalance", "copies per vertex": "replication"}
    named = [
        *(
            (name, DASH if (found := number(ranks.get(key))) is None else f"{found:.2f}")
            for name, key in ratios.items()
        ),
        ("time computing", _part_of_time(rows, "compute")),
        ("time waiting", _part_of_time(rows, "wait")),
        ("sent", size(totals.get("bytes"))),
        ("of (id, value) pairs", _fraction(real(totals, "bytes") / pairs) if pairs else DASH),
        ("relaxations per vertex reached", f"{relaxations / reached:.2f}" if reached and relaxations else DASH),
    ]
    return figures(named)


def _part_of_time(rows: Sequence[Mapping[str, Any]], kind: str) -> str:
    spent = {one: sum(real(row, f"{one}_s") for row in rows) for one in KINDS}
    return share(spent[kind], sum(spent.values()))


# -------------------------------------------------------------------------------------------------- the pictures


def _draw_pictures(facts: Facts) -> list[Markup]:
    searches = _searches_of(facts)
    if not searches:
        return [muted("The trace has no events of the ranks: there is no picture of them.")]
    hosts, runs = hosts_of(facts.ranks), {run.source: run.run for run in facts.runs}
    slowest = _worth_drawing(searches)
    shown = [source for source in searches if source in slowest]
    lanes = min(MAX_LANES, len({*hosts, *(rank for source in shown for rank in searches[source])}))
    columns = max(LEAST_COLUMNS, min(MOST_COLUMNS, COLUMNS // (lanes * len(shown))))
    pointable, panels = max(60, POINTABLE // len(shown)), []
    for i, source in enumerate(shown):
        search, about = searches[source], say_search(runs.get(source, {}))
        drawn = _draw_search(source, search, machines_of(hosts, search), f"ranks{i}", columns, pointable)
        drawn.insert(1, muted(about) if runs.get(source) else EMPTY)
        panels.append(Panel(source, drawn, el("span", seconds(_lasted(search)), class_="took")))
    opened = shown.index(slowest[0])
    few = "the slowest source is" if len(shown) == 1 else f"the {len(shown)} slowest sources are"
    left_out = muted(f"Of {len(searches):,} sources {few} drawn.") if len(shown) < len(searches) else EMPTY
    return [el("div", *draw_panels(panels, opened, left_out, "ranks-"), class_="group")]


def _lasted(search: Search) -> float:
    begin, end = span_of([event for own in search.values() for event in own])
    return end - begin


def _worth_drawing(searches: Mapping[str, Search]) -> list[str]:
    """The slowest first, as many as there is room for."""
    found: list[str] = []
    columns = 0
    for source in sorted(searches, key=lambda one: -_lasted(searches[one])):
        columns += sum(min(LEAST_COLUMNS, 2 * len(own)) for own in searches[source].values())
        if found and (columns > COLUMNS or len(found) == MAX_PICTURES):
            break
        found.append(source)
    return found


def _searches_of(facts: Facts) -> dict[str, Search]:
    """The sources of which the ranks' trace knows something, in the order of the summary."""
    by_source: dict[str, dict[int, list[Event]]] = {run.source: {} for run in facts.runs}
    for rank, events in facts.rank_events.items():
        for event in events:
            if event.source is not None:
                by_source.setdefault(event.source, {}).setdefault(rank, []).append(event)
    return {source: search for source, search in by_source.items() if search}


def _draw_search(
    source: str, search: Search, machines: Sequence[Machine], name: str, columns: int, pointable: int
) -> list[Markup]:
    own = [event for some in search.values() for event in some]
    scale, title = window(*span_of(own)), f"Ranks over time, source {source}"
    drawing = draw_ranks(machines, scale, columns=columns, pointable=pointable, name=name, title=title)
    used = {style_of(event) for event in own if event.actor != "npu"}
    items = [legend_item(f"r-{style}", LEGEND[style]) for style in STACK if style in used]
    if any(event.kind == "round" for event in own):
        items.append(legend_item("k-round", "round of the machine's NPU worker"))
    items.append(legend_item("band", "nothing recorded"))
    return [
        zoomable(name, f"Source {source}", drawing, since(scale)),
        legend(items, "legend dense" if is_dense(machines) else "legend"),
        muted("Where events are too short to draw, heights are their shares of the time."),
    ]


def say_search(run: Mapping[str, Any]) -> str:
    """One search in numbers."""
    found, times = as_dict(run.get("ranks")), as_dict(run.get("seconds"))
    pairs, imbalance = number(found.get("bytes_against_pairs")), number(found.get("load_imbalance"))
    words = [
        f"Traversed in {seconds(times.get('traverse'))}, parents (not drawn) included" if "traverse" in times else "",
        plural(whole(found.get("rounds")), "round") if "rounds" in found else "",
        f"{size(found.get('bytes'))} in {compact(found.get('messages'))} messages" if "bytes" in found else "",
        f"{_fraction(pairs)} of (id, value) pairs" if pairs is not None else "",
        f"load imbalance {imbalance:.2f}" if imbalance is not None else "",
    ]
    said = ", ".join(word for word in words if word)
    return f"{said}." if said else ""


# ------------------------------------------------------------------------------------------------- the tables


def real(facts: Mapping[str, Any], name: str) -> float:
    """A figure that must not be negative; 0 when it is missing."""
    return max(0.0, number(facts.get(name)) or 0.0)


def rank_table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """One row per rank, their sums, and the largest against the mean."""
    named = [str(one.get("host") or DASH) for one in rows]
    hosts = short_names(set(named))
    longest = max(sum(real(one, f"{kind}_s") for kind in KINDS) for one in rows)
    first: dict[str, list[object]] = {"Rank": [*(count(one.get("rank")) for one in rows), "all", "largest / mean"]}
    if len(hosts) > 1:
        first["Machine"] = [*(hosts[host] for host in named), "", ""]
    figures_of: dict[str, list[object]] = {
        head: [*(written(one.get(name)) for one in rows), written(_sum(rows, name)), _uneven(rows, name)]
        for name, (head, written) in FIGURES.items()
    }
    figures_of["Rounds"][-2] = ""  # all ranks make the same
    columns = [*first.items(), *figures_of.items()]
    columns.insert(len(first) + BAR_AFTER, ("Its time", [*(_time_bar(one, longest) for one in rows), EMPTY, EMPTY]))
    lines = list(zip(*(cells for _, cells in columns), strict=True))
    sums = [Row(cells, "sum") for cells in lines[-2:]] if len(rows) > 1 else []
    caption, text = "Ranks: what each held, did and sent, over all sources", range(len(first))
    body, heads = [Row(cells) for cells in lines[:-2]], [head for head, _ in columns]
    return el("div", table(heads, body, text_columns=text, caption=caption, sums=sums), class_="each")


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> float | int:
    return sum(real(one, name) if name.endswith("_s") else whole(one.get(name)) for one in rows)


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
    order = {name: i for i, name in enumerate(ENCODINGS)}
    found = []
    for phase, forms in traffic.items():
        for encoding, tally in sorted(as_dict(forms).items(), key=lambda one: order.get(one[0], len(order))):
            sent, messages = real(as_dict(tally), "bytes"), real(as_dict(tally), "messages")
            if sent or messages:
                found.append((phase, encoding, sent, messages))
    if not found:
        return EMPTY
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
            size(float(significant(each).replace(",", ""))) if sent else DASH,
        ]
        rows.append(Row(cells))
        previous = phase
    heads = ["Phase", "Encoding", "Bytes", "", "Messages", "", "Per message"]
    body = table(heads, rows, text_columns=(0, 1, 2, 4), caption="Bytes and messages by phase and encoding")
    return el("div", body, class_="traffic")


def _bar(value: float, most: float, style: str) -> Markup:
    return meter(max(1.0, 100 * value / most), style) if value and most else EMPTY
