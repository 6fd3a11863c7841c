"""What is told of several machines' workers."""

from __future__ import annotations

from hybrid.ranks.workers import describe_outcomes


def test_one_machine_needs_no_name():
    assert describe_outcomes({"a": "merged 1 of 1 rounds"}) == "merged 1 of 1 rounds"


def test_several_are_named():
    told = describe_outcomes({"a": "merged 2 of 2 rounds", "b": "the worker was killed (signal 9)"})
    assert told == "a: merged 2 of 2 rounds; b: the worker was killed (signal 9)"


def test_many_are_counted():
    told = describe_outcomes({f"host{number}": "merged 1 of 1 rounds" for number in range(100)})
    assert told.startswith("host0: merged 1 of 1 rounds; host1: ")
    assert told.endswith("; and 96 more")
