"""What one rank did in one search: seconds by kind, bytes and messages by phase and encoding, events for the trace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cpu_engine.comm.rounds import RoundsReport
from cpu_engine.comm.substrate import Sync

PARENTS = "parents"  # a phase of its own
PAIR_BYTES = 8  # what an update would take as (id, value)


@dataclass
class RankStatistics:
    """Filled by the drivers; times are ``time.perf_counter`` readings."""

    rounds: int = 0
    compute_s: float = 0.0
    pack_s: float = 0.0
    wait_s: float = 0.0
    edges: int = 0
    relaxations: int = 0  # vertices taken from a worklist or frontier
    redundant_relaxations: int = 0  # of these, the second and later ones of the same vertex
    updates: int = 0  # values sent
    waves: int = 0  # of termination detection, known to rank 0
    traffic: dict[str, dict[str, list[int]]] = field(default_factory=dict)  # phase -> encoding -> [messages, bytes]
    events: list[tuple[str, float, float, dict[str, Any]]] = field(default_factory=list)
    _details: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def computing(self, level: int = -1) -> Iterator[None]:
        """Time spent on the part's own arcs."""
        t0 = time.perf_counter()
        self._details = {}
        yield
        t1 = time.perf_counter()
        self.compute_s += t1 - t0
        if self._details:
            self.events.append(("step", t0, t1, {"level": level, **self._details}))

    @contextmanager
    def packing(self) -> Iterator[None]:
        """Time spent on making and reading messages."""
        t0 = time.perf_counter()
        yield
        t1 = time.perf_counter()
        self.pack_s += t1 - t0
        self.events.append(("pack", t0, t1, {}))

    def waited(self, t0: float, what: str) -> None:
        """Time spent in communication, from ``t0`` until now."""
        t1 = time.perf_counter()
        self.wait_s += t1 - t0
        self.events.append(("wait", t0, t1, {"what": what}))

    def take(self, report: RoundsReport, sync: Sync) -> None:
        """What comm.rounds and the field's phases counted."""
        self.rounds += report.rounds
        self.pack_s += report.pack_s + report.unpack_s
        self.wait_s += report.wait_s
        self.waves = report.waves
        self.events += [
            ("wait" if kind == "wait" else "pack", t0, t1, {}) for kind, t0, t1 in report.spans if kind != "compute"
        ]
        for name, counted in sync.statistics.items():
            for encoding, tally in counted.sent.items():
                entry = self.traffic.setdefault(name, {}).setdefault(encoding.name.lower(), [0, 0])
                entry[0] += tally.messages
                entry[1] += tally.bytes
                self.updates += tally.updates

    def expanded(self, direction: str, frontier: int, edges: int) -> None:
        """A step looked at so many edges."""
        self.edges += edges
        self.relaxations += frontier
        self._details = {"direction": direction, "frontier": frontier, "edges": edges}

    def sent(self, phase: str, encoding: str, size: int, updates: int = 0) -> None:
        """A message went out; an empty one that BSP sends for the count is "nothing"."""
        entry = self.traffic.setdefault(phase, {}).setdefault(encoding, [0, 0])
        entry[0] += 1
        entry[1] += size
        self.updates += updates

    @property
    def bytes_sent(self) -> int:
        """To bring values up to date; parents, which are settled once at the end, are counted apart."""
        return self._sum(1, [phase for phase in self.traffic if phase != PARENTS])

    @property
    def messages_sent(self) -> int:
        return self._sum(0, [phase for phase in self.traffic if phase != PARENTS])

    def _sum(self, column: int, phases: list[str]) -> int:
        return sum(
            entry[column]
            for phase in phases
            for name, entry in self.traffic.get(phase, {}).items()
            if name != "nothing"
        )

    def as_dict(self) -> dict[str, Any]:
        """For summary.json."""
        return {
            "rounds": self.rounds,
            "compute_s": self.compute_s,
            "pack_s": self.pack_s,
            "wait_s": self.wait_s,
            "edges_looked_at": self.edges,
            "relaxations": self.relaxations,
            "redundant_relaxations": self.redundant_relaxations,
            "bytes": self.bytes_sent,
            "parent_bytes": self._sum(1, [PARENTS]),
            "messages": self.messages_sent,
            "updates": self.updates,
            "waves": self.waves,
            "pair_bytes": PAIR_BYTES * self.updates,
            "traffic": {
                phase: {name: {"messages": entry[0], "bytes": entry[1]} for name, entry in forms.items()}
                for phase, forms in self.traffic.items()
            },
        }
