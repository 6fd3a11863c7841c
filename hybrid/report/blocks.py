"""From events to blocks: what each event is called, how it is filled, and how many of them become one.

A job lasts seconds and a step may last microseconds, so most steps are narrower than a pixel. Invariant: no block is
narrower than ``narrow`` per cent before it is drawn wide enough to see; neighbours that are too narrow become one
block whose tip says how many they were; the number of blocks never exceeds the budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hybrid.charts.scale import TimeScale
from hybrid.charts.units import compact, count, moment, plural, seconds
from hybrid.report.facts import Event

NAMES = {
    "coordinator": {
        "open": "open graph",
        "build": "build graph",
        "write": "write result",
        "compare": "CPU-only comparison",
        "partition": "cut into parts",
        "gather": "gather result",
    },
    "cpu": {"take_back": "core taken back", "wait": "waits"},
    "npu": {"start": "worker start"},
}
DIRECTIONS = ("push", "pull", "async")
OWN_STYLE = ("wait", "pack", "merge", "start", "round")  # kinds with a style of their name
MOMENTS = frozenset({"death", "stop"})  # drawn by the lane itself, not as blocks


@dataclass(frozen=True)
class Block:
    """A stretch of one lane: one event, or several (``event`` is then None and ``gathered`` describes them).

    ``busy`` is the time really worked, ``inner`` the part of it that the NPU computed.
    """

    t0: float
    t1: float
    style: str
    event: Event | None
    source: str | None = None
    busy: float = 0.0
    inner: float = 0.0
    gathered: str = ""

    @property
    def name(self) -> str:
        return "" if self.event is None else name_of(self.event)

    @property
    def tip(self) -> str:
        return self.gathered if self.event is None else tip_of(self.event)


def block_of(event: Event, *, by_direction: bool) -> Block:
    """The block for one event. Steps are filled by direction where there is room to see it, else simply as CPU work."""
    style, direction = event.kind if event.kind in OWN_STYLE else event.actor, event.text("direction")
    if event.kind in ("take_back", "repair"):
        style = "warn"
    elif event.kind == "step":
        style = direction if by_direction and direction in DIRECTIONS else "cpu"
    inner = min(event.real("compute_s"), event.duration) if event.kind == "round" else 0.0
    return Block(event.t0, event.t1, style, event, event.source, event.duration, inner)


def name_of(event: Event) -> str:
    """The short name that is written into a block."""
    if event.kind == "step":
        return event.text("direction") or "step"
    return NAMES[event.actor].get(event.kind, event.kind)


def tip_of(event: Event) -> str:
    """What the event did, in one line for the tooltip."""
    facts = [detail for detail in _details(event) if detail]
    about = f" of source {event.source}" if event.source is not None and event.actor != "cpu" else ""
    head = f"{name_of(event).capitalize()}{about}: {seconds(event.duration)}"
    return ". ".join([head, *([", ".join(facts)] if facts else []), f"At {moment(event.t0)}"])


def _details(event: Event) -> list[str]:
    match event.kind:
        case "step":
            level = event.text("level")
            return [
                f"level {level}" if level and not level.startswith("-") else "",
                f"frontier {count(event.facts.get('frontier'))}",
                f"edges looked at {count(event.facts.get('edges'))}",
                f"engine {event.text('engine')}" if event.text("engine") else "",
            ]
        case "round":
            return [
                event.text("round"),
                f"computing {seconds(event.real('compute_s'))} of it",
                f"sent {count(event.count('values_sent'))}",
                f"received {count(event.count('values_received'))}",
                f"adopted {count(event.count('values_adopted'))}",
                event.text("outcome"),
            ]
        case "merge":
            return [event.text("round"), f"adopted {count(event.count('adopted'))}"]
        case "repair":
            return [f"{plural(event.count('changed'), 'value')} wrong", event.text("findings")]
        case "wait" | "take_back":
            return [event.text("why"), f"during {event.text('what')}" if event.text("what") else ""]
        case "start":
            return [f"device {event.text('device')}" if event.text("device") else ""]
        case "death":
            return [event.text("cause")]
        case _:
            return []


def join_waits(events: Iterable[Event]) -> list[Event]:
    """One actor's events, a wait that was only interrupted to look for an answer made one again."""
    joined: list[Event] = []
    for event in events:
        if event.kind == "wait" and joined and (joined[-1].kind, joined[-1].source) == ("wait", event.source):
            last = joined[-1]
            if event.t0 - last.t1 <= max(last.duration, event.duration):
                joined[-1] = replace(last, t1=max(last.t1, event.t1))
                continue
        joined.append(event)
    return joined


def gather(blocks: Sequence[Block], scale: TimeScale, *, narrow: float, budget: int) -> list[Block]:
    """Neighbours that are too narrow become one block; what is narrow grows until the budget is met."""
    groups = _groups(blocks, scale.span * narrow / 100)
    while len(groups) > budget:
        narrow *= 2
        groups = _groups(blocks, scale.span * narrow / 100)
    return [_union(group) for group in groups]


def _groups(blocks: Iterable[Block], shortest: float) -> list[list[Block]]:
    """Each wide block alone, and runs of narrow ones that together take at most twice the shortest width."""
    groups: list[list[Block]] = []
    open_since: float | None = None
    for block in blocks:
        if block.t1 - block.t0 >= shortest:
            groups.append([block])
            open_since = None
        elif open_since is not None and block.t1 - open_since <= 2 * shortest:
            groups[-1].append(block)
        else:
            groups.append([block])
            open_since = block.t0
    return groups


def _union(group: list[Block]) -> Block:
    if len(group) == 1:
        return group[0]
    times: dict[str, float] = {}
    names: Counter[str] = Counter()
    for block in group:
        times[block.style] = times.get(block.style, 0.0) + block.busy
        if block.event is not None:
            names["step" if block.event.kind == "step" else name_of(block.event)] += 1
    sources, style = {block.source for block in group}, max(times, key=lambda style: times[style])
    busy, inner = sum(block.busy for block in group), sum(block.inner for block in group)
    start, end = group[0].t0, max(block.t1 for block in group)
    listed = ", ".join(f"{number:,} x {name}" for name, number in names.most_common(4))
    tip = f"{listed}: {seconds(busy)} in all. From {moment(start)} to {moment(end)}"
    return Block(start, end, style, None, sources.pop() if len(sources) == 1 else None, busy, inner, tip)


@dataclass(frozen=True)
class Merge:
    """One or several merges close together: when, how many rounds, how many values the CPU adopted."""

    t: float
    rounds: int
    adopted: int

    @property
    def tip(self) -> str:
        return f"{plural(self.rounds, 'merge')} at {moment(self.t)}: {plural(self.adopted, 'value')} adopted"

    @property
    def label(self) -> str:
        return f"+{compact(self.adopted)}" if self.adopted else "0"


def gather_merges(events: Iterable[Event], scale: TimeScale, *, apart: float, budget: int) -> list[Merge]:
    """The merge arrows of a window, those closer than ``apart`` per cent drawn as one."""
    merges = [Merge(e.t0, 1, e.count("adopted")) for e in events if e.kind == "merge" and scale.shows(e.t0, e.t0)]
    while True:
        result: list[Merge] = []
        for merge in merges:
            last = result[-1] if result else None
            if last is not None and merge.t - last.t < scale.span * apart / 100:
                result[-1] = Merge(last.t, last.rounds + 1, last.adopted + merge.adopted)
            else:
                result.append(merge)
        if len(result) <= budget:
            return result
        apart *= 2
