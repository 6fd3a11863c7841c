"""The section on a job's ranks: how many, how even, what each did when, and what went over the wire.

Invariant: pictures are drawn of as many of the slowest sources as the page has room for, at least of one; the section
says which are missing. Without a trace of the ranks, or without their numbers, it says so and shows the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.charts.markup import EMPTY, Markup, el, join
from hybrid.charts.scale import window
from hybrid.charts.units import DASH, SPACE, compact, count, number, plural, seconds, share, size, whole
from hybrid.report.blocks import DIRECTIONS
from hybrid.report.facts import Event, Facts, as_dict, as_list
from hybrid.report.panels import LEGEND as STEPS
from hybrid.report.pieces import Panel, draw_panels, figures, legend, legend_item, muted, section, zoomable
from hybrid.report.ranks.lanes import MAX_LANES, STACK, Machine, hosts_of, machines_of, style_of
from hybrid.report.ranks.picture import Budget, draw_ranks, is_dense
from hybrid.report.ranks.tables import KINDS, rank_table, real, traffic_table

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


@dataclass(frozen=True)
class _Search:
    """One source's events by rank, and how long it took."""

    source: str
    run: Mapping[str, Any]
    events: Mapping[int, Sequence[Event]]
    lasted: float


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
    imbalance = number(ranks.get("load_imbalance"))
    busiest = max(rows, key=lambda one: real(one, "compute_s"))
    spent = ", ".join(f"{_part_of_time(rows, kind)}{SPACE}{kind}" for kind in KINDS)
    if imbalance is None:
        return f"Over all sources. Of the ranks' time {spent}."
    return (
        f"Over all sources. Load imbalance {imbalance:.2f}: rank {count(busiest.get('rank'))} computed longest, "
        f"{imbalance:.2f} times the mean. Of the ranks' time {spent}."
    )


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
    named = [
        ("load imbalance", _two_digits(ranks.get("load_imbalance"))),
        ("arc imbalance", _two_digits(ranks.get("arc_imbalance"))),
        ("copies per vertex", _two_digits(ranks.get("replication"))),
        ("time computing", _part_of_time(rows, "compute")),
        ("time waiting", _part_of_time(rows, "wait")),
        ("sent", size(totals.get("bytes"))),
        ("of (id, value) pairs", _fraction(real(totals, "bytes") / pairs) if pairs else DASH),
        ("relaxations per vertex reached", f"{relaxations / reached:.2f}" if reached and relaxations else DASH),
    ]
    return figures(named)


def _two_digits(value: object) -> str:
    found = number(value)
    return DASH if found is None else f"{found:.2f}"


def _part_of_time(rows: Sequence[Mapping[str, Any]], kind: str) -> str:
    spent = {one: sum(real(row, f"{one}_s") for row in rows) for one in KINDS}
    return share(spent[kind], sum(spent.values()))


# -------------------------------------------------------------------------------------------------- the pictures


def _draw_pictures(facts: Facts) -> list[Markup]:
    searches = _searches_of(facts)
    if not searches:
        return [muted("The trace has no events of the ranks: there is no picture of them.")]
    hosts = hosts_of(facts.ranks)
    slowest = _worth_drawing(searches)
    shown = [one for one in searches if one in slowest]
    lanes = min(MAX_LANES, len({*hosts, *(rank for one in shown for rank in one.events)}))
    columns = max(LEAST_COLUMNS, min(MOST_COLUMNS, COLUMNS // (lanes * len(shown))))
    budget = Budget(columns, max(60, POINTABLE // len(shown)))
    panels = []
    for i, one in enumerate(shown):
        drawn = _draw_search(one, machines_of(hosts, one.events), budget, f"ranks{i}")
        panels.append(Panel(one.source, drawn, el("span", seconds(one.lasted), class_="took")))
    opened = shown.index(slowest[0])
    few = "the slowest source is" if len(shown) == 1 else f"the {len(shown)} slowest sources are"
    left_out = muted(f"Of {len(searches):,} sources {few} drawn.") if len(shown) < len(searches) else EMPTY
    return [el("div", *draw_panels(panels, opened, left_out, "ranks-"), class_="group")]


def _worth_drawing(searches: Sequence[_Search]) -> list[_Search]:
    """The slowest first, as many as there is room for."""
    found: list[_Search] = []
    columns = 0
    for search in sorted(searches, key=lambda one: -one.lasted):
        columns += sum(min(LEAST_COLUMNS, 2 * len(own)) for own in search.events.values())
        if found and (columns > COLUMNS or len(found) == MAX_PICTURES):
            break
        found.append(search)
    return found


def _searches_of(facts: Facts) -> list[_Search]:
    """The sources of which the ranks' trace knows something, in the order of the summary."""
    by_source: dict[str, dict[int, list[Event]]] = {}
    for rank, events in facts.rank_events.items():
        for event in events:
            if event.source is not None:
                by_source.setdefault(event.source, {}).setdefault(rank, []).append(event)
    order = {run.source: i for i, run in enumerate(facts.runs)}
    runs = {run.source: run.run for run in facts.runs}
    searches = []
    for source in sorted(by_source, key=lambda one: order.get(one, len(order))):
        own = [event for some in by_source[source].values() for event in some]
        lasted = max(event.t1 for event in own) - min(event.t0 for event in own)
        searches.append(_Search(source, runs.get(source, {}), by_source[source], lasted))
    return searches


def _draw_search(search: _Search, machines: Sequence[Machine], budget: Budget, name: str) -> list[Markup]:
    own = [event for some in search.events.values() for event in some]
    scale = window(min(event.t0 for event in own), max(event.t1 for event in own))
    title = f"Ranks over time, source {search.source}"
    drawing = draw_ranks(machines, scale, budget, name=name, title=title)
    about = f"{seconds(scale.span)}, beginning {seconds(scale.start)} into the job"
    return [
        zoomable(name, f"Source {search.source}", drawing, about),
        muted(say_search(search.run)) if search.run else EMPTY,
        _draw_legend(own, dense=is_dense(machines)),
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


def _draw_legend(events: Sequence[Event], *, dense: bool) -> Markup:
    used = {style_of(event) for event in events if event.actor != "npu"}
    items = [legend_item(f"r-{style}", LEGEND[style]) for style in STACK if style in used]
    if any(event.kind == "round" for event in events):
        items.append(legend_item("k-round", "round of the machine's NPU worker"))
    items.append(legend_item("band", "nothing recorded"))
    note = muted("Where events are too short to draw, heights are their shares of the time.")
    return join([legend(items, "legend dense" if dense else "legend"), note])
