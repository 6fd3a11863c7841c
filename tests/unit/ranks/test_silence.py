"""Who stands still: the count, the signs of real processes, and what a launcher makes of them."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from hybrid.launch.announce import alive_line
from hybrid.launch.output import LaunchOutput
from hybrid.launch.processes import LAUNCHER, activity, new_mark, process_state
from hybrid.launch.silence import Silence
from hybrid.launch.watch import RankWatch
from tests.conftest import eventually

# ----------------------------------------------------------------------------------------------------- the count


def test_only_what_does_not_change_is_silent() -> None:
    silence = Silence(3.0)
    looks = [silence.look({"a": second, "b": "same"}, float(second)) for second in range(5)]
    assert looks == [None, None, None, None, "b"]


def test_a_change_begins_anew() -> None:
    silence = Silence(3.0)
    assert [silence.look({"a": second // 3}, float(second)) for second in range(30)] == [None] * 30


def test_a_watcher_that_was_stopped_itself_blames_nobody() -> None:
    silence = Silence(6.0)
    assert silence.look({"a": 1}, 0.0) is None
    assert silence.look({"a": 1}, 3600.0) is None, "an hour without a look counts as a few seconds"
    assert silence.look({"a": 1}, 3605.0) == "a"


# ------------------------------------------------------------------------------------------------- real processes


@pytest.fixture
def mark() -> str:
    return new_mark()


@pytest.fixture
def started(mark: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """One that computes in one long step, as a kernel that holds Python's lock does, and one that waits for ever."""
    environment = {**os.environ, LAUNCHER: mark}
    computing = [sys.executable, "-c", "all(i >= 0 for i in iter(int, 1))"]
    running = {
        "busy": subprocess.Popen(computing, env=environment),
        "idle": subprocess.Popen(["sleep", "600"], env=environment),
    }
    yield running
    for process in running.values():
        process.kill()
        process.wait()


def test_what_computes_is_active_and_what_waits_is_not(started: dict[str, subprocess.Popen[bytes]]) -> None:
    busy, idle = started["busy"].pid, started["idle"].pid
    first = activity(busy)
    assert eventually(lambda: activity(busy) != first)
    eventually(lambda: process_state(idle) == "S")
    resting = activity(idle)
    second = activity(busy)
    assert eventually(lambda: activity(busy) != second)
    assert activity(idle) == resting


def watched(output: LaunchOutput, mpirun: int, mark: str, bound_s: float) -> str:
    """What the watch says in the end."""
    watch = RankWatch(mpirun, mark, output, bound_s)
    return str(eventually(watch.look))


def test_ranks_that_never_run_are_named(started: dict[str, subprocess.Popen[bytes]], mark: str) -> None:
    output = LaunchOutput(hosts=["a", "b"], pids=[started["busy"].pid, started["idle"].pid])
    told = watched(output, os.getpid(), mark, 1.0)
    assert f"rank 1 on b (pid {started['idle'].pid}) has given no sign of life for 1 s" in told


def test_a_stopped_mpirun_is_named(
    started: dict[str, subprocess.Popen[bytes]], mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mpirun = started["idle"].pid
    os.kill(mpirun, signal.SIGSTOP)
    told = watched(LaunchOutput(), mpirun, mark, 1.0)
    assert f"mpirun (pid {mpirun}) has been stopped for 1 s" in told
    assert f"mpirun (pid {mpirun}) is stopped" in capsys.readouterr().err


def test_a_rank_that_is_stopped_while_it_starts_is_named(
    started: dict[str, subprocess.Popen[bytes]], mark: str
) -> None:
    """Before the ranks have met: who is which is not known, and one that sleeps is not silent."""
    os.kill(started["busy"].pid, signal.SIGSTOP)
    told = watched(LaunchOutput(), os.getpid(), mark, 1.0)
    assert f"a rank that is starting (pid {started['busy'].pid}) has been stopped for 1 s" in told


def test_processes_of_others_are_not_watched(
    started: dict[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number of another machine's, or one that was given away again, is none of our ranks."""
    output = LaunchOutput(hosts=["a"], pids=[started["idle"].pid])
    watch = RankWatch(os.getpid(), "another mark", output, 1.0)
    clock = itertools.count(1.0)
    monkeypatch.setattr("hybrid.launch.watch.time", SimpleNamespace(monotonic=lambda: next(clock)))
    for _ in range(10):
        assert watch.look() is None


def test_a_rank_elsewhere_is_judged_by_its_reports(mark: str) -> None:
    output = LaunchOutput()
    for _ in range(2):
        assert output.feed(alive_line(1).strip()) == []
    output.hosts = ["a", "b", "c"]
    assert output.beats == {1: 2}
    told = watched(output, os.getpid(), mark, 1.0)
    assert "rank 1 on b has given no sign of life" in told, "the others have never reported"


def test_reports_come_while_the_rank_computes_and_stop_with_it() -> None:
    """The rank runs one endless step; its neighbour reports, and holds the pipe no longer than the rank lives."""
    script = "from hybrid.launch.beat import beating\nwith beating(3, 0.4):\n    all(i >= 0 for i in iter(int, 1))\n"
    rank = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert rank.stdout is not None
    try:
        assert [rank.stdout.readline() for _ in range(3)] == [alive_line(3)] * 3
    finally:
        rank.kill()
        rank.communicate(timeout=30)
