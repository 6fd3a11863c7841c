"""The state machines, fed with every short sequence of events and with long random ones."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.protocol import layout
from exchange.protocol.machines import (
    AbandonRound,
    Compute,
    Computed,
    ComputeFailed,
    CoordinatorAction,
    CoordinatorEvent,
    CoordinatorProtocol,
    CreateOk,
    DataBad,
    DataRead,
    DataWritten,
    Deliver,
    Distrust,
    Exit,
    GiveUp,
    Loaded,
    LoadFailed,
    LoadRound,
    OkSeen,
    ReadData,
    Reject,
    RoundAbandoned,
    RoundSeen,
    SkipRound,
    Stop,
    StopSeen,
    Submit,
    Tick,
    Withdraw,
    WorkerAction,
    WorkerEvent,
    WorkerLost,
    WorkerProtocol,
    WorkerReady,
    WriteData,
    WriteFailed,
    WriteRound,
    WriteStop,
)

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

    def feed(self, event: CoordinatorEvent) -> list[CoordinatorAction]:
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
            assert was_outstanding in self.over or isinstance(event, WriteFailed), "no round is forgotten silently"
        return actions

    def check(self, action: CoordinatorAction, event: CoordinatorEvent) -> None:
        match action:
            case WriteRound(round_id):
                assert isinstance(event, Submit)
                assert round_id not in self.written, "rounds are never reused"
                assert set(self.written) <= self.over, "one outstanding round"
                assert layout.parse_round_id(round_id) == (len(self.written) + 1, TOKEN)
                self.written.append(round_id)
            case ReadData(round_id):
                assert event == OkSeen(round_id)
                assert round_id == self.written[-1]
                assert round_id not in self.over
                assert round_id not in self.read, "an answer is read once"
                self.read.add(round_id)
            case Deliver(round_id):
                assert event in (DataRead(round_id, None), DataRead(round_id, round_id))
                assert round_id in self.read
                assert round_id not in self.over, "delivered at most once, and not after it was given up"
                self.over.add(round_id)
                self.delivered.append(round_id)
            case Reject(round_id) | AbandonRound(round_id):
                assert round_id == self.written[-1]
                assert round_id not in self.over
                self.over.add(round_id)
            case GiveUp(reason):
                assert reason
                assert self.machine.state == "closed"
            case WriteStop():
                self.stops += 1


COORDINATOR_ALPHABET: list[CoordinatorEvent] = [
    Submit(0.0),
    OkSeen(FIRST),
    OkSeen(SECOND),
    OkSeen(FOREIGN),
    DataRead(FIRST, FIRST),
    DataRead(SECOND, None),
    DataRead(FIRST, SECOND),
    DataRead(FOREIGN, FOREIGN),
    DataBad(FIRST, "torn"),
    Tick(5.0),
    Tick(100.0),
    WorkerReady(),
    WorkerLost("signal 9"),
    Stop(),
    Withdraw("CPU first"),
    WriteFailed(FIRST, "full"),
]


def test_coordinator_laws_hold_in_every_sequence_of_four_events() -> None:
    for events in itertools.product(COORDINATOR_ALPHABET, repeat=4):
        laws = CoordinatorLaws()
        for event in events:
            laws.feed(event)


ROUND = st.sampled_from([FIRST, SECOND, THIRD, FOREIGN, "", "nonsense"])
COORDINATOR_EVENTS = st.one_of(
    st.builds(Submit, st.floats(0, 50)),
    st.builds(OkSeen, ROUND),
    st.builds(DataRead, ROUND, st.one_of(st.none(), ROUND)),
    st.builds(DataBad, ROUND, st.just("bad")),
    st.builds(Tick, st.floats(0, 80)),
    st.just(WorkerReady()),
    st.builds(WriteFailed, ROUND, st.just("full")),
    st.builds(WorkerLost, st.just("signal 9")),
    st.builds(Distrust, st.just("no witness")),
    st.just(Stop()),
    st.just(Withdraw("CPU first")),
)
LIKELY = st.one_of(
    st.builds(Submit, st.just(1.0)),
    st.sampled_from([FIRST, SECOND, THIRD]).map(OkSeen),
    st.sampled_from([FIRST, SECOND, THIRD]).map(DataRead),
)


@given(st.lists(st.one_of(LIKELY, LIKELY, COORDINATOR_EVENTS), max_size=40))
@settings(max_examples=300, deadline=None)
def test_coordinator_laws_hold_in_long_sequences(events: list[CoordinatorEvent]) -> None:
    laws = CoordinatorLaws()
    for event in events:
        laws.feed(event)


def test_round_after_round() -> None:
    machine = coordinator()
    for seq in (1, 2, 3):
        round_id = layout.round_id(seq, TOKEN)
        assert machine.handle(Submit(float(seq))) == [WriteRound(round_id)]
        assert machine.state == "waiting"
        assert machine.handle(Submit(float(seq))) == []
        assert machine.handle(OkSeen(round_id)) == [ReadData(round_id)]
        assert machine.handle(OkSeen(round_id)) == []
        assert machine.handle(DataRead(round_id, round_id)) == [Deliver(round_id)]
        assert machine.handle(DataRead(round_id, round_id)) == []
        assert machine.state == "idle"
    assert machine.rounds_written == 3
    assert machine.handle(Stop()) == [WriteStop()]
    assert machine.state == "closed"
    assert machine.handle(Stop()) == []


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (DataBad(FIRST, "torn"), "torn"),
        (DataRead(FIRST, SECOND), SECOND),
        (DataRead(FIRST, FOREIGN), FOREIGN),
    ],
)
def test_bad_data_ends_the_exchange(event: CoordinatorEvent, word: str) -> None:
    machine = coordinator()
    machine.handle(Submit(0.0))
    assert machine.handle(event) == [], "data without its flag is not looked at"
    machine.handle(OkSeen(FIRST))
    rejected, gave_up, stop = machine.handle(event)
    assert isinstance(rejected, Reject)
    assert isinstance(gave_up, GiveUp)
    assert word in gave_up.reason
    assert stop == WriteStop()
    assert machine.state == "closed"
    assert machine.handle(Submit(1.0)) == []


def test_late_answers_are_ignored() -> None:
    machine = coordinator()
    machine.handle(WorkerReady())
    machine.handle(Submit(0.0))
    assert machine.deadline_s == ROUND_S
    assert machine.handle(Tick(9.9)) == []
    abandoned, gave_up, stop = machine.handle(Tick(10.0))
    assert abandoned == AbandonRound(FIRST, f"no answer to {FIRST} within 10 s")
    assert isinstance(gave_up, GiveUp)
    assert stop == WriteStop()
    assert machine.handle(OkSeen(FIRST)) == []
    assert machine.handle(DataRead(FIRST, FIRST)) == []


def test_a_time_out_while_the_answer_is_read() -> None:
    machine = coordinator()
    machine.handle(WorkerReady())
    machine.handle(Submit(0.0))
    machine.handle(OkSeen(FIRST))
    assert AbandonRound(FIRST, f"no answer to {FIRST} within 10 s") in machine.handle(Tick(11.0))
    assert machine.handle(DataRead(FIRST, FIRST)) == []


def test_the_first_round_waits_for_the_start() -> None:
    machine = coordinator()
    machine.handle(Submit(0.0))
    assert machine.handle(Tick(ROUND_S + 1)) == []
    assert machine.handle(WorkerReady()) == []
    assert machine.handle(Tick(20.0)) == [], "the round's own clock starts with the first tick after the start"
    assert machine.deadline_s == 20.0 + ROUND_S
    assert machine.handle(WorkerReady()) == []
    assert machine.handle(Tick(29.0)) == []
    assert isinstance(machine.handle(Tick(30.0))[0], AbandonRound)


def test_a_worker_that_never_starts() -> None:
    machine = coordinator()
    machine.handle(Submit(5.0))
    assert machine.handle(Tick(64.0)) == []
    actions = machine.handle(Tick(65.0))
    assert [type(action) for action in actions] == [AbandonRound, GiveUp, WriteStop]
    assert "not ready" in (machine.reason or "")


def test_the_first_answer_proves_the_start() -> None:
    machine = coordinator()
    for event in (Submit(0.0), OkSeen(FIRST), DataRead(FIRST), Submit(1.0)):
        machine.handle(event)
    assert machine.deadline_s == 1.0 + ROUND_S


def test_nothing_times_out_between_rounds() -> None:
    machine = coordinator()
    assert machine.handle(Tick(1e9)) == []
    assert machine.state == "idle"


def test_death_and_distrust_between_rounds() -> None:
    for event in (WorkerLost("signal 9"), Distrust("no witness")):
        machine = coordinator()
        assert [type(action) for action in machine.handle(event)] == [GiveUp, WriteStop]
        assert machine.state == "closed"


def test_an_unwritable_round_is_not_abandoned_since_nobody_saw_it() -> None:
    machine = coordinator()
    machine.handle(Submit(0.0))
    assert [type(action) for action in machine.handle(WriteFailed(FIRST, "disk full"))] == [GiveUp, WriteStop]
    assert "disk full" in (machine.reason or "")


def test_stop_with_a_round_outstanding() -> None:
    machine = coordinator()
    machine.handle(Submit(0.0))
    assert [type(action) for action in machine.handle(Stop())] == [AbandonRound, WriteStop]


def test_a_withdrawn_round_makes_room_for_the_next() -> None:
    machine = coordinator()
    assert machine.handle(Withdraw("CPU first")) == []
    machine.handle(Submit(0.0))
    machine.handle(OkSeen(FIRST))
    assert machine.handle(Withdraw("CPU first")) == [AbandonRound(FIRST, "CPU first")]
    assert machine.state == "idle"
    assert machine.handle(DataRead(FIRST, FIRST)) == []
    assert machine.handle(Submit(1.0)) == [WriteRound(SECOND)]
    assert machine.handle(OkSeen(FIRST)) == []
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

    def feed(self, event: WorkerEvent) -> list[WorkerAction]:
        was_exited, state = self.exited, self.machine.state
        if isinstance(event, DataWritten) and event.round_id == self.in_work and state == "writing":
            self.data_written.add(event.round_id)
        actions = self.machine.handle(event)
        assert not (was_exited and actions)
        for action in actions:
            self.check(action)
        assert self.machine.round_id == (None if self.exited else self.in_work)
        return actions

    def check(self, action: WorkerAction) -> None:
        match action:
            case LoadRound(round_id):
                assert self.in_work is None, "one round at a time"
                assert round_id not in self.started, "no round twice"
                assert layout.parse_round_id(round_id) is not None
                self.started.add(round_id)
                self.in_work = round_id
            case Compute(round_id) | WriteData(round_id):
                assert round_id == self.in_work
                assert round_id not in self.ok
            case CreateOk(round_id):
                assert round_id == self.in_work
                assert round_id in self.data_written, "the flag comes after the file"
                assert round_id not in self.ok
                self.ok.add(round_id)
                self.in_work = None
            case SkipRound(round_id):
                assert round_id not in self.ok
                if round_id == self.in_work:
                    self.in_work = None
            case Exit():
                assert not self.exited
                self.exited = True


def worker_events(round_id: str) -> list[WorkerEvent]:
    return [
        RoundSeen(round_id),
        RoundAbandoned(round_id),
        Loaded(round_id),
        LoadFailed(round_id, "bad"),
        Computed(round_id),
        ComputeFailed(round_id, "device"),
        DataWritten(round_id),
        WriteFailed(round_id, "full"),
    ]


def test_worker_laws_hold_in_every_sequence_of_four_events() -> None:
    alphabet = [*worker_events(FIRST), *worker_events(SECOND), RoundSeen(FIRST, answered=True), StopSeen()]
    for events in itertools.product(alphabet, repeat=4):
        laws = WorkerLaws()
        for event in events:
            laws.feed(event)


@given(
    st.lists(
        st.one_of(
            st.sampled_from([e for r in (FIRST, SECOND, THIRD, FOREIGN) for e in worker_events(r)]),
            st.sampled_from([RoundSeen("round-x"), RoundSeen(SECOND, answered=True), *worker_events("")]),
            st.sampled_from([Loaded(FIRST), Computed(FIRST), DataWritten(FIRST)]),
        ),
        max_size=60,
    ),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_worker_laws_hold_in_long_sequences(events: list[WorkerEvent], stop: bool) -> None:
    laws = WorkerLaws()
    for event in events:
        laws.feed(event)
    if stop:
        assert laws.feed(StopSeen()) == [Exit()]
        assert laws.feed(RoundSeen(layout.round_id(9, TOKEN))) == []


def test_a_round_from_seeing_to_flag() -> None:
    machine = WorkerProtocol()
    assert machine.handle(RoundSeen(FIRST)) == [LoadRound(FIRST)]
    assert machine.handle(RoundSeen(FIRST)) == []
    assert machine.handle(Loaded(FIRST)) == [Compute(FIRST)]
    assert machine.handle(Computed(FIRST)) == [WriteData(FIRST)]
    assert machine.handle(DataWritten(FIRST)) == [CreateOk(FIRST)]
    assert machine.handle(RoundSeen(FIRST)) == []
    assert machine.state == "idle"


def test_lowest_number_first() -> None:
    machine = WorkerProtocol()
    machine.handle(RoundSeen(SECOND))
    assert machine.handle(RoundSeen(THIRD)) == []
    assert machine.handle(RoundSeen(FIRST)) == []
    assert machine.handle(LoadFailed(SECOND, "torn")) == [SkipRound(SECOND, "torn"), LoadRound(FIRST)]
    machine.handle(Loaded(FIRST))
    machine.handle(Computed(FIRST))
    assert machine.handle(DataWritten(FIRST)) == [CreateOk(FIRST), LoadRound(THIRD)]


def test_an_abandoned_round_is_left_at_any_stage() -> None:
    stages: list[WorkerEvent] = [Loaded(FIRST), Computed(FIRST)]
    for done in range(3):
        machine = WorkerProtocol()
        machine.handle(RoundSeen(FIRST))
        machine.handle(RoundSeen(SECOND))
        for event in stages[:done]:
            machine.handle(event)
        assert machine.handle(RoundAbandoned(FIRST)) == [
            SkipRound(FIRST, "the coordinator abandoned it"),
            LoadRound(SECOND),
        ]
        assert machine.handle(DataWritten(FIRST)) == []


def test_a_queued_round_can_be_abandoned_and_an_answered_one_is_not_served() -> None:
    machine = WorkerProtocol()
    machine.handle(RoundSeen(FIRST))
    machine.handle(RoundSeen(SECOND))
    machine.handle(RoundSeen(THIRD))
    assert [type(action) for action in machine.handle(RoundAbandoned(SECOND))] == [SkipRound]
    assert machine.handle(RoundSeen(THIRD, answered=True)) == []
    assert [type(action) for action in machine.handle(ComputeFailed(FIRST, "x"))] == []
    assert [type(action) for action in machine.handle(LoadFailed(FIRST, "x"))] == [SkipRound]
    assert machine.state == "idle"
