"""The state machines, fed with every short sequence of events and with long random ones."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.protocol import layout
from exchange.protocol import messages as msg
from exchange.protocol.machines import CoordinatorProtocol, WorkerProtocol

TOKEN, OTHER = "0000abcd", "1111abcd"
FIRST, SECOND, THIRD = (layout.round_id(seq, TOKEN) for seq in (1, 2, 3))
FOREIGN = layout.round_id(1, OTHER)
ROUND_S, START_S = 10.0, 60.0


def coordinator() -> CoordinatorProtocol:
    return CoordinatorProtocol(TOKEN, round_timeout_s=ROUND_S, start_timeout_s=START_S)


class CoordinatorLaws:
    """Carries a machine through events and checks, after each, what must hold whatever happens."""

    def __init__(self) -> None:
        self.machine = coordinator()
        self.written: list[str] = []
        self.read: set[str] = set()
        self.delivered: list[str] = []
        self.over: set[str] = set()
        self.closed = False
        self.stops = 0

    def feed(self, event: msg.CoordinatorEvent) -> list[msg.CoordinatorAction]:
        was_closed, was_outstanding = self.closed, self.machine.round_id
        actions = self.machine.handle(event)
        assert not (was_closed and actions), "a closed exchange does nothing"
        for action in actions:
            self.check(action, event)
        self.closed = self.machine.state == "closed"
        assert (self.machine.state == "waiting") == (self.machine.round_id is not None)
        assert (self.machine.reason is not None) == self.closed
        assert self.stops == int(self.closed), "stop is written once, at the end"
        if was_outstanding is not None and self.machine.round_id != was_outstanding:
            assert was_outstanding in self.over or isinstance(event, msg.WriteFailed), "no round is forgotten silently"
        return actions

    def check(self, action: msg.CoordinatorAction, event: msg.CoordinatorEvent) -> None:
        match action:
            case msg.WriteRound(round_id):
                assert isinstance(event, msg.Submit)
                assert round_id not in self.written, "rounds are never reused"
                assert set(self.written) <= self.over, "one outstanding round"
                assert layout.parse_round_id(round_id) == (len(self.written) + 1, TOKEN)
                self.written.append(round_id)
            case msg.ReadData(round_id):
                assert event == msg.OkSeen(round_id)
                assert round_id == self.written[-1]
                assert round_id not in self.over
                assert round_id not in self.read, "an answer is read once"
                self.read.add(round_id)
            case msg.Deliver(round_id):
                assert event in (msg.DataRead(round_id, None), msg.DataRead(round_id, round_id))
                assert round_id in self.read
                assert round_id not in self.over, "delivered at most once, and not after it was given up"
                self.over.add(round_id)
                self.delivered.append(round_id)
            case msg.Reject(round_id) | msg.AbandonRound(round_id):
                assert round_id == self.written[-1]
                assert round_id not in self.over
                self.over.add(round_id)
            case msg.GiveUp(reason):
                assert reason
                assert self.machine.state == "closed"
            case msg.WriteStop():
                self.stops += 1


COORDINATOR_ALPHABET: list[msg.CoordinatorEvent] = [
    msg.Submit(0.0),
    msg.OkSeen(FIRST),
    msg.OkSeen(SECOND),
    msg.OkSeen(FOREIGN),
    msg.DataRead(FIRST, FIRST),
    msg.DataRead(SECOND, None),
    msg.DataRead(FIRST, SECOND),
    msg.DataRead(FOREIGN, FOREIGN),
    msg.DataBad(FIRST, "torn"),
    msg.Tick(5.0),
    msg.Tick(100.0),
    msg.WorkerReady(),
    msg.WorkerLost("signal 9"),
    msg.Stop(),
    msg.Withdraw("CPU first"),
    msg.WriteFailed(FIRST, "full"),
]


def test_coordinator_laws_hold_in_every_sequence_of_four_events() -> None:
    for events in itertools.product(COORDINATOR_ALPHABET, repeat=4):
        laws = CoordinatorLaws()
        for event in events:
            laws.feed(event)


ROUND = st.sampled_from([FIRST, SECOND, THIRD, FOREIGN, "", "nonsense"])
COORDINATOR_EVENTS = st.one_of(
    st.builds(msg.Submit, st.floats(0, 50)),
    st.builds(msg.OkSeen, ROUND),
    st.builds(msg.DataRead, ROUND, st.one_of(st.none(), ROUND)),
    st.builds(msg.DataBad, ROUND, st.just("bad")),
    st.builds(msg.Tick, st.floats(0, 80)),
    st.just(msg.WorkerReady()),
    st.builds(msg.WriteFailed, ROUND, st.just("full")),
    st.builds(msg.WorkerLost, st.just("signal 9")),
    st.builds(msg.Distrust, st.just("no witness")),
    st.just(msg.Stop()),
    st.just(msg.Withdraw("CPU first")),
)
LIKELY = st.one_of(
    st.builds(msg.Submit, st.just(1.0)),
    st.sampled_from([FIRST, SECOND, THIRD]).map(msg.OkSeen),
    st.sampled_from([FIRST, SECOND, THIRD]).map(msg.DataRead),
)


@given(st.lists(st.one_of(LIKELY, LIKELY, COORDINATOR_EVENTS), max_size=40))
@settings(max_examples=300, deadline=None)
def test_coordinator_laws_hold_in_long_sequences(events: list[msg.CoordinatorEvent]) -> None:
    laws = CoordinatorLaws()
    for event in events:
        laws.feed(event)


def test_round_after_round() -> None:
    machine = coordinator()
    for seq in (1, 2, 3):
        round_id = layout.round_id(seq, TOKEN)
        assert machine.handle(msg.Submit(float(seq))) == [msg.WriteRound(round_id)]
        assert machine.state == "waiting"
        assert machine.handle(msg.Submit(float(seq))) == []
        assert machine.handle(msg.OkSeen(round_id)) == [msg.ReadData(round_id)]
        assert machine.handle(msg.OkSeen(round_id)) == []
        assert machine.handle(msg.DataRead(round_id, round_id)) == [msg.Deliver(round_id)]
        assert machine.handle(msg.DataRead(round_id, round_id)) == []
        assert machine.state == "idle"
    assert machine.rounds_written == 3
    assert machine.handle(msg.Stop()) == [msg.WriteStop()]
    assert machine.state == "closed"
    assert machine.handle(msg.Stop()) == []


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (msg.DataBad(FIRST, "torn"), "torn"),
        (msg.DataRead(FIRST, SECOND), SECOND),
        (msg.DataRead(FIRST, FOREIGN), FOREIGN),
    ],
)
def test_bad_data_ends_the_exchange(event: msg.CoordinatorEvent, word: str) -> None:
    machine = coordinator()
    machine.handle(msg.Submit(0.0))
    assert machine.handle(event) == [], "data without its flag is not looked at"
    machine.handle(msg.OkSeen(FIRST))
    rejected, gave_up, stop = machine.handle(event)
    assert isinstance(rejected, msg.Reject)
    assert isinstance(gave_up, msg.GiveUp)
    assert word in gave_up.reason
    assert stop == msg.WriteStop()
    assert machine.state == "closed"
    assert machine.handle(msg.Submit(1.0)) == []


def test_late_answers_are_ignored() -> None:
    machine = coordinator()
    machine.handle(msg.WorkerReady())
    machine.handle(msg.Submit(0.0))
    assert machine.deadline_s == ROUND_S
    assert machine.handle(msg.Tick(9.9)) == []
    abandoned, gave_up, stop = machine.handle(msg.Tick(10.0))
    assert abandoned == msg.AbandonRound(FIRST, f"no answer to {FIRST} within 10 s")
    assert isinstance(gave_up, msg.GiveUp)
    assert stop == msg.WriteStop()
    assert machine.handle(msg.OkSeen(FIRST)) == []
    assert machine.handle(msg.DataRead(FIRST, FIRST)) == []


def test_a_time_out_while_the_answer_is_read() -> None:
    machine = coordinator()
    machine.handle(msg.WorkerReady())
    machine.handle(msg.Submit(0.0))
    machine.handle(msg.OkSeen(FIRST))
    assert msg.AbandonRound(FIRST, f"no answer to {FIRST} within 10 s") in machine.handle(msg.Tick(11.0))
    assert machine.handle(msg.DataRead(FIRST, FIRST)) == []


def test_the_first_round_waits_for_the_start() -> None:
    machine = coordinator()
    machine.handle(msg.Submit(0.0))
    assert machine.handle(msg.Tick(ROUND_S + 1)) == []
    assert machine.handle(msg.WorkerReady()) == []
    assert machine.handle(msg.Tick(20.0)) == [], "the round's own clock starts with the first tick after the start"
    assert machine.deadline_s == 20.0 + ROUND_S
    assert machine.handle(msg.WorkerReady()) == []
    assert machine.handle(msg.Tick(29.0)) == []
    assert isinstance(machine.handle(msg.Tick(30.0))[0], msg.AbandonRound)


def test_a_worker_that_never_starts() -> None:
    machine = coordinator()
    machine.handle(msg.Submit(5.0))
    assert machine.handle(msg.Tick(64.0)) == []
    actions = machine.handle(msg.Tick(65.0))
    assert [type(action) for action in actions] == [msg.AbandonRound, msg.GiveUp, msg.WriteStop]
    assert "not ready" in (machine.reason or "")


def test_the_first_answer_proves_the_start() -> None:
    machine = coordinator()
    for event in (msg.Submit(0.0), msg.OkSeen(FIRST), msg.DataRead(FIRST), msg.Submit(1.0)):
        machine.handle(event)
    assert machine.deadline_s == 1.0 + ROUND_S


def test_nothing_times_out_between_rounds() -> None:
    machine = coordinator()
    assert machine.handle(msg.Tick(1e9)) == []
    assert machine.state == "idle"


def test_death_and_distrust_between_rounds() -> None:
    for event in (msg.WorkerLost("signal 9"), msg.Distrust("no witness")):
        machine = coordinator()
        assert [type(action) for action in machine.handle(event)] == [msg.GiveUp, msg.WriteStop]
        assert machine.state == "closed"


def test_an_unwritable_round_is_not_abandoned_since_nobody_saw_it() -> None:
    machine = coordinator()
    machine.handle(msg.Submit(0.0))
    assert [type(action) for action in machine.handle(msg.WriteFailed(FIRST, "disk full"))] == [
        msg.GiveUp,
        msg.WriteStop,
    ]
    assert "disk full" in (machine.reason or "")


def test_stop_with_a_round_outstanding() -> None:
    machine = coordinator()
    machine.handle(msg.Submit(0.0))
    assert [type(action) for action in machine.handle(msg.Stop())] == [msg.AbandonRound, msg.WriteStop]


def test_a_withdrawn_round_makes_room_for_the_next() -> None:
    machine = coordinator()
    assert machine.handle(msg.Withdraw("CPU first")) == []
    machine.handle(msg.Submit(0.0))
    machine.handle(msg.OkSeen(FIRST))
    assert machine.handle(msg.Withdraw("CPU first")) == [msg.AbandonRound(FIRST, "CPU first")]
    assert machine.state == "idle"
    assert machine.handle(msg.DataRead(FIRST, FIRST)) == []
    assert machine.handle(msg.Submit(1.0)) == [msg.WriteRound(SECOND)]
    assert machine.handle(msg.OkSeen(FIRST)) == []
    assert machine.deadline_s == 1.0 + START_S


def test_a_token_is_required() -> None:
    with pytest.raises(ValueError, match="token"):
        CoordinatorProtocol("xyz", 1.0, 1.0)


# ------------------------------------------------------------------------------------------- worker


class WorkerLaws:
    """What must hold for a worker, whatever it sees."""

    def __init__(self) -> None:
        self.machine = WorkerProtocol()
        self.started: set[str] = set()
        self.in_work: str | None = None
        self.data_written: set[str] = set()
        self.ok: set[str] = set()
        self.exited = False

    def feed(self, event: msg.WorkerEvent) -> list[msg.WorkerAction]:
        was_exited, state = self.exited, self.machine.state
        if isinstance(event, msg.DataWritten) and event.round_id == self.in_work and state == "writing":
            self.data_written.add(event.round_id)
        actions = self.machine.handle(event)
        assert not (was_exited and actions)
        for action in actions:
            self.check(action)
        assert self.machine.round_id == (None if self.exited else self.in_work)
        return actions

    def check(self, action: msg.WorkerAction) -> None:
        match action:
            case msg.LoadRound(round_id):
                assert self.in_work is None, "one round at a time"
                assert round_id not in self.started, "no round twice"
                assert layout.parse_round_id(round_id) is not None
                self.started.add(round_id)
                self.in_work = round_id
            case msg.Compute(round_id) | msg.WriteData(round_id):
                assert round_id == self.in_work
                assert round_id not in self.ok
            case msg.CreateOk(round_id):
                assert round_id == self.in_work
                assert round_id in self.data_written, "the flag comes after the file"
                assert round_id not in self.ok
                self.ok.add(round_id)
                self.in_work = None
            case msg.SkipRound(round_id):
                assert round_id not in self.ok
                if round_id == self.in_work:
                    self.in_work = None
            case msg.Exit():
                assert not self.exited
                self.exited = True


def worker_events(round_id: str) -> list[msg.WorkerEvent]:
    return [
        msg.RoundSeen(round_id),
        msg.RoundAbandoned(round_id),
        msg.Loaded(round_id),
        msg.LoadFailed(round_id, "bad"),
        msg.Computed(round_id),
        msg.ComputeFailed(round_id, "device"),
        msg.DataWritten(round_id),
        msg.WriteFailed(round_id, "full"),
    ]


def test_worker_laws_hold_in_every_sequence_of_four_events() -> None:
    alphabet = [
        *worker_events(FIRST),
        *worker_events(SECOND),
        msg.RoundSeen(FIRST, answered=True),
        msg.StopSeen(),
    ]
    for events in itertools.product(alphabet, repeat=4):
        laws = WorkerLaws()
        for event in events:
            laws.feed(event)


@given(
    st.lists(
        st.one_of(
            st.sampled_from([e for r in (FIRST, SECOND, THIRD, FOREIGN) for e in worker_events(r)]),
            st.sampled_from([msg.RoundSeen("round-x"), msg.RoundSeen(SECOND, answered=True), *worker_events("")]),
            st.sampled_from([msg.Loaded(FIRST), msg.Computed(FIRST), msg.DataWritten(FIRST)]),
        ),
        max_size=60,
    ),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_worker_laws_hold_in_long_sequences(events: list[msg.WorkerEvent], stop: bool) -> None:
    laws = WorkerLaws()
    for event in events:
        laws.feed(event)
    if stop:
        assert laws.feed(msg.StopSeen()) == [msg.Exit()]
        assert laws.feed(msg.RoundSeen(layout.round_id(9, TOKEN))) == []


def test_a_round_from_seeing_to_flag() -> None:
    machine = WorkerProtocol()
    assert machine.handle(msg.RoundSeen(FIRST)) == [msg.LoadRound(FIRST)]
    assert machine.handle(msg.RoundSeen(FIRST)) == []
    assert machine.handle(msg.Loaded(FIRST)) == [msg.Compute(FIRST)]
    assert machine.handle(msg.Computed(FIRST)) == [msg.WriteData(FIRST)]
    assert machine.handle(msg.DataWritten(FIRST)) == [msg.CreateOk(FIRST)]
    assert machine.handle(msg.RoundSeen(FIRST)) == []
    assert machine.state == "idle"


def test_lowest_number_first() -> None:
    machine = WorkerProtocol()
    machine.handle(msg.RoundSeen(SECOND))
    assert machine.handle(msg.RoundSeen(THIRD)) == []
    assert machine.handle(msg.RoundSeen(FIRST)) == []
    assert machine.handle(msg.LoadFailed(SECOND, "torn")) == [
        msg.SkipRound(SECOND, "torn"),
        msg.LoadRound(FIRST),
    ]
    machine.handle(msg.Loaded(FIRST))
    machine.handle(msg.Computed(FIRST))
    assert machine.handle(msg.DataWritten(FIRST)) == [msg.CreateOk(FIRST), msg.LoadRound(THIRD)]


def test_an_abandoned_round_is_left_at_any_stage() -> None:
    stages: list[msg.WorkerEvent] = [msg.Loaded(FIRST), msg.Computed(FIRST)]
    for done in range(3):
        machine = WorkerProtocol()
        machine.handle(msg.RoundSeen(FIRST))
        machine.handle(msg.RoundSeen(SECOND))
        for event in stages[:done]:
            machine.handle(event)
        assert machine.handle(msg.RoundAbandoned(FIRST)) == [
            msg.SkipRound(FIRST, "the coordinator abandoned it"),
            msg.LoadRound(SECOND),
        ]
        assert machine.handle(msg.DataWritten(FIRST)) == []


def test_a_queued_round_can_be_abandoned_and_an_answered_one_is_not_served() -> None:
    machine = WorkerProtocol()
    machine.handle(msg.RoundSeen(FIRST))
    machine.handle(msg.RoundSeen(SECOND))
    machine.handle(msg.RoundSeen(THIRD))
    assert [type(action) for action in machine.handle(msg.RoundAbandoned(SECOND))] == [msg.SkipRound]
    assert machine.handle(msg.RoundSeen(THIRD, answered=True)) == []
    assert [type(action) for action in machine.handle(msg.ComputeFailed(FIRST, "x"))] == []
    assert [type(action) for action in machine.handle(msg.LoadFailed(FIRST, "x"))] == [msg.SkipRound]
    assert machine.state == "idle"
