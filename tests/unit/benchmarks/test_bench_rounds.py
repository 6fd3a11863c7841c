"""The contest and its arithmetic, with contestants that only pretend to run."""

from __future__ import annotations

import pytest

from benchmarks.contest.rounds import ContestantFailed, Finding, Record, Root, Turn, disagreement, play, schedule
from benchmarks.contest.summary import figures, ranking, times_slower

ROOTS = [Root(100, 10, 0), Root(101, 11, 1)]
RIGHT = Finding(5, 2, "abc")


class Fake:
    """Takes the times it is told to, finds what it is told to, and writes down when it was called."""

    def __init__(self, name: str, seconds: float, diary: list[str], found: Finding = RIGHT, fail_at: int = -1) -> None:
        self.name, self.seconds, self.diary, self.found, self.fail_at = name, seconds, diary, found, fail_at
        self.ours = False
        self.calls = 0

    def turn(self, root: Root, trials: int) -> Turn:
        self.diary.append(f"{self.name}{root.user_id}x{trials}")
        self.calls += 1
        if self.calls - 1 == self.fail_at:
            raise ContestantFailed("it broke")
        return Turn(tuple(self.seconds * (1 + i) for i in range(trials)), self.found)

    def expected(self, root: Root) -> Finding:
        return RIGHT


def test_turns_are_interleaved_and_the_first_seat_rotates() -> None:
    diary: list[str] = []
    play([Fake("a", 1, diary), Fake("b", 2, diary)], ROOTS, rounds=1, trials=3)
    rehearsal = ["a100x1", "b100x1", "b101x1", "a101x1"]
    assert diary == [*rehearsal, "a100x3", "b100x3", "b101x3", "a101x3"]


def test_schedule_gives_everybody_the_same_number_of_turns() -> None:
    turns = list(schedule(3, 4, 5))
    assert len(turns) == len(set(turns)) == 3 * 4 * 5
    firsts = [seat for i, (_, _, seat) in enumerate(turns) if i % 5 == 0]
    assert {firsts.count(seat) for seat in range(5)} <= {2, 3}


def test_the_rehearsal_is_not_timed_and_rest_comes_before_every_turn() -> None:
    diary: list[str] = []
    [record] = play([Fake("a", 1, diary)], ROOTS, rounds=2, trials=2, between=lambda: diary.append("rest"))
    assert record.seconds == {0: [1, 2, 1, 2], 1: [1, 2, 1, 2]}
    assert diary[::2] == ["rest"] * 6


def test_best_mean_noise_and_ratio() -> None:
    ours = Record("ours", {0: [1.0, 3.0], 1: [3.0, 5.0]})
    peer = Record("peer", {0: [8.0], 1: [4.0, 8.0]})
    found = figures(ours)
    assert found is not None
    assert (found.best, found.mean, found.fastest, found.slowest, found.runs) == (2.0, 3.0, 1.0, 5.0, 4)
    assert found.noise == 1.5
    assert times_slower(peer, ours) == 3.0
    assert times_slower(ours, peer) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "wrong",
    [Finding(4, 2, "abc"), Finding(5, 3, "abc"), Finding(5, 2, "abd"), Finding(4)],
    ids=["reached", "depth", "levels", "reached only"],
)
def test_wrong_work_is_flagged_and_never_ranked(wrong: Finding) -> None:
    diary: list[str] = []
    records = play([Fake("liar", 0.001, diary, wrong), Fake("honest", 1, diary)], ROOTS, rounds=2, trials=1)
    liar, honest = records
    assert "wrong result from root 100" in liar.problem
    assert not liar.ranked
    assert liar.seconds == {}
    assert diary.count("liar100x1") == 1  # not asked again
    assert figures(liar) is None
    assert times_slower(liar, honest) is None
    assert ranking(records) == [honest, liar]


def test_a_contestant_that_fails_late_loses_its_times() -> None:
    diary: list[str] = []
    records = play([Fake("a", 1, diary, fail_at=3), Fake("b", 2, diary)], ROOTS, rounds=2, trials=1)
    assert records[0].problem == "it broke"
    assert not records[0].ranked
    assert records[1].ranked


def test_what_a_contestant_does_not_tell_is_not_held_against_it() -> None:
    assert disagreement(Finding(5), RIGHT) == ""
    assert disagreement(Finding(5, None, "abc"), RIGHT) == ""


def test_nobody_to_measure() -> None:
    assert play([], ROOTS, rounds=1, trials=1) == []
