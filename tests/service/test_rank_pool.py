"""The pool without mpirun: frames, fortunes, stopping together, and a job whose ranks end again and again."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hybrid
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.requests import AllReduce, Driver
from hybrid.algorithms.algorithm import Task
from hybrid.algorithms.bfs import Bfs
from hybrid.config.schema import Config
from hybrid.job.proof import prove_found
from hybrid.results.trace import Trace
from hybrid.service.lives import FAILED, HOPELESS, RESTARTING, UP, PoolState
from hybrid.service.lives import POOL_FIRST_PAUSE_S as FIRST_PAUSE_S
from hybrid.service.lives import POOL_LONGEST_PAUSE_S as LONGEST_PAUSE_S
from hybrid.service.queue.backends import found_in
from hybrid.service.queue.jobs import FAILED as JOB_FAILED
from hybrid.service.queue.jobs import Job
from hybrid.service.queue.runner import MOST_LOSSES, Runner
from hybrid.service.rank_pool import pool as pool_module
from hybrid.service.rank_pool.folders import PREFIX, PoolFolder
from hybrid.service.rank_pool.orders import StoppedTogether, stoppable
from hybrid.service.rank_pool.pool import PoolLost
from hybrid.service.rank_pool.wire import Frame, WireError, frame_bytes, read_frame

# ---------------------------------------------------------------------------------------------- frames


def test_a_pool_that_cannot_be_heard_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(stream: object) -> None:
        raise SystemError("out of the blue")

    monkeypatch.setattr(pool_module, "read_frame", fail)
    keeper: Any = pool_module.RankPool(Config())
    with pytest.raises(SystemError):
        keeper._listen(SimpleNamespace(stream=None))
    assert keeper._deaf  # which the keeper's next look takes for the end of rank 0


def test_frames_come_as_they_were_sent() -> None:
    sent = [
        Frame("order", {"ticket": 3, "roots": [[5, 1]], "far": 0.1}),
        Frame("run", {"ticket": 3, "count": np.int64(4)}, {"level": np.arange(5, dtype=np.int32), "none": np.empty(0)}),
    ]
    stream = io.BytesIO(b"".join(frame_bytes(frame) for frame in sent))
    first, second = read_frame(stream), read_frame(stream)
    assert first == sent[0]
    assert second is not None
    assert (second.kind, second.ticket, second.facts["count"]) == ("run", 3, 4)
    assert second.arrays["level"].dtype == np.int32
    assert second.arrays["level"].tolist() == [0, 1, 2, 3, 4]
    assert second.arrays["none"].size == 0
    assert read_frame(stream) is None


def test_a_frame_that_is_cut_off_anywhere_is_an_error() -> None:
    whole = frame_bytes(Frame("run", {"ticket": 1}, {"level": np.arange(3)}))
    for length in range(1, len(whole)):
        with pytest.raises(WireError):
            read_frame(io.BytesIO(whole[:length]))


def test_nothing_is_unpickled() -> None:
    array = np.array([{"a": 1}], dtype=object)
    with pytest.raises(ValueError, match="pickle"):
        frame_bytes(Frame("run", {}, {"level": array}))
    header = b'{"kind": "run", "facts": {}, "arrays": ["level"]}'
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    for content in (stream.getvalue(), pickle.dumps(array)):
        with pytest.raises(WireError):
            read_frame(io.BytesIO(struct.pack(">I", len(header)) + header + content))
    with pytest.raises(WireError, match="no header"):
        read_frame(io.BytesIO(b"\xff" * 8))


def test_an_answer_of_the_wrong_shape_is_none() -> None:
    graph = hybrid.from_edges([(0, 1), (1, 2)], directed=False)
    facts = {"counters": {}, "isolated": {}}
    task, parent = Task(graph.rows, Config(), graph.source(0)), np.zeros(3, np.int32)
    for wrong in (np.arange(4), np.zeros((3, 1)), np.array(["a", "b", "c"])):
        answer = found_in(Frame("run", facts, {"level": wrong, "parent": parent}))
        found, repair = prove_found(Bfs(), task, answer, Trace())
        assert repair is not None
        assert repair.reason == "level is no array of numbers over the vertices"
        assert sorted(found.arrays["level"].tolist()) == [0, 1, 2]


# ---------------------------------------------------------------------------------------------- fortunes


def test_a_pool_that_is_lost_is_started_again_at_once_and_then_ever_more_rarely() -> None:
    rank_pool, pauses = PoolState(2), []
    for time in range(8):
        rank_pool.starts()
        rank_pool.is_up(float(time))
        assert rank_pool.to_dict() == {
            "wanted": 2,
            "alive": 2,
            "restarts": time,
            "state": UP,
            "reason": rank_pool.reason,
        }
        rank_pool.falls("rank 1 has ended")
        assert (rank_pool.state, rank_pool.alive) == (RESTARTING, 1)
        pauses.append(rank_pool.lost("rank 1 was ended by SIGKILL", float(time)))
    assert pauses[0] == FIRST_PAUSE_S
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_S
    rank_pool.starts()
    rank_pool.is_up(100.0)
    assert rank_pool.lost("after a long life", 200.0) == FIRST_PAUSE_S


def test_starts_that_come_to_nothing_are_told_and_tried_again() -> None:
    rank_pool = PoolState(2)
    for _ in range(HOPELESS):
        assert rank_pool.state != FAILED
        rank_pool.starts()
        rank_pool.lost("no slots", 0.0)
    assert rank_pool.state == FAILED
    rank_pool.starts()
    rank_pool.is_up(0.0)
    assert (rank_pool.state, rank_pool.pauses.failed_starts) == (UP, 0)


# ---------------------------------------------------------------------------------------------- stopping


def count_rounds(rounds: list[int], rank: int, op: Any) -> Driver[None]:
    while True:
        yield AllReduce(np.array([rank], np.int64), op)
        rounds[rank] += 1


@pytest.mark.jitless
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_all_ranks_stop_at_the_same_point(op: str) -> None:
    rounds = [0, 0, 0]
    drivers = [
        stoppable(count_rounds(rounds, rank, op), lambda rank=rank: rank == 0 and rounds[0] >= 5)  # type: ignore[misc]
        for rank in range(3)
    ]
    with pytest.raises(StoppedTogether):
        run_loopback(drivers)
    assert rounds == [5, 5, 5]


@pytest.mark.jitless
def test_what_is_not_stopped_is_not_changed() -> None:
    seen = []

    def drive() -> Driver[None]:
        for op in ("sum", "max", "min"):
            answer = yield AllReduce(np.array([3, -4], np.int64), op)
            seen.append(answer.tolist())

    run_loopback([stoppable(drive(), lambda: False) for _ in range(2)])
    assert seen[0::2] == [[6, -8], [3, -4], [3, -4]]


# ---------------------------------------------------------------------------------------------- losses


class Book:
    def __init__(self) -> None:
        self.taken_back, self.concluded = 0, []  # type: ignore[var-annotated]

    def take_back(self, job: Job) -> None:
        self.taken_back += 1

    def conclude(self, job: Job, state: str, problem: Any = None) -> None:
        self.concluded.append((state, problem))


def losing() -> tuple[Runner, Book, list[Job]]:
    front: list[Job] = []
    compute: Any = SimpleNamespace(put_back=front.append)
    book: Any = Book()
    service: Any = SimpleNamespace(compute=compute, book=book)
    runner = Runner(service)
    return runner, book, front


def test_a_job_whose_ranks_end_is_the_next_again_until_it_is_given_up() -> None:
    runner, book, front = losing()
    job = Job("g", "bfs", {}, 1)
    for _ in range(MOST_LOSSES - 1):
        runner._try_again(job, PoolLost("rank 1 was ended by SIGKILL", guilty=True))
    runner._try_again(job, PoolLost("not its fault", guilty=False))
    assert (front, book.taken_back, book.concluded) == ([job] * MOST_LOSSES, MOST_LOSSES, [])
    runner._try_again(job, PoolLost("rank 1 was ended by SIGKILL", guilty=True))
    ((state, problem),) = book.concluded
    assert state == JOB_FAILED
    assert "3 times" in problem["detail"]
    assert "SIGKILL" in problem["detail"]


def test_a_job_that_was_cancelled_meanwhile_is_not_tried_again() -> None:
    runner, book, front = losing()
    job = Job("g", "bfs", {}, 1, stop_reason="cancelled")
    runner._try_again(job, PoolLost("rank 1 was ended by SIGKILL", guilty=True))
    assert (front, [state for state, _ in book.concluded]) == ([], ["cancelled"])


# ---------------------------------------------------------------------------------------------- folders


def test_the_folders_of_a_killed_service_are_removed_and_those_of_a_living_one_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    alive = PoolFolder()
    segment = alive.temporary() / "segment"
    segment.touch()
    for name in ("killed", "cut-short", "being-made"):
        (temporary / f"{PREFIX}{name}" / "mpi").mkdir(parents=True)
    (temporary / f"{PREFIX}killed" / "lock").touch()
    os.utime(temporary / f"{PREFIX}cut-short", (0, 0))
    (temporary / "other").mkdir()
    later = PoolFolder()
    kept = {alive.path, later.path, temporary / f"{PREFIX}being-made", temporary / "other"}
    assert set(temporary.iterdir()) == kept
    assert segment.exists()
    alive.temporary()
    assert not segment.exists()
    for one in (alive, later):
        one.remove()
    assert {one.name for one in temporary.iterdir()} == {f"{PREFIX}being-made", "other"}
