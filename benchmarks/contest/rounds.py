"""The contest itself: which runs when, and what counts.

Invariant: contestants take turns, one run at a time, in an order that is rotated from turn to turn, so that a slow
moment of the machine hits all alike; a contestant that fails or is wrong once is out and has no times. A wrong
result of our own ends the contest: NotCertified, exit code 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hybrid.errors import NotCertified

FIX = "this is a defect of Tandem: please report it with the command line"


@dataclass(frozen=True)
class Root:
    """A start vertex in the three ids that occur: the user's, its position among the user's ids, and ours."""

    user_id: int
    position: int
    internal: int


@dataclass(frozen=True)
class Finding:
    """What a run found, small enough to compare after every run; None where a contestant does not say."""

    reached: int
    depth: int | None = None
    digest: str | None = None  # of the levels, in the order of the ids that the contestant was given
    total: float | None = None  # of reals, which are the same up to rounding
    tolerance: float = 0.0  # relative, for the total


@dataclass(frozen=True)
class Turn:
    """One contestant's turn on one root: the seconds of each run, and the finding they share."""

    seconds: tuple[float, ...]
    finding: Finding


class ContestantFailed(Exception):
    """A contestant cannot go on; the text says why."""


class WrongResult(ContestantFailed):
    """A result that failed its proof in the contestant's own process."""


class Contestant(Protocol):
    """A contestant: it traverses from a root when asked, and times itself. ``ours``: it is Tandem."""

    name: str
    ours: bool

    def turn(self, root: Root, trials: int) -> Turn:
        """Run up to ``trials`` times from ``root``; raises ContestantFailed."""

    def expected(self, root: Root) -> Finding:
        """What a right answer for this root looks like to this contestant."""


@dataclass
class Record:
    """A contestant's times, seconds[root index] = every run, and why it is out, if it is."""

    name: str
    seconds: dict[int, list[float]] = field(default_factory=dict)
    problem: str = ""

    @property
    def ranked(self) -> bool:
        return not self.problem and bool(self.seconds)


Report = Callable[[int, int], None]


def play(
    contestants: Sequence[Contestant],
    roots: Sequence[Root],
    *,
    rounds: int,
    trials: int,
    between: Callable[[], None] = lambda: None,
    report: Report = lambda done, total: None,
) -> list[Record]:
    """A rehearsal that is checked and not timed, then ``rounds`` rounds over all roots; ``between`` runs before turns.

    The rehearsal compiles, warms and proves: no run is timed before every root came out right.
    """
    records = [Record(contestant.name) for contestant in contestants]
    total = (rounds + 1) * len(roots) * len(contestants)
    for done, (round_number, index, seat) in enumerate(schedule(rounds + 1, len(roots), len(contestants))):
        report(done, total)
        record = records[seat]
        if record.problem:
            continue
        between()
        rehearsal = round_number == 0
        try:
            turn = contestants[seat].turn(roots[index], 1 if rehearsal else trials)
            wrong = disagreement(turn.finding, contestants[seat].expected(roots[index]))
        except WrongResult as failure:
            wrong = str(failure)
        except ContestantFailed as failure:
            record.problem = str(failure)
            continue
        if wrong:
            record.problem = f"wrong result from root {roots[index].user_id}: {wrong}"
            if contestants[seat].ours:
                raise NotCertified(f"{record.name}: {record.problem}", fix=FIX)
        elif not rehearsal:
            record.seconds.setdefault(index, []).extend(turn.seconds)
    report(total, total)
    for record in records:
        if record.problem:
            record.seconds.clear()
    return records


def schedule(rounds: int, roots: int, seats: int) -> Iterator[tuple[int, int, int]]:
    """(round, root, seat): every seat once per root and round; the seat that begins moves on by one each time."""
    for round_number in range(rounds):
        for root in range(roots):
            first = (round_number * roots + root) % seats if seats else 0
            for offset in range(seats):
                yield round_number, root, (first + offset) % seats


def disagreement(found: Finding, expected: Finding) -> str:
    """What differs, in words; empty if all that both report agrees."""
    if found.reached != expected.reached:
        return f"it found {found.reached}, not {expected.reached}"
    if None not in (found.depth, expected.depth) and found.depth != expected.depth:
        return f"its deepest level is {found.depth}, not {expected.depth}"
    if None not in (found.digest, expected.digest) and found.digest != expected.digest:
        return "some of its values differ"
    if found.total is None or expected.total is None:
        return ""
    same = math.isclose(found.total, expected.total, rel_tol=expected.tolerance)
    return "" if same else f"its values add up to {found.total:.6g}, not {expected.total:.6g}"
