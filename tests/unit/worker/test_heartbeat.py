"""A worker that falls silent is given up, and nothing else is."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hybrid.config import load_config
from hybrid.results.trace import Trace
from hybrid.worker import heartbeat, solver
from hybrid.worker.heartbeat import Heartbeat
from hybrid.worker.solver import WorkerSolver

PATIENCE_S = 20.0


def test_silence_is_counted_from_look_to_look() -> None:
    heart = Heartbeat(10.0, 60.0)
    told = {"pid": 7, "state": "busy", "heartbeat": 1.0}
    assert heart.look(told, 100.0) is None
    assert heart.look(told, 104.0) is None
    assert heart.look(told, 1000.0) is None, "a pause between two looks counts as a short one"
    assert heart.look({**told, "heartbeat": 0.5}, 1001.0) is None, "any change will do: clocks may go back"
    for now in (1004.0, 1008.0):
        assert heart.look({**told, "heartbeat": 0.5}, now) is None
    cause = heart.look({**told, "heartbeat": 0.5}, 1012.0)
    assert cause == "the worker hangs: no heartbeat for 10 s (state busy)"


def test_a_long_compile_is_no_silence() -> None:
    heart = Heartbeat(10.0, 60.0)
    told = {"pid": 7, "state": "starting", "heartbeat": 1.0}
    assert [heart.look(told, float(now)) for now in range(0, 500, 2)] == [None] * 250, "npu.start_timeout_s covers it"
    causes = [heart.look({**told, "state": "loading"}, float(now)) for now in range(500, 570, 2)]
    assert causes[:30] == [None] * 30
    assert causes[31] == "the worker hangs: no heartbeat for 60 s (state loading)"


@pytest.mark.parametrize("beat", [None, "soon", [1]])
def test_a_worker_without_a_heartbeat_is_not_judged(beat: object) -> None:
    heart = Heartbeat(0.0, 0.0)
    assert [heart.look({"heartbeat": beat, "state": "busy"}, float(now)) for now in range(9)] == [None] * 9


# --------------------------------------------------------------------------- an external worker, by its files


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerSolver]:
    """A coordinator whose external worker is ready and has been sent a round."""
    monkeypatch.setattr(solver, "BOUND_S", 0.2)
    tell(tmp_path)
    options = [f"exchange.dir={tmp_path}", "npu.worker=external", "npu.round_timeout_s=600", "exchange.watch=events"]
    made = WorkerSolver(load_config(None, options), tmp_path / "worker.log", Trace())
    made.start()
    made.publish_edges(np.array([0, 1, 2]), np.array([1, 0], np.int32), 2)
    made.submit(np.array([0, -1], np.int32))
    made.wait()
    assert made.usable
    yield made
    made.close()


def tell(directory: Path, **facts: object) -> None:
    known = {"pid": os.getpid(), "host": socket.gethostname(), "state": "ready", "device": "CPU", "heartbeat": 1.0}
    (directory / "worker.json").write_text(json.dumps({**known, **facts}))


def until_lost(made: WorkerSolver) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while made.usable:
        assert time.monotonic() < deadline, "the coordinator waits for ever"
        made.poll()
        made.wait()
    return made.failure


def test_an_external_worker_that_hangs(waiting: WorkerSolver) -> None:
    assert until_lost(waiting).startswith("the worker hangs: no heartbeat for 0.2 s")


def test_an_external_worker_that_stops(waiting: WorkerSolver) -> None:
    tell(waiting.directory, state="stopped", reason="SIGTERM", heartbeat=2.0)
    assert until_lost(waiting) == "the worker has stopped: SIGTERM"


def test_an_external_worker_that_was_killed(waiting: WorkerSolver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is gone, and what it said last stays."""
    monkeypatch.setattr(WorkerSolver, "_is_stale", lambda self, facts: True)
    assert until_lost(waiting) == "the worker's process is gone"


def test_a_coordinator_that_only_polls_notices_a_dead_worker(waiting: WorkerSolver) -> None:
    """Ranks go on searching instead of waiting; a process that its parent has not reaped yet is dead as well."""
    worker = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    tell(waiting.directory, pid=worker.pid)
    waiting.wait()
    assert waiting.usable
    worker.kill()
    deadline = time.monotonic() + PATIENCE_S
    while waiting.usable:
        assert time.monotonic() < deadline, "the coordinator polls for ever"
        waiting.poll()
    worker.communicate()
    assert waiting.failure == "the worker's process is gone"


def test_the_bound_is_far_above_the_beat() -> None:
    from npu_engine.pulse import PERIOD_S  # loads no MindSpore

    assert heartbeat.BOUND_S >= 20 * PERIOD_S
