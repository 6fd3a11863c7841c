"""Termination detection against a model: processes that send each other work with any delay, in any order.

Safety: nobody is told that it is over while a message is under way or somebody is active. Liveness: once all is quiet,
a bounded number of control messages later everybody knows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.comm.errors import CommError
from cpu_engine.comm.requests import TAG_CONTROL, Message
from cpu_engine.comm.termination import Termination

WORK = 0
# Seeds, not st.randoms: what hypothesis draws is mostly small, and a small choice is mostly the first.
orders = st.integers(0, 1 << 32).map(random.Random)


@dataclass
class Process:
    """Active until it decides to rest; a message wakes it."""

    rank: int
    termination: Termination
    active: bool = True
    sent: int = 0
    received: int = 0


@dataclass
class Model:
    """``choose(k)`` decides everything: who moves, what is delivered, who gets work."""

    size: int
    budget: int  # messages of work that will be sent in all
    choose: random.Random
    processes: list[Process] = field(init=False)
    in_flight: list[tuple[int, Message]] = field(default_factory=list)  # (receiver, message as the receiver sees it)
    control_messages: int = 0

    def __post_init__(self) -> None:
        self.processes = [Process(rank, Termination(rank, self.size)) for rank in range(self.size)]

    @property
    def quiet(self) -> bool:
        working = any(process.active for process in self.processes)
        return not working and all(message.tag == TAG_CONTROL for _, message in self.in_flight)

    @property
    def over(self) -> bool:
        return all(process.termination.over for process in self.processes)

    def check_safety(self) -> None:
        if any(process.termination.over for process in self.processes):
            assert self.quiet, "told that it is over too early"

    def post(self, sender: int, messages: list[Message]) -> None:
        for message in messages:
            assert message.tag == TAG_CONTROL
            self.control_messages += 1
            self.in_flight.append((message.peer, Message(sender, message.tag, message.payload)))

    def deliver(self) -> None:
        rank, message = self.in_flight.pop(self.choose.randrange(len(self.in_flight)))
        process = self.processes[rank]
        if message.tag == TAG_CONTROL:
            self.post(rank, process.termination.handle(message))
        else:
            process.received += 1
            process.active = True
            process.termination.active()

    def move(self, process: Process) -> None:
        """An active process sends work to anybody, itself too, or rests."""
        if self.budget and self.choose.random() < 0.6:
            self.budget -= 1
            process.sent += 1
            receiver = self.choose.randrange(self.size)
            self.in_flight.append((receiver, Message(process.rank, WORK, np.empty(0, np.uint8))))
        else:
            process.active = False
            self.post(process.rank, process.termination.passive(process.sent, process.received))

    def step(self) -> None:
        active = [process for process in self.processes if process.active]
        if active and (not self.in_flight or self.choose.random() < 0.5):
            self.move(self.choose.choice(active))
        else:
            self.deliver()
        self.check_safety()


@given(st.integers(1, 9), st.integers(0, 60), orders)
@settings(max_examples=400, deadline=None)
def test_never_too_early_and_never_too_late(size: int, budget: int, choose: random.Random) -> None:
    model = Model(size, budget, choose)
    steps = 0
    while not model.quiet and steps < 100_000:
        model.step()
        steps += 1
    assert model.quiet, "the model itself runs out of work"
    before, waves = model.control_messages, model.processes[0].termination.waves
    while not model.over:
        assert model.in_flight, "all is quiet, nobody asks, and not everybody knows"
        model.step()
    # The wave that was under way, the two that agree and the word that it is over: each edge at most twice per wave.
    assert model.control_messages - before <= 8 * (size - 1)
    assert model.processes[0].termination.waves - waves <= 3
    assert not model.in_flight, "nothing is left for the next run"
    assert all(process.termination.over for process in model.processes)


@given(st.integers(2, 6), orders)
@settings(max_examples=100, deadline=None)
def test_a_message_that_stays_away_holds_everything_up(size: int, choose: random.Random) -> None:
    """Everybody rests, one message of work is under way: waves come and go, and none of them is the last."""
    model = Model(size, 0, choose)
    sender, receiver = choose.randrange(size), choose.randrange(size)
    model.processes[sender].sent += 1
    for process in model.processes:
        process.active = False
        model.post(process.rank, process.termination.passive(process.sent, process.received))
    for _ in range(50 * size):
        assert model.in_flight, "the root goes on asking"
        model.deliver()
        assert not any(process.termination.over for process in model.processes)
    model.in_flight.append((receiver, Message(sender, WORK, np.empty(0, np.uint8))))
    while not model.over:
        model.step()


def test_equal_sums_by_chance_are_not_enough() -> None:
    """The classic trap of one wave: sent and received balance, though what was counted belongs to different moments.

    Rank 1 is counted before it receives rank 0's message and sends two; one of these reaches rank 0 before it is
    counted. In the sum 1 sent (by 0) and 1 received (by 0); under way: one message to rank 0.
    """
    root, leaf = Termination(0, 2), Termination(1, 2)
    (counted,) = leaf.passive(0, 0)
    leaf.active()
    root.handle(Message(1, TAG_CONTROL, counted.payload))
    asked = root.passive(1, 1)
    assert not root.over
    assert [message.peer for message in asked] == [1]
    (counted_again,) = [*leaf.handle(Message(0, TAG_CONTROL, asked[0].payload)), *leaf.passive(2, 1)]
    root.handle(Message(1, TAG_CONTROL, counted_again.payload))
    assert not root.over, "now 3 were sent and 2 received"


def test_one_rank_needs_nobody() -> None:
    alone = Termination(0, 1)
    assert alone.passive(1, 0) == []
    assert not alone.over, "its message to itself is under way"
    alone.active()
    assert alone.passive(1, 1) == []
    assert alone.over


@pytest.mark.parametrize("payload", [np.zeros(8, np.uint8), np.array([2, 7, 0, 0], np.int64).view(np.uint8)])
def test_what_does_not_fit_is_an_error(payload: np.ndarray) -> None:
    with pytest.raises(CommError, match=r"control message from rank 1.*Fix: "):
        Termination(0, 2).handle(Message(1, TAG_CONTROL, payload))
