"""When a resident worker is started again, and when not any more; and that a false word costs nothing but a search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest

import hybrid
from cpu_engine.bfs.many.engine import ManyBfs
from cpu_engine.graph.graph import Graph
from hybrid.config.schema import Config
from hybrid.service.lives import (
    FAILED,
    MOST_FAILED_STARTS,
    MOST_LIES,
    OFF,
    READY,
    RESTARTING,
    STARTING,
    WorkerLife,
)
from hybrid.service.lives import WORKER_FIRST_PAUSE_S as FIRST_PAUSE_S
from hybrid.service.lives import WORKER_LONGEST_PAUSE_S as LONGEST_PAUSE_S
from hybrid.service.lives import WORKER_STEADY_S as HEALTHY_S
from hybrid.service.worker.pool import BatchHelp, Workers
from tests.core_solvers import ScriptedCoreSolver, Word


def started(life: WorkerLife, now: float) -> WorkerLife:
    life.want("a graph has come")
    life.start()
    life.serve(now, "it answers")
    return life


def test_a_worker_that_dies_now_and_then_comes_back_at_once() -> None:
    life, now = WorkerLife("nobody asked"), 0.0
    assert (life.state, life.pause_s(now)) == (OFF, math.inf)
    for deaths in range(1, 50):
        started(life, now)
        assert life.state == READY
        now += HEALTHY_S
        life.lose(now, "killed")
        assert (life.state, life.deaths, life.last_death) == (RESTARTING, deaths, "killed")
        assert life.pause_s(now) == FIRST_PAUSE_S
    assert life.restarts == 48


def test_the_pause_doubles_while_it_dies_young() -> None:
    life, now, pauses = WorkerLife(""), 0.0, []
    for _ in range(20):
        started(life, now)
        life.lose(now, "killed")
        pauses.append(life.pause_s(now))
        now += pauses[-1]
        assert life.pause_s(now) == 0
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_one_that_never_starts_or_lies_is_given_up() -> None:
    life = WorkerLife("")
    life.want("")
    for _ in range(MOST_FAILED_STARTS):
        assert life.state in (STARTING, RESTARTING)
        life.start()
        life.lose(0.0, "no MindSpore")
    assert life.state == FAILED
    assert "no MindSpore" in life.why
    assert life.pause_s(1e9) == math.inf
    life.rest("nobody asks")
    life.want("a graph has come")
    assert life.state == FAILED
    liar = WorkerLife("")
    for _ in range(MOST_LIES):
        started(liar, 0.0).lose(100.0, "false", lied=True)
    assert liar.state == FAILED


class Lender:
    """Stands in for a worker: lends what it is given."""

    def __init__(self, solver: ScriptedCoreSolver) -> None:
        self.solver = solver
        self.refused: list[bool] = []
        self.lent = 0

    def lend(self, core: object) -> ScriptedCoreSolver | None:
        self.lent += 1
        return self.solver if self.solver.usable else None

    def refuse(self, reason: str, *, lied: bool = True) -> None:
        self.refused.append(lied)
        self.solver.distrust(reason)

    def give_back(self) -> None:
        self.lent -= 1


@pytest.fixture(scope="module")
def graph() -> Graph:
    return hybrid.generate("kronecker", scale=9, edge_factor=8, seed=3).rows


def help_with(graph: Graph, word: Word, tmp_path: Path, mode: str, delays: Iterator[int]) -> tuple[BatchHelp, Lender]:
    config = Config()
    config = replace(config, npu=replace(config.npu, mode=mode), core=replace(config.core, size=32))
    workers = Workers(config, tmp_path, lambda: None)
    lender = Lender(ScriptedCoreSolver(word, delays))
    workers.worker_for = lambda core, **_: lender  # type: ignore[method-assign, assignment, return-value]
    return BatchHelp(workers, workers.plans("graph", graph, mode)), lender


def closed(graph: Graph, k: int) -> Word:
    """The true closure of rows of values over the core's edges."""
    rows = np.repeat(np.arange(k), np.diff(graph.out_offsets[: k + 1]))
    targets = graph.out_targets[: int(graph.out_offsets[k])]
    inside = targets < k

    def close(values: np.ndarray) -> np.ndarray:
        far = np.where(values < 0, 1 << 20, values).T.copy()
        for _ in range(k):
            np.minimum.at(far, targets[inside], far[rows[inside]] + 1)
        return np.where(far.T >= 1 << 20, -1, far.T).astype(np.int32)

    return close


@pytest.mark.parametrize("mode", ["share", "race"])
def test_a_batch_by_two_is_a_batch_alone(graph: Graph, tmp_path: Path, mode: str) -> None:
    help, lender = help_with(graph, closed(graph, 32), tmp_path, mode, repeat(0))
    roots = np.arange(0, graph.n, 9)[:50]
    level = help.search(roots)
    assert level is not None
    assert np.array_equal(level, ManyBfs(graph).run(roots).level)
    assert not lender.refused
    assert lender.lent == 0


def test_a_false_word_is_refused_by_the_certificate(graph: Graph, tmp_path: Path) -> None:
    def lie(values: np.ndarray) -> np.ndarray:
        return np.maximum(closed(graph, 32)(values), 3).astype(np.int32)  # further than they are

    help, lender = help_with(graph, lie, tmp_path, "share", repeat(0))
    roots = np.arange(graph.n - 40, graph.n)
    assert help.search(roots) is None
    assert lender.refused == [True]
    assert lender.lent == 0
    assert help.search(roots) is None  # it is not asked again
