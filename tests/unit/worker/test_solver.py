"""The coordinator's end of the exchange, with a worker that the test plays; and which directories are swept."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from exchange.filesystem.folder import Folder
from exchange.filesystem.owner_lock import lock_directory
from exchange.mailbox import WorkerMailbox
from exchange.protocol import layout
from hybrid.algorithms.bfs import make_engine
from hybrid.config import load_config
from hybrid.job.driver import run_job
from hybrid.offload.many_sources import ManyEngine
from hybrid.offload.rounds import STILL_STARTING, Rounds
from hybrid.offload.traverse import traverse_alone, traverse_together
from hybrid.results.trace import Trace
from hybrid.worker import exchange_directory
from hybrid.worker.solver import WorkerSolver

OFFSETS, TARGETS = np.array([0, 2, 3] + [5] * 18), np.array([1, 2, 2, 0, 3], np.int32)
BATCH = np.array([[0, -1, -1], [-1, 4, -1]], np.int32)
CLOSED = np.array([[0, 1, 1], [6, 4, 5]], np.int32)


def test_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, young, held, foreign = (
        tmp_path / name for name in ("tandem-exchange-a", "tandem-exchange-b", "tandem-exchange-c", "x")
    )
    for folder in (old, young, held, foreign):
        folder.mkdir()
        (folder / "value.txt").write_text("0 0\n")
    lock = lock_directory(Folder.open(held), "0123abcd")
    for folder in (old, held, foreign):
        os.utime(folder, (1, 1))
    monkeypatch.setattr(exchange_directory, "_MEMORY", tmp_path)
    fresh = exchange_directory.fresh_directory()
    lock.release(remove=True)
    assert sorted(tmp_path.iterdir()) == sorted([young, held, foreign, fresh])


@pytest.fixture(params=["text", "binary"])
def solver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkerSolver]:
    """A coordinator that waits for somebody to serve its directory."""
    options = [f"exchange.dir={tmp_path}", "npu.worker=external", f"exchange.format={request.param}"]
    options += ["exchange.max_bytes=8192", "npu.round_timeout_s=600", "npu.start_timeout_s=600"]
    made = WorkerSolver(load_config(None, options), tmp_path / "worker.log", Trace())
    made.start()
    yield made
    made.close()


def answer(solver: WorkerSolver, rows: np.ndarray) -> WorkerMailbox:
    """Serve the round that is waiting with these rows."""
    worker = WorkerMailbox(solver.directory)
    round_id = worker.pending_rounds()[-1]
    question = worker.load_question(round_id)
    worker.write_rows(round_id, question.program, rows, {"device": "NPU"})
    worker.create_ok(round_id)
    return worker


@pytest.mark.parametrize("keep", [True, False])
def test_a_worker_that_is_kept_is_not_stopped_when_this_job_gives_up(tmp_path: Path, keep: bool) -> None:
    options = [f"exchange.dir={tmp_path}", "npu.worker=external", f"npu.keep_worker={keep}"]
    solver = WorkerSolver(load_config(None, options), tmp_path / "worker.log", Trace())
    solver.start()
    solver.publish_edges(OFFSETS, TARGETS, 3)
    solver.submit(np.array([0, -1, -1], np.int32))
    round_id = WorkerMailbox(tmp_path).pending_rounds()[-1]
    solver.distrust("it lies")
    assert not solver.usable
    assert (tmp_path / round_id / layout.STOP_FLAG).exists(), "nobody waits for this round any more"
    solver.close()
    assert (tmp_path / layout.STOP_FLAG).exists() == (not keep)


def until_lost(solver: WorkerSolver) -> str:
    """Send a round that comes to nothing; why."""
    solver.start()
    solver.publish_edges(OFFSETS, TARGETS, 3)
    solver.submit(np.array([0, -1, -1], np.int32))
    while solver.usable:
        solver.poll()
        solver.wait()
    solver.close()
    return solver.failure


def test_a_job_whose_external_worker_was_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the directory and the command, before the wait is over and after it."""
    monkeypatch.setattr("hybrid.worker.solver._ABSENT_S", 0.0)
    directory = tmp_path / "of mine"
    directory.mkdir()
    options = [f"exchange.dir={directory}", "npu.worker=external", "npu.start_timeout_s=0.3"]
    failure = until_lost(WorkerSolver(load_config(None, options), tmp_path / "worker.log", Trace()))
    command = f"worker --exchange '{directory}'"
    assert failure.startswith(f"the worker was not ready within 0.3 s: none serves {directory}. Fix: start one with")
    assert command in failure
    early = [record.getMessage() for record in caplog.records if "announced itself" in record.getMessage()]
    assert len(early) == 1
    assert command in early[0]


def test_a_worker_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 'ImportError: cannot import x' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    failure = until_lost(WorkerSolver(load_config(None, []), tmp_path / "worker.log", Trace()))
    assert failure == "the worker failed with exit code 1; worker.log ends with: ImportError: cannot import x"


def test_a_worker_that_does_not_get_ready_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    solver = WorkerSolver(load_config(None, ["npu.start_timeout_s=0.2"]), tmp_path / "worker.log", Trace())
    solver.start()
    try:
        solver.publish_edges(OFFSETS, TARGETS, 3)
        solver.await_start()
        assert not solver.usable, "a round would wait for it again"
        assert solver.failure == "the worker was not ready within 0.2 s"
    finally:
        solver.close()


def test_the_answer_has_the_shape_of_the_question(solver: WorkerSolver) -> None:
    solver.publish_edges(OFFSETS, TARGETS, 3)
    mine = BATCH.copy()
    solver.submit(mine)
    mine[:] = 0  # the caller goes on with its array
    answer(solver, CLOSED)
    found = solver.poll()
    assert found is not None, solver.failure
    assert np.array_equal(found.values, CLOSED)
    assert (found.values.dtype, found.received, found.facts["device"]) == (np.int32, 6, "NPU")
    solver.publish_edges(OFFSETS, TARGETS, 3, program="plus-times")
    solver.submit(np.array([0.5, 0, 0.25], np.float32))
    answer(solver, np.array([[0.25, 0.5, 0.5]], np.float32))
    found = solver.poll()
    assert found is not None, solver.failure
    assert found.values.tolist() == [0.25, 0.5, 0.5]


@pytest.mark.parametrize(
    ("program", "values", "rows", "words"),
    [
        ("min-plus", BATCH, np.where(CLOSED == 1, 0, CLOSED), "2 values too small to be true, such as 0 for vertex 1"),
        (
            "min-plus",
            BATCH,
            np.where(CLOSED == 4, 5, CLOSED),
            "larger than sent, such as 5 for vertex 1 in row 1",
        ),
        ("min-plus", BATCH, np.where(CLOSED == 6, 4, CLOSED), "too small to be true, such as 4 for vertex 0 in row 1"),
        ("min-plus", BATCH, np.where(CLOSED == 6, 7, CLOSED) * 100, "outside 0..19"),
        ("min-select", BATCH, np.full((2, 3), 3, np.int32), "1 value larger"),
        ("or-and", np.zeros((1, 3), np.int32), np.eye(3, dtype=np.int32)[:1], "although none were sent"),
        ("plus-times", np.ones(3, np.float32), np.ones((1, 3), np.float32), "wrong sum, such as 3 in row 0 where 4"),
    ],
)
def test_one_bad_row_ends_it(
    solver: WorkerSolver, program: str, values: np.ndarray, rows: np.ndarray, words: str
) -> None:
    solver.publish_edges(OFFSETS, TARGETS, 3, program=program)
    solver.submit(values)
    answer(solver, rows)
    assert solver.poll() is None
    assert not solver.usable
    assert words in solver.failure


def test_weighted_answers_are_judged_by_the_lightest_edge(solver: WorkerSolver) -> None:
    solver.publish_edges(OFFSETS, TARGETS, 3, weight=np.array([50, 7, 7, 7, 1]))
    solver.submit(BATCH)
    answer(solver, np.array([[0, 14, 7], [18, 4, 11]], np.int32))
    assert solver.poll() is not None, solver.failure
    solver.submit(BATCH)
    answer(solver, np.array([[0, 6, 7], [18, 4, 11]], np.int32))
    assert solver.poll() is None
    assert "too small to be true, such as 6 for vertex 1 in row 0" in solver.failure


def test_a_batch_over_the_limit_is_not_sent(solver: WorkerSolver) -> None:
    solver.publish_edges(OFFSETS, TARGETS, 3)
    most = solver.largest_batch
    assert most > 1
    solver.submit(np.zeros((most + 1, 3), np.int32))
    assert not solver.usable
    assert f"send at most {most} vectors at once, or raise exchange.max_bytes" in solver.failure


@pytest.mark.parametrize(
    ("program", "weight", "words"),
    [("max-plus", None, "no such program"), ("min-plus", np.array([1, -1, 1, 1, 1]), "integers from 0")],
)
def test_a_core_that_cannot_be_written(
    solver: WorkerSolver, program: str, weight: np.ndarray | None, words: str
) -> None:
    solver.publish_edges(OFFSETS, TARGETS, 3, program=program, weight=weight)
    assert not solver.usable
    assert words in solver.failure


def test_a_wrong_index_is_not_taken_and_rounds_go_on(solver: WorkerSolver) -> None:
    solver.publish_edges(OFFSETS, TARGETS, 3)
    assert solver.request_index()
    assert solver.poll_index() is None
    worker = WorkerMailbox(solver.directory)
    (name,) = worker.pending_indexes()
    worker.write_index(name, np.zeros((3, 3), np.uint8), {})
    assert solver.poll_index() is None
    assert "0 on its diagonal" in solver.index_failure
    assert solver.usable
    solver.publish_edges(OFFSETS, TARGETS, 2)
    assert solver.request_index()
    solver.publish_edges(OFFSETS, TARGETS, 3)
    assert worker.pending_indexes() == [], "the index of a core that was replaced is abandoned"
    solver.publish_edges(np.zeros(101, np.int64), np.empty(0, np.int32), 100)
    assert not solver.request_index()
    assert "exchange.max_bytes is 8192" in solver.index_failure


def test_a_worker_that_made_no_index_says_why(solver: WorkerSolver) -> None:
    solver.publish_edges(OFFSETS, TARGETS, 3)
    solver.request_index()
    worker = WorkerMailbox(solver.directory)
    worker.announce(state="ready", skipped_index=layout.core_name(9, "0123abcd"), skipped_why="another one")
    solver.wait()
    assert solver.index_failure == ""
    worker.announce(skipped_index=worker.pending_indexes()[0], skipped_why="it is too long")
    solver.wait()
    assert solver.index_failure == "the worker made no index: it is too long"
    assert solver.usable


@pytest.fixture
def starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerSolver]:
    """A coordinator whose own worker - a script that sleeps - has been started and has not said a word yet."""
    program = tmp_path / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    made = WorkerSolver(load_config(None, [f"exchange.dir={tmp_path / 'exchange'}"]), tmp_path / "worker.log", Trace())
    made.start()
    yield made
    made.close()


@pytest.mark.parametrize("engine_name", ["level", "async"])
def test_a_race_sends_nothing_to_a_worker_that_is_starting(starter: WorkerSolver, engine_name: str) -> None:
    graph = build_graph(kronecker(8, 8, 1), directed=False)
    engine = make_engine(engine_name, CoreSplit(graph, 20))
    starter.publish_edges(graph.out_offsets, graph.out_targets, 20)
    expected = traverse_alone(make_engine(engine_name, CoreSplit(graph)), 5).level.copy()
    found = traverse_together(engine, 5, "race", starter, Trace())
    assert found.level.tolist() == expected.tolist()
    assert (found.npu.rounds_sent, found.npu.outcome) == (0, STILL_STARTING)
    assert not WorkerMailbox(starter.directory).pending_rounds()


def test_a_race_of_many_sends_nothing_to_a_worker_that_is_starting(starter: WorkerSolver) -> None:
    graph = build_graph(kronecker(8, 8, 1), directed=False)
    starter.publish_edges(graph.out_offsets, graph.out_targets, 20)
    done = ManyEngine(CoreSplit(graph, 20)).together(np.arange(30), "race", starter, Trace())
    assert (done.npu.rounds_sent, done.npu.outcome) == (0, STILL_STARTING)
    rounds = Rounds(starter, "race", Trace())
    assert not rounds.send(np.zeros(20, np.int32))
    assert rounds.close().outcome == STILL_STARTING


def test_a_worker_of_ones_own_is_starting_until_it_says_otherwise(starter: WorkerSolver) -> None:
    assert starter.starting
    facts = {"pid": starter._supervisor.pid, "host": "here", "state": "ready", "device": "CPU"}  # type: ignore[union-attr]
    (starter.directory / layout.WORKER_FACTS).write_text(json.dumps(facts))
    while starter.starting:  # looked at every 50 ms
        pass
    assert starter.device == "CPU"


def test_nobody_knows_whether_another_worker_is_starting(solver: WorkerSolver) -> None:
    """It may be one that writes no word about itself: it is sent rounds from the first on."""
    assert not solver.starting


@pytest.mark.parametrize("algorithm", ["bfs", "pagerank"])
def test_a_race_that_was_over_before_the_worker_had_started_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    program = tmp_path / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    keys = ["npu.mode=race", "graph.generator.scale=8", "source=random:4", "core.size=20", "compare.repeats=1"]
    done = run_job(load_config(None, [*keys, f"algorithm={algorithm}", f"output={tmp_path / 'out'}"])).summary
    assert (done["npu"]["outcome"], done["verdict"], done["certified"]) == (STILL_STARTING, None, True)
