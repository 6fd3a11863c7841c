"""What passed between the CPU and a core solver: rounds and values, of one run or of several, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import cast

from hybrid.results.schema import Rounds
from hybrid.terminal import plural

COUNTED = tuple(name for name in Rounds.__annotations__ if name != "outcome")


@dataclass
class Tally:
    """What passed between CPU and core solver in one run, or in several."""

    rounds_sent: int = 0
    rounds_merged: int = 0
    values_sent: int = 0
    values_received: int = 0
    values_adopted: int = 0
    values_rejected: int = 0
    outcome: str = "off"

    def add(self, other: Tally) -> None:
        """Count another run's rounds as well; the outcome stays."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_dict(self) -> Rounds:
        return cast(Rounds, asdict(self))

    @property
    def merged(self) -> str:
        return f"merged {self.rounds_merged} of {plural(self.rounds_sent, 'round')}"


def total(tallies: Iterable[Tally], outcome: str = "off") -> Tally:
    """The sum of some runs."""
    found = Tally(outcome=outcome)
    for one in tallies:
        found.add(one)
    return found
