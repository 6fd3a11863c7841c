"""The page of user-written loops and vertex programs: what each thread did when, and how even the load was.

Reads a trace with events of ``thread 0``, ``thread 1``, ..., as LoopReport.trace and ProgramResult.trace add them.
Invariant: any trace gives a complete page that needs no network; records that are no thread's are not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid.charts.markup import Markup, document, el
from hybrid.charts.scale import TimeScale, window
from hybrid.charts.units import count, moment, plural, seconds, share
from hybrid.report import style
from hybrid.report.blocks import Block, gather
from hybrid.report.facts import Event, number_of, read_events, span_of
from hybrid.report.pieces import legend, legend_item, section, zoomable
from hybrid.report.tables import Row, table
from hybrid.report.timeline import AXIS, GAP, LANE, NARROWEST, Lane, draw_block, draw_lanes
from hybrid.results.trace import Trace

MAX_LANES = 64
BLOCKS = 400  # in a lane
STYLES = {"push": "cpu", "pull": "pull", "wait": "wait", "update": "pack", "totals": "other"}
MEANING = {
    "cpu": "loop, or round that pushes",
    "pull": "round that pulls",
    "pack": "update",
    "other": "totals",
    "wait": "waits for other threads",
}


@dataclass(frozen=True)
class Kind:
    """All launches of one loop or program step: seconds busy and work, by thread."""

    name: str
    launches: int
    busy: Mapping[int, float]
    work: Mapping[int, int]

    @property
    def busiest_over_mean(self) -> float:
        """By work where it was counted, else by time."""
        counted = [float(one) for one in self.work.values()]
        values = counted if sum(counted) else list(self.busy.values())
        return max(values) * len(values) / sum(values) if values and sum(values) else 1.0


def write_threads_report(path: Path | str, trace: Trace, title: str = "Loops") -> Path:
    """Write the page to ``path`` and return it."""
    target = Path(path)
    target.write_text(render_threads_page(trace.events, title), encoding="utf-8")
    return target


def render_threads_page(trace: Iterable[object], title: str) -> str:
    """The page as HTML text."""
    threads = threads_of(trace)
    nothing = "No thread did anything that the trace knows of. Fix: call report.trace(trace) after each loop."
    sections = [_timeline(threads), _balance(threads)] if threads else [el("p", nothing)]
    return document(title, style.CSS, style.PATTERNS, el("main", el("h1", title), *sections), script=style.SCRIPT)


def threads_of(trace: Iterable[object]) -> dict[int, list[Event]]:
    """Each thread's events in order of time."""
    records: dict[int, list[object]] = {}
    for record in trace:
        thread = number_of("thread", record)
        if thread is not None and isinstance(record, Mapping):
            records.setdefault(thread, []).append({**record, "actor": "cpu"})
    events = {thread: read_events(own)[0] for thread, own in sorted(records.items())}
    return {thread: own for thread, own in events.items() if own}


def kinds_of(threads: Mapping[int, Sequence[Event]]) -> list[Kind]:
    """What was launched, the longest first."""
    names = {name_of(e) for own in threads.values() for e in own if e.kind != "wait"}
    kinds = []
    for name in names:
        mine = {thread: [e for e in own if e.kind != "wait" and name_of(e) == name] for thread, own in threads.items()}
        mine = {thread: own for thread, own in mine.items() if own}  # threads that took part
        busy = {thread: sum(e.duration for e in own) for thread, own in mine.items()}
        work = {thread: sum(e.count("work") or e.count("edges") for e in own) for thread, own in mine.items()}
        kinds.append(Kind(name, max(len(own) for own in mine.values()), busy, work))
    return sorted(kinds, key=lambda kind: (-sum(kind.busy.values()), kind.name))


def name_of(event: Event) -> str:
    """Loop and operator, or program and direction."""
    if event.kind == "wait":
        return "waits"
    return " ".join(part for part in (event.text("program"), event.kind, event.text("operator")) if part)


class _Stretch(Block):
    """What one thread did in one launch."""

    @property
    def name(self) -> str:
        return "" if self.event is None else name_of(self.event)

    @property
    def tip(self) -> str:
        event = self.event
        if event is None:
            return self.gathered
        rounds, first = event.count("rounds"), event.count("round")
        which = f"rounds {count(first)} to {count(first + rounds - 1)}" if rounds > 1 else f"round {first}"
        facts = [
            which if rounds else "",
            *(f"{name} {count(event.facts[name])}" for name in ("tasks", "work", "edges", "steals")
              if name in event.facts),
            "simulated" if event.facts.get("simulated") else "",
        ]  # fmt: skip
        known = ", ".join(one for one in facts if one)
        return f"{self.name}: {seconds(event.duration)}.{' ' + known + '.' if known else ''} At {moment(event.t0)}"


def _timeline(threads: Mapping[int, Sequence[Event]]) -> Markup:
    every = [e for own in threads.values() for e in own]
    scale = window(*span_of(every))
    shown = dict(list(threads.items())[:MAX_LANES])
    lead = f"{plural(len(threads), 'thread')}; a hatched stretch is time in which a thread waited for the others."
    if len(shown) < len(threads):
        lead += f" The first {len(shown)} are drawn."
    used = {STYLES.get(e.kind, "cpu") for e in every}
    fills = legend([legend_item(f"k-{one}", text) for one, text in MEANING.items() if one in used])
    drawing = _draw(shown, scale)
    view = zoomable("threads", "All threads", drawing, f"{seconds(scale.span)} from first to last")
    return section("Who worked when", view, fills, id="timeline", lead=lead)


def _draw(threads: Mapping[int, Sequence[Event]], scale: TimeScale) -> Markup:
    lanes = [Lane("cpu", f"Thread {thread}", AXIS + place * (LANE + GAP)) for place, thread in enumerate(threads)]
    body = []
    for lane, events in zip(lanes, threads.values(), strict=True):
        blocks = [_Stretch(e.t0, e.t1, STYLES.get(e.kind, "cpu"), e, None, e.duration) for e in events]
        body += [draw_block(one, lane, scale) for one in gather(blocks, scale, narrow=NARROWEST, budget=BLOCKS)]
    waits = sum(e.duration for own in threads.values() for e in own if e.kind == "wait")
    words = f"{plural(len(threads), 'thread')} over {seconds(scale.span)}; {seconds(waits)} of waiting in all."
    return draw_lanes(lanes, scale, body, GAP, "threads", "What each thread did when", words)


def _balance(threads: Mapping[int, Sequence[Event]]) -> Markup:
    every = [e for own in threads.values() for e in own]
    begin, end = span_of(every)
    kinds = [
        Row([kind.name, count(kind.launches), seconds(max(kind.busy.values())), count(sum(kind.work.values())),
             f"{kind.busiest_over_mean:.2f}"])
        for kind in kinds_of(threads)
    ]  # fmt: skip
    by_thread = []
    for thread, own in threads.items():
        waits = sum(e.duration for e in own if e.kind == "wait")
        busy = sum(e.duration for e in own) - waits
        work = sum(e.count("work") or e.count("edges") for e in own)
        by_thread.append(
            Row([f"Thread {thread}", seconds(busy), share(busy, end - begin), seconds(waits), count(work)])
        )
    return section(
        "How even the load was",
        table(["Loop", "Launches", "Longest thread", "Work", "Busiest over mean"], kinds),
        table(["Thread", "Busy", "Of the time", "Waited", "Work"], by_thread),
        id="balance",
        lead="Busiest over mean: the work of the thread that had most, over the mean; 1 is perfect.",
    )
