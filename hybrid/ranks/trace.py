"""Every rank's events in one trace: recorded on each rank's own clock, told to rank 0 as lines of JSON.

The clocks are set to each other by a barrier at the start; how far apart ranks leave it is the error of the picture.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from cpu_engine.comm.collectives import RankInfo, barrier, gather
from cpu_engine.comm.requests import Driver
from hybrid.results.trace import Event, Trace, plain_number

RawEvent = tuple[str, float, float, dict[str, Any]]  # kind, begin and end on time.perf_counter, details


class RankTrace:
    """One rank's events."""

    def __init__(self, info: RankInfo) -> None:
        self._seat = info
        self._origin = time.perf_counter()
        self._job_time = 0.0
        self.events: list[Event] = []

    def align(self, trace: Trace) -> Driver[None]:
        """Let this moment be the same one for all ranks; ``trace`` tells when it is, at rank 0."""
        yield from barrier()
        yield from barrier(patient=False)
        self._origin = time.perf_counter()
        self._job_time = trace.now()

    def extend(self, source: int, events: Iterable[RawEvent]) -> None:
        """Take over what an engine has recorded."""
        actor = rank_actor(self._seat.rank)
        for kind, t0, t1, details in events:
            event = {"t0": t0 - self._origin, "t1": t1 - self._origin, "actor": actor, "kind": kind, "source": source}
            self.events.append(cast(Event, event | details))

    def collect(self, trace: Trace) -> Driver[None]:
        """Put the events of all ranks into rank 0's trace, in the order in which they ended."""
        lines = "\n".join(json.dumps(event, default=plain_number) for event in self.events)
        gathered = yield from gather(self._seat, np.frombuffer(lines.encode(), np.uint8))
        if gathered is None:
            return
        told = [json.loads(line) for one in gathered for line in one.tobytes().decode().splitlines()]
        for event in told:
            event["t0"] += self._job_time
            event["t1"] += self._job_time
        trace.events = sorted([*trace.events, *told], key=lambda event: float(event["t1"]))


def rank_actor(rank: int) -> str:
    return f"rank {rank}"
