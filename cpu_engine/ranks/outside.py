"""What takes part in a run on ranks besides the engines: the core solver's side of a job.

Values that only fall (BFS, shortest paths, components) travel both ways between quanta (``Outside``); PageRank has the
core's sums added up (``CoreSums``); a batch of searches asks when it reaches the core (``CoreLevels``).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cpu_engine.comm.requests import Driver, Message
from cpu_engine.graph.partition.part import Part


class Host(Protocol):
    """A part's side of a run whose values only fall; all ids are local."""

    @property
    def values(self) -> np.ndarray:
        """uint32 by local id; core masters first."""

    def adopt_unexplained(self, vertices: np.ndarray) -> None:
        """The values of these were lowered by something that knows no parents."""

    def can_step(self) -> bool:
        """Whether there is work that can be done at once."""

    def take_core_back(self) -> None:
        """The core's edges are this side's again."""


class Outside(Protocol):
    """What else changes values. All calls come between two quanta."""

    def bind(self, host: Host) -> None:
        """The run that begins is this one's."""

    def outgoing(self) -> list[Message]:
        """Messages to other ranks, to be sent now."""

    def arrived(self, message: Message) -> None:
        """A message for this side has come."""

    def idle(self) -> bool:
        """Whether nothing is under way that could still change a value."""


class CoreSums(Protocol):
    """Adds up what the core's own arcs bring, once per iteration. Drivers, called by all ranks."""

    def send(self, contributions: np.ndarray) -> Driver[bool]:
        """Hand over what the core masters here pass on; whether an answer can be expected."""

    def receive(self) -> Driver[np.ndarray | None]:
        """The sums of the core masters here; None if there are none to be had."""


class CoreLevels(Protocol):
    """Says at which level each core vertex is reached through the core. Drivers, called by all ranks."""

    def start(self, width: int, withhold_core: bool) -> Driver[bool]:
        """A pass with so many roots; whether the core's edges are withheld in it."""

    def close(self, words: np.ndarray, level: int) -> Driver[tuple[np.ndarray | None, bool]]:
        """``words``: the bits of the roots that reached each core master here at this level. Returns what is now
        known, uint32[width, core masters], or None if that is nothing new; and whether the edges stay withheld."""


def peers_of(part: Part, outside: Outside | None) -> tuple[int, ...]:
    """With whom messages of the hybrid hook are exchanged in every bulk-synchronous round."""
    return () if outside is None else tuple(q for q in range(part.layout.parts) if q != part.part)


def core_masters(part: Part, core_size: int) -> int:
    """How many of the part's masters are in the core; they come first."""
    return int(np.searchsorted(part.internal_of[: part.masters], core_size))
