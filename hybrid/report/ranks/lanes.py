"""Which rank is drawn where, and what of its time was what: lanes by machine, columns of shares.

A search lasts milliseconds and a quantum of work microseconds, so a lane is drawn as columns, each filled by the shares
of its time. Invariant: of few events the columns begin and end with them, so that a share is 0 or 1; of many they are
equally wide, and no more than asked for. A column's shares add up to at most 1; what is missing was not recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hybrid.charts.scale import TimeScale
from hybrid.charts.units import DASH, number, whole
from hybrid.report.blocks import DIRECTIONS
from hybrid.report.facts import Event, as_dict, as_list

STACK = (*DIRECTIONS, "compute", "pack", "wait")  # from the bottom of a lane to its top
MAX_LANES = 64
UNKNOWN_HOST = "unknown machine"
Times = dict[str, float]


@dataclass(frozen=True)
class RankLane:
    """One rank's lane, or that of several neighbours of a machine when there are more ranks than lanes."""

    ranks: tuple[int, ...]
    host: str
    events: Sequence[Event] = field(repr=False)

    @property
    def title(self) -> str:
        first, last = self.ranks[0], self.ranks[-1]
        return f"rank {first}" if first == last else f"ranks {first}{DASH}{last}"

    @cached_property
    def times(self) -> Times:
        """Seconds by what they were spent on, over all of the lane's ranks."""
        times = dict.fromkeys(STACK, 0.0)
        for event in self.events:
            times[style_of(event)] += event.duration
        return times


@dataclass(frozen=True)
class Machine:
    """A machine's ranks, and what its worker did."""

    host: str
    name: str  # the host's, without a domain that all share
    lanes: tuple[RankLane, ...]
    rounds: Sequence[Event] = field(repr=False)


@dataclass(frozen=True)
class Columns:
    """``edges`` in seconds, one more than columns; ``shares[style]`` per column, only of styles that occur."""

    edges: np.ndarray
    shares: Mapping[str, np.ndarray]


def hosts_of(ranks: Mapping[str, object]) -> dict[int, str]:
    """Each rank's machine, from the ``ranks`` section of a summary; by rank."""
    hosts: dict[int, str] = {}
    for row in as_list(ranks.get("per_rank")):
        facts = as_dict(row)
        rank = number(facts.get("rank"))
        if rank is not None and rank >= 0:
            hosts[whole(facts["rank"])] = str(facts.get("host") or UNKNOWN_HOST)
    return dict(sorted(hosts.items()))


def short_names(hosts: Collection[str]) -> dict[str, str]:
    """Each host's name without the domain, if all are in the same one; addresses stay as they are."""
    parts = {host: host.partition(".") for host in hosts}
    domains = {domain for _, _, domain in parts.values()}
    first = {host: name for host, (name, _, _) in parts.items()}
    if len(domains) == 1 and all(first.values()) and not any(name.isdigit() for name in first.values()):
        return first
    return {host: host for host in hosts}


def style_of(event: Event) -> str:
    """What the time of a rank's event counts as."""
    if event.kind == "step":
        direction = event.text("direction")
        return direction if direction in DIRECTIONS else "compute"
    return event.kind if event.kind in ("pack", "wait") else "compute"


def machines_of(hosts: Mapping[int, str], events: Mapping[int, Sequence[Event]]) -> list[Machine]:
    """The machines in the order of their first ranks, with the given events; at most MAX_LANES lanes or few more."""
    named = {rank: hosts.get(rank, UNKNOWN_HOST) for rank in sorted({*hosts, *events})}
    together = -(-len(named) // MAX_LANES)  # ranks to a lane
    if together > 1 and len(set(named.values())) > MAX_LANES // 2:
        named = dict.fromkeys(named, f"{len(set(named.values())):,} machines")
    ranks_on: dict[str, list[int]] = {}
    for rank, host in named.items():
        ranks_on.setdefault(host, []).append(rank)
    names = short_names(ranks_on)
    machines = []
    for host, ranks in ranks_on.items():
        own = {rank: events.get(rank, ()) for rank in ranks}
        dealt = [tuple(ranks[i : i + together]) for i in range(0, len(ranks), together)]
        lanes = [RankLane(some, host, [e for one in some for e in own[one] if e.actor != "npu"]) for some in dealt]
        rounds = sorted((e for some in own.values() for e in some if e.actor == "npu"), key=lambda e: (e.t0, e.t1))
        machines.append(Machine(host, names[host], tuple(lanes), rounds))
    return machines


def columns_of(lane: RankLane, scale: TimeScale, most: int) -> Columns:
    """The lane as at most ``most`` columns."""
    times: dict[str, list[tuple[float, float]]] = {}
    for event in lane.events:
        if scale.shows(event.t0, event.t1):
            span = (max(event.t0, scale.start) - scale.start, min(event.t1, scale.end) - scale.start)
            times.setdefault(style_of(event), []).append(span)
    spans = {style: np.array(times[style]) for style in STACK if style in times}
    edges = np.unique(np.concatenate([[0.0, scale.span], *(span.ravel() for span in spans.values())]))
    if edges.size > most + 1:
        edges = np.linspace(0.0, scale.span, most + 1)
    width = np.diff(edges) * len(lane.ranks)
    shares = {style: np.diff(_covered(span, edges)) / width for style, span in spans.items()}
    if shares:
        crowded = np.maximum(1.0, np.sum(list(shares.values()), axis=0))  # damage: one rank twice at a time
        shares = {style: np.clip(share / crowded, 0.0, 1.0) for style, share in shares.items()}
    return Columns(edges + scale.start, shares)


def _covered(spans: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """For each moment, how long the spans have lasted until then."""
    return np.asarray(_elapsed(spans[:, 0], moments) - _elapsed(spans[:, 1], moments))


def _elapsed(since: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """The sum over ``since`` of the time that has passed since each, at each moment."""
    since = np.sort(since)
    before = np.concatenate([[0.0], np.cumsum(since)])
    begun = np.searchsorted(since, moments, side="right")
    return np.asarray(begun * moments - before[begun])
