"""The computing thread: queries are answered around work, work is stopped, turns are taken. Runs on this thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from hybrid.config.schema import ServiceConfig
from hybrid.service.http.problems import Problem
from hybrid.service.queue.compute import Compute, Query, Stopped

LONG_S = 10.0  # what never happens has not happened after so long


@dataclass(eq=False)
class Asked:
    group: object = "graph"
    deadline: float = field(default_factory=lambda: time.monotonic() + 60)
    abandoned: bool = False
    answered: bool = False
    refused: Problem | None = None

    def refuse(self, problem: Problem) -> None:
        self.refused = problem


@dataclass(eq=False)
class Piece:
    do: Callable[[], None]
    stop_reason: str = ""

    def carry_out(self) -> None:
        self.do()


def make(**options: int) -> Compute:
    def answer(batch: list[Query]) -> None:
        for one in batch:
            assert isinstance(one, Asked)
            one.answered = True

    chosen: dict[str, Any] = {"query_queue": 8, "job_queue": 8, "max_batch": 4, **options}
    return Compute(answer, ServiceConfig(wait_ms=0.0, batching=True, **chosen))


def spin_until(condition: Callable[[], bool]) -> None:
    """Work as jobs do: instruction after instruction."""
    end = time.monotonic() + LONG_S
    while not condition() and time.monotonic() < end:
        pass


@pytest.mark.parametrize("when_open", [False, True])
def test_a_query_is_answered_around_work_whenever_it_comes(when_open: bool) -> None:
    """Also one whose signal arrived while the work could not be interrupted."""
    compute, query, seen = make(), Asked(), []

    def do() -> None:
        if not when_open:
            compute.ask(query)
        with compute.interruptible():
            if when_open:
                compute.ask(query)
            spin_until(lambda: query.answered)
        seen.append(query.answered)
        compute.close(stop_running=False)

    compute.submit(Piece(do))
    compute.run()
    assert seen == [True]


def how_it_ended(compute: Compute, work: Callable[[Piece], None]) -> str:
    """What became of a piece of work that is stopped in its midst."""
    ended: list[str] = []

    def do() -> None:
        try:
            work(piece)
            ended.append("went on")
        except Stopped:
            ended.append(piece.stop_reason)
        compute.close(stop_running=False)

    piece = Piece(do)
    compute.submit(piece)
    compute.run()
    return "".join(ended)


@pytest.mark.parametrize("when_open", [False, True])
def test_work_is_stopped_whenever_that_is_asked(when_open: bool) -> None:
    compute = make()

    def work(piece: Piece) -> None:
        if not when_open:
            compute.stop(piece, "cancelled")
        with compute.interruptible():
            if when_open:
                compute.stop(piece, "cancelled")
            spin_until(lambda: False)

    assert how_it_ended(compute, work) == "cancelled"


def test_work_is_stopped_though_the_signal_comes_while_an_object_is_destroyed() -> None:
    """Python ignores what is raised in ``__del__``; the work must end all the same."""
    compute = make()

    def work(piece: Piece) -> None:
        class Destroyed:
            def __del__(self) -> None:
                compute.stop(piece, "cancelled")
                spin_until(lambda: False)

        with compute.interruptible():
            Destroyed()
            spin_until(lambda: False)

    assert how_it_ended(compute, work) == "cancelled"


def test_more_queries_than_a_batch_holds_are_all_answered_around_work() -> None:
    compute, queries = make(), [Asked() for _ in range(8)]

    def do() -> None:
        with compute.interruptible():
            for query in queries:
                compute.ask(query)
            spin_until(lambda: all(query.answered for query in queries))
        compute.close(stop_running=False)

    compute.submit(Piece(do))
    compute.run()
    assert all(query.answered for query in queries)


def test_full_queues_refuse_and_late_queries_are_given_up() -> None:
    compute, late = make(query_queue=1, job_queue=1), Asked(deadline=0.0)
    compute.ask(late)
    with pytest.raises(Problem, match="waits already"):
        compute.ask(Asked())
    compute.submit(Piece(lambda: compute.close(stop_running=False)))
    with pytest.raises(Problem, match="waits already"):
        compute.submit(Piece(lambda: None))
    compute.run()
    assert late.refused is not None
    assert late.refused.status == 504
