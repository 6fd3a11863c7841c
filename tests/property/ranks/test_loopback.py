"""Drivers in one process: requests are matched, orders are any, and what cannot go on says who waits for what.

The rounds are tested on it with a worker as plain as possible; the engines have their own tests.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.comm.errors import CommError
from cpu_engine.comm.framing import join_messages, split_messages
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.requests import FIRST_OUTSIDE_TAG, AllReduce, Driver, Exchange, Message, Progress
from cpu_engine.comm.rounds import RoundsReport, basp_rounds, bsp_rounds
from cpu_engine.comm.substrate import DISTANCE_PUSHED, Field, Sync, needs
from cpu_engine.comm.termination import Termination
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph
from cpu_engine.graph.partition.part import Part
from tests import naive

MOST = 0xFFFFFFFF
Pairs = list[tuple[int, int]]
EXAMPLES = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 60

graphs = st.integers(2, 24).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=80)
)


# Seeds, not st.randoms: what hypothesis draws is mostly small, and a small choice is mostly the first.
orders = st.integers(0, 1 << 32).map(random.Random)


def text(words: str) -> np.ndarray:
    return np.frombuffer(words.encode(), np.uint8).copy()


# ------------------------------------------------------------------------------ requests


def ring(rank: int, size: int, rounds: int) -> Driver[list[str]]:
    """Pass a word around; reuse the buffer at once, as the contract allows."""
    heard = []
    buffer = text(f"{rank}:0")
    for i in range(rounds):
        buffer[:] = text(f"{rank}:{i}")
        answer = yield Exchange(7, {(rank + 1) % size: buffer}, ((rank - 1) % size,))
        heard += [payload.tobytes().decode() for payload in answer.values()]
        buffer[:] = 0
    return heard


@given(st.integers(1, 6), st.integers(0, 5), orders)
@settings(max_examples=60, deadline=None)
def test_exchanges_are_matched_in_any_order(size: int, rounds: int, order: random.Random) -> None:
    heard = run_loopback([ring(rank, size, rounds) for rank in range(size)], order.randrange)
    assert heard == [[f"{(rank - 1) % size}:{i}" for i in range(rounds)] for rank in range(size)]


@pytest.mark.parametrize(("op", "expected"), [("sum", [6, 4]), ("max", [3, 1]), ("min", [0, 1])])
def test_reductions(op: str, expected: list[int]) -> None:
    def driver(rank: int) -> Driver[list[int]]:
        first = yield AllReduce(np.array([rank, 1], np.int64), op)  # type: ignore[arg-type]
        second = yield AllReduce(first, "max")
        return second.tolist()

    assert run_loopback([driver(rank) for rank in range(4)]) == [expected] * 4


def shouting(rank: int, size: int, words: int) -> Driver[list[tuple[int, int, bytes]]]:
    """Send everybody some words, take what comes until all that was meant for this rank is there."""
    heard: list[tuple[int, int, bytes]] = []
    outgoing = [
        Message(peer, 70 + i, text(f"{rank}>{peer} {i}")) for peer in range(size) for i in range(words) if peer != rank
    ]
    while len(heard) < words * (size - 1) or outgoing:
        now, outgoing = outgoing[:2], outgoing[2:]
        arrived = yield Progress(now, wait=not outgoing)
        heard += [(message.peer, message.tag, message.payload.tobytes()) for message in arrived]
    return heard


@given(st.integers(1, 5), st.integers(0, 4), orders)
@settings(max_examples=60, deadline=None)
def test_every_message_arrives_once_in_any_order(size: int, words: int, order: random.Random) -> None:
    heard = run_loopback([shouting(rank, size, words) for rank in range(size)], order.randrange)
    for rank in range(size):
        expected = [
            (peer, 70 + i, f"{peer}>{rank} {i}".encode()) for peer in range(size) for i in range(words) if peer != rank
        ]
        assert sorted(heard[rank]) == expected


def test_orders_really_differ() -> None:
    orders = {
        tuple(run_loopback([shouting(rank, 3, 3) for rank in range(3)], random.Random(seed).randrange)[0])
        for seed in range(20)
    }
    assert len(orders) > 10


@pytest.mark.parametrize("stubborn", [lambda choices: 0, lambda choices: choices - 1])
def test_fair_whatever_the_chooser_says(stubborn: Callable[[int], int]) -> None:
    """One driver polls without ever resting: its message must come, and the sender must get its turn."""

    def polling(rank: int) -> Driver[int]:
        outgoing = [Message(1 - rank, 70, text("go on"))]
        for polls in range(10_000):
            arrived = yield Progress(outgoing)
            outgoing = []
            if arrived:
                return polls
        raise AssertionError("starved")

    run_loopback([polling(0), polling(1)], stubborn)


# ------------------------------------------------------------------------------ what cannot go on


def one_request(request: Exchange | AllReduce | Progress) -> Driver[None]:
    yield request


def nothing() -> Driver[None]:
    return
    yield


ONES = np.ones(1, np.int64)
STUCK = {
    "who never sends": (lambda: [one_request(Exchange(1, {}, (1,))), nothing()], r"rank 0 waits for tag 1 from \[1\]"),
    "who ended": (lambda: [one_request(AllReduce(ONES)), nothing()], "rank 1 has ended"),
    "each other": (
        lambda: [one_request(Exchange(1, {}, (1,))), one_request(AllReduce(ONES))],
        "rank 1 waits for all to reduce",
    ),
    "another tag": (
        lambda: [one_request(Exchange(1, {1: text("a")}, (1,))), one_request(Exchange(2, {0: text("a")}, (0,)))],
        "expects tag 1 from rank 1, which sent tag 2",
    ),
    "another reduction": (
        lambda: [one_request(AllReduce(ONES)), one_request(AllReduce(ONES, "max"))],
        "different reductions",
    ),
    "nobody": (lambda: [one_request(Exchange(1, {5: text("a")}, ()))], "rank 5, which does not exist"),
}


@pytest.mark.parametrize("what", STUCK)
def test_who_waits_in_vain_is_named(what: str) -> None:
    drivers, message = STUCK[what]
    with pytest.raises(CommError, match=f"{message}.*Fix: "):
        run_loopback(drivers())


def test_waiting_for_a_message_that_nobody_sends() -> None:
    def forever() -> Driver[None]:
        while True:
            yield Progress(wait=True)

    with pytest.raises(CommError, match=r"no driver can go on.*waits for a message, 0 under way"):
        run_loopback([forever(), forever()], idle_limit=100)


def test_a_message_that_comes_too_late_is_an_error() -> None:
    def late(rank: int) -> Driver[None]:
        if rank == 0:
            yield Progress([Message(1, 70, text("still there?"))])
        else:
            yield Progress()

    with pytest.raises(CommError, match="ended before a message of tag 70 from rank 0"):
        run_loopback([late(0), late(1)], lambda choices: 0)


def test_a_failing_driver_ends_all() -> None:
    closed = []

    def failing() -> Driver[None]:
        yield Progress()
        raise ValueError("mine")

    def waiting() -> Driver[None]:
        try:
            yield Exchange(1, {}, (0,))
        finally:
            closed.append(True)

    with pytest.raises(ValueError, match="mine"):
        run_loopback([failing(), waiting()])
    assert closed == [True]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(64, 255), st.binary(max_size=30))))
def test_joined_messages_come_apart_again(sent: list[tuple[int, int, bytes]]) -> None:
    messages = [Message(peer, tag, np.frombuffer(words, np.uint8)) for peer, tag, words in sent]
    joined = join_messages(messages, (0, 1, 2))
    for peer, payload in joined.items():
        heard = [(message.tag, message.payload.tobytes()) for message in split_messages(9, payload)]
        assert heard == [(tag, words) for receiver, tag, words in sent if receiver == peer]
    with pytest.raises(CommError, match=r"rank 3.*Fix: name rank 3 among outside_to"):
        join_messages([Message(3, 64, text("a"))], (0, 1, 2))


# ------------------------------------------------------------------------------ rounds


class PlainWorker:
    """Relaxes one vertex per quantum. What reaches it from outside the substrate is only counted."""

    def __init__(self, part: Part, root: int, tells: list[Message] | None = None) -> None:
        self.part = part
        self.values = np.full(part.size, MOST, np.uint32)
        self.tells, self.heard = tells or [], 0
        self.queue: deque[int] = deque()
        (local,) = part.local_of(np.array([root])).tolist()
        if local >= 0:
            self.values[local] = 0
            self.queue.append(local)

    def compute(self) -> bool:
        if self.queue:
            u = self.queue.popleft()
            for v in self.part.out_targets[self.part.out_offsets[u] : self.part.out_offsets[u + 1]].tolist():
                if self.values[u] + 1 < self.values[v]:
                    self.values[v] = self.values[u] + 1
                    self.queue.append(v)
        return bool(self.queue)

    def activate(self, local_ids: np.ndarray, peer: int) -> None:
        assert peer != self.part.part
        self.queue.extend(local_ids.tolist())

    def idle(self) -> bool:
        return not self.queue

    def outside(self) -> list[Message]:
        told, self.tells = self.tells, []
        return told

    def from_outside(self, message: Message) -> None:
        assert message.tag >= FIRST_OUTSIDE_TAG
        self.heard += 1


def rounds(sync: str, worker: PlainWorker, field: Sync) -> Driver[RoundsReport]:
    part = worker.part
    if sync == "basp":
        return basp_rounds(worker, field, Termination(part.part, part.layout.parts))
    others = tuple(peer for peer in range(part.layout.parts) if peer != part.part)
    return bsp_rounds(worker, field, others, others)


def built(pairs: Pairs, directed: bool) -> Graph:
    src, dst = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return build_graph(EdgeList(src, dst), directed=directed)


def expected_levels(graph: Graph, root: int) -> list[int]:
    sources = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets)).tolist()
    reached = naive.bfs_levels(zip(sources, graph.out_targets.tolist(), strict=True), True, root)
    return [reached.get(v, MOST) for v in range(graph.n)]


@pytest.mark.jitless
@pytest.mark.parametrize("sync", ["bsp", "basp"])
@pytest.mark.parametrize("memoised", [True, False])
@given(
    pairs=graphs,
    directed=st.booleans(),
    policy=st.sampled_from(POLICIES),
    size=st.integers(1, 6),
    roots=st.lists(st.integers(0, 23), min_size=1, max_size=3),
    order=st.none() | orders,
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_rounds_are_exact(
    sync: str,
    memoised: bool,
    pairs: Pairs,
    directed: bool,
    policy: str,
    size: int,
    roots: list[int],
    order: random.Random | None,
) -> None:
    """Several runs one after the other, with nothing but the rounds' own end between them."""
    graph = built(pairs, directed)
    if graph.n == 0:
        return
    parts = partition_graph(graph, policy, size)

    def driver(part: Part) -> Driver[list[tuple[PlainWorker, RoundsReport]]]:
        field = Sync(part, DISTANCE_PUSHED, memoised=memoised)
        runs = []
        for root in roots:
            greeting = [Message((part.part + 1) % size, 64, text("hello"))] if size > 1 else []
            worker = PlainWorker(part, root % graph.n, greeting)
            runs.append((worker, (yield from rounds(sync, worker, field))))
        return runs

    chooser = None if order is None else order.randrange
    results = run_loopback([driver(part) for part in parts], chooser, idle_limit=1000)
    for i, root in enumerate(roots):
        found = [MOST] * graph.n
        for part, runs in zip(parts, results, strict=True):
            worker, report = runs[i]
            assert worker.heard == (1 if size > 1 else 0)
            assert report.rounds >= 1
            for local in range(part.masters):
                found[part.internal_of[local]] = int(worker.values[local])
        assert found == expected_levels(graph, root % graph.n)
        if sync == "basp":
            assert sum(runs[i][1].sent for runs in results) == sum(runs[i][1].received for runs in results)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_policy_needs_is_enough_and_not_more(policy: str) -> None:
    """Mirrors that are written exist iff a reduce is needed; mirrors that are read iff a broadcast is."""
    reduces, broadcasts = needs(DISTANCE_PUSHED, policy)
    random_pairs = random.Random(5)
    pairs = [(random_pairs.randrange(200), random_pairs.randrange(60)) for _ in range(900)]
    parts = partition_graph(built(pairs, True), policy, 4)
    assert any(ids.size for part in parts for ids in part.mirrors_with_in) == reduces
    assert any(ids.size for part in parts for ids in part.mirrors_with_out) == broadcasts
    for part in parts:
        field = Sync(part, DISTANCE_PUSHED)
        assert [phase.name for phase in field.phases] == ["reduce"] * reduces + ["broadcast"] * broadcasts
        for other in parts:
            there = Sync(other, DISTANCE_PUSHED)
            assert (other.part in field.reduce.send_to) == (part.part in there.reduce.receive_from)
            assert (other.part in field.broadcast.send_to) == (part.part in there.broadcast.receive_from)


def test_a_field_read_where_it_is_written_needs_the_other_phases() -> None:
    pulled = Field("distance", written="source", read="target")
    assert needs(pulled, "oec") == (False, True)
    assert needs(pulled, "iec") == (True, False)
    assert needs(Field("anything", "any", "any"), "oec") == (True, True)
    with pytest.raises(CommError, match=r"'xyz' is not known.*Fix: use one of oec"):
        needs(pulled, "xyz")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_peer_told_is_not_told_back(policy: str) -> None:
    """After a reduce the peer that brought the value is left out of the broadcast, and the other way round."""
    random_pairs = random.Random(6)
    pairs = [(random_pairs.randrange(200), random_pairs.randrange(5)) for _ in range(600)]
    pairs += [(v, u) for u, v in pairs]
    parts = partition_graph(built(pairs, True), policy, 3)
    written_and_read = [(part.has_in & part.has_out)[part.masters :].any() for part in parts]
    assert any(written_and_read) == (policy == "uvc")
    for teller in parts:
        fields = [Sync(part, DISTANCE_PUSHED) for part in parts]
        values = [np.full(part.size, MOST, np.uint32) for part in parts]
        values[teller.part][teller.masters :] = 5
        for peer, payload in fields[teller.part].reduce.messages(values[teller.part]).items():
            changed = fields[peer].reduce.apply(teller.part, payload, values[peer])
            assert changed.size == teller.mirrors_with_in[peer].size
            assert teller.part not in fields[peer].broadcast.messages(values[peer]), "all that it knows came from there"
        fields[teller.part].start()
        values[teller.part][: teller.masters] = 4
        for peer, payload in fields[teller.part].broadcast.messages(values[teller.part]).items():
            changed = fields[peer].broadcast.apply(teller.part, payload, values[peer])
            assert changed.size == teller.masters_read_at[peer].size
            assert teller.part not in fields[peer].reduce.messages(values[peer]), "all that it knows came from there"
